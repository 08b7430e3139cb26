"""A sign-in that is begun at one server and finished at another: nothing of it is kept in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairpool.client.signing_in import challenge_of
from tests.e2e.servers.installation import Server, installed
from tests.integration.serving import Caller
from tests.oidc.installation import Installation as Signing
from tests.oidc.installation import Person, free_port, said_to_server
from tests.oidc.processes import ObedientProvider, obedient_provider
from tests.oidc.real_provider import at_canaille, canaille
from tests.waiting import wait_until


@contextmanager
def two_servers(folder: Path, database: str, issuer: str, port: int, **more: str) -> Iterator[tuple[Server, Server]]:
    """The one that leads, on that port, and one that follows; people sign in at both with that provider."""
    with installed(folder, database) as made, pytest.MonkeyPatch.context() as patch:
        for name, value in said_to_server(issuer, port, **more).items():
            patch.setenv(name, value)
        leader, follower = made.start("one", "--port", str(port)), made.start("two")
        leader.call.ok("POST", "/teams", {"name": "vision"})
        yield leader, follower


@contextmanager
def somebody(at: Server, provider: ObedientProvider | None = None) -> Iterator[Person]:
    """Somebody in front of a browser, who begins at that server."""
    person = Person(Signing(at.call, Path(), provider))  # type: ignore[arg-type]  # of these it is told nothing
    yield person
    person.close()


def moved(address: str, *, of: Server, to: Server) -> str:
    """The same address at another server, as what is in front of both may well choose it."""
    assert address.startswith(of.url)
    return to.url + address.removeprefix(of.url)


def exchanged(at: Server, person: Person, code: str) -> dict[str, Any]:
    """What a code is exchanged for at that server."""
    body = {"code": code, "verifier": person.verifier, "name": "laptop"}
    found: dict[str, Any] = Caller(at.url, "none").ok("POST", "/sign-in/exchange", body)
    return found


@pytest.mark.timeout(400)  # the provider's environment may have to be made first
def test_a_browser_begins_at_one_comes_back_to_the_other_and_the_token_counts_at_both(
    tmp_path: Path, new_postgres_url: str
) -> None:
    port, theirs = free_port(), free_port()
    with (
        canaille(theirs, f"http://127.0.0.1:{port}/login/callback") as issuer,
        two_servers(
            tmp_path, new_postgres_url, issuer, port, scopes="openid profile email groups", teams="ml-vision=vision"
        ) as (leader, follower),
    ):
        names = set()
        for begun_at, back_at in ((follower, leader), (leader, follower)):
            with somebody(begun_at) as person:
                address = at_canaille(person, f"{leader.url}/login/callback?")
                code = person.comes_back(moved(address, of=leader, to=back_at))["code"]
                found = exchanged(begun_at, person, code)
                again = Caller(back_at.url, "none")(
                    "POST", "/sign-in/exchange", {"code": code, "verifier": person.verifier}
                )
            assert (found["subject"], found["teams"]) == ("user:ada", ["vision"])
            assert (again.status, again.json["type"]) == (403, "forbidden"), "a code counts once"
            names.add(found["token_name"])
            for server in (leader, follower):
                who = Caller(server.url, found["token"]).ok("GET", "/whoami")
                assert (who["subject"], who["teams"], who["token_name"]) == (
                    "user:ada",
                    ["vision"],
                    found["token_name"],
                )
        assert names == {"laptop", "laptop-2"}
        assert [user["name"] for user in follower.call.ok("GET", "/users")["items"] if user["name"] == "ada"] == ["ada"]


def test_a_terminal_polls_the_other_server_and_the_one_that_decides_dies_before_it_has_its_token(
    tmp_path: Path, new_postgres_url: str
) -> None:
    port = free_port()
    with (
        obedient_provider() as provider,
        two_servers(tmp_path, new_postgres_url, provider.url, port, teams="ml-vision=vision") as (leader, follower),
    ):
        provider.client(f"http://127.0.0.1:{port}/login/callback")
        provider.user("ada", groups=["ml-vision"])
        with somebody(leader, provider) as person:
            terminal = Caller(leader.url, "none")
            begun = terminal.ok("POST", "/sign-in/device", {"challenge": challenge_of(person.verifier)})
            provider.enter(begun["user_code"], "ada")
            polled = Caller(follower.url, "none").ok("POST", "/sign-in/poll", {"handle": begun["handle"]})
            assert polled["status"] == "done"
            leader.kill()
            wait_until(lambda: follower.leads, what="the other to lead")
            found = exchanged(follower, person, polled["code"])
        assert (found["subject"], found["teams"]) == ("user:ada", ["vision"])
        assert Caller(follower.url, found["token"]).ok("GET", "/whoami")["subject"] == "user:ada"
