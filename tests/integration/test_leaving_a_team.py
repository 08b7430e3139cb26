"""Whoever leaves a team, however that comes about, has nothing of it from the next request on; what runs goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from cryptography.fernet import Fernet

from tests.integration.serving import Caller
from tests.oidc.installation import Installation, installed, signed_in
from tests.oidc.processes import obedient_provider

Way = Callable[[Installation, str, str], None]


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A server for teams, and a provider whose groups name its teams."""
    with pytest.MonkeyPatch.context() as patch, obedient_provider() as provider:
        patch.setenv("FAIRPOOL_VAULT_KEY", Fernet.generate_key().decode())
        with installed(tmp_path_factory.mktemp("server"), provider) as found:
            yield found


def taken_out(at: Installation, who: str, team: str) -> None:
    at.owner.ok("DELETE", f"/teams/{team}/members/{who}")


def left_out_of_the_file(at: Installation, who: str, team: str) -> None:
    at.owner.ok("POST", "/apply", {"documents": [{"kind": "team", "name": team, "members": []}]})


def out_of_the_group(at: Installation, who: str, team: str) -> None:
    at.provider.user(who, groups=[])
    signed_in(at, who, name="other-laptop")


def by_hand(at: Installation, who: str, team: str) -> Caller:
    """Somebody who was put into the team here."""
    at.owner.ok("POST", "/users", {"name": who})
    at.owner.ok("POST", "/apply", {"documents": [{"kind": "team", "name": team, "members": [who]}]})
    return at.anybody(at.owner.ok("POST", "/tokens", {"name": "t", "owner": f"user:{who}"})["token"])


def by_group(at: Installation, who: str, team: str) -> Caller:
    """Somebody whose group at the provider is the team."""
    at.provider.user(who, groups=[team])
    at.owner.ok("POST", "/teams", {"name": team})
    return at.anybody(signed_in(at, who)["token"])


def furnished(at: Installation, team: str) -> None:
    """What the team has: a pool of one GPU, a profile there, a queue therefore, a vault."""
    at.owner.ok("POST", "/pools", {"name": f"{team}-gpus", "capacity": {"gpu": 1}})
    at.owner.ok("POST", "/profiles", {"name": f"{team}-one", "demand": {"gpu": 1}, "pools": [f"{team}-gpus"]})
    at.owner.ok("POST", "/policies", {"pool": f"{team}-gpus", "subject": f"team:{team}"})
    at.owner.ok("POST", "/vaults", {"name": team, "secrets": {"TOKEN": {"value": "of the team"}}})


def had(who: Caller) -> dict[str, list[str]]:
    """What somebody sees of what teams give."""
    found = {noun: who.ok("GET", f"/{noun}")["items"] for noun in ("profiles", "queues", "vaults", "pools")}
    return {noun: [one["name"] for one in items] for noun, items in found.items()}


@pytest.mark.parametrize(
    ("enter", "leave"),
    [(by_hand, taken_out), (by_hand, left_out_of_the_file), (by_group, out_of_the_group)],
    ids=["taken out", "left out of the file", "out of the provider's group"],
)
def test_what_waits_is_cancelled_what_runs_goes_on_and_nothing_else_is_left(
    at: Installation, enter: Callable[[Installation, str, str], Caller], leave: Way
) -> None:
    team, who = f"team-{leave.__name__}", leave.__name__.replace("_", "-")
    person = enter(at, who, team)
    furnished(at, team)
    everything = {
        "profiles": [f"{team}-one"],
        "queues": [f"{team}/{team}-one"],
        "vaults": [team],
        "pools": [f"{team}-gpus"],
    }
    assert had(person) == everything
    asked = {"profile": f"{team}-one", "subjects": [f"team:{team}"], "lease_s": 600}
    runs, waits = (person.ok("POST", "/requests", asked) for _ in range(2))
    assert (runs["status"], waits["status"]) == ("allocated", "queued")
    assert _token(person, runs["id"]) == "of the team"

    leave(at, who, team)

    ended = person.ok("GET", f"/requests/{waits['id']}")
    assert (ended["status"], [reason["code"] for reason in ended["reasons"]]) == ("cancelled", ["POLICY_OF_OTHERS"])
    assert f"team:{team}" in ended["reasons"][0]["message"]
    assert person.ok("GET", f"/requests/{runs['id']}")["status"] == "allocated"
    assert had(person) == {"profiles": [], "queues": [], "vaults": [], "pools": []}
    for hidden in (f"/profiles/{team}-one", f"/queues/{team}/{team}-one", f"/vaults/{team}", f"/pools/{team}-gpus"):
        assert person("GET", hidden).status == 404, hidden
    refused = person("POST", "/requests", asked)
    assert (refused.status, refused.json["type"]) == (403, "forbidden")
    plainly = person("POST", "/requests", {"profile": f"{team}-one"})
    assert plainly.status == 404 or plainly.json["status"] == "rejected", plainly.json

    person.ok("POST", f"/requests/{runs['id']}/renew", {})
    assert person.ok("POST", f"/requests/{runs['id']}/release")["status"] == "released"


def _token(person: Caller, request: str) -> str:
    given = person.ok("POST", f"/requests/{request}/environment", {})
    return str(given["variables"]["TOKEN"]["value"])
