"""Signing in over HTTP, server and provider as processes: who comes in, as whom, and everybody who does not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fairpool.client.signing_in import challenge_of
from fairpool.wire import local_server
from tests.integration.serving import Caller, serving
from tests.oidc.installation import Installation, Person, installed, signed_in
from tests.oidc.processes import CLIENT_SECRET, obedient_provider


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A server with teams, and a provider."""
    folder = tmp_path_factory.mktemp("server")
    with obedient_provider() as provider, installed(folder, provider, teams="ml-vision=vision") as found:
        for team in ("vision", "staff", "by-hand"):
            found.owner.ok("POST", "/teams", {"name": team})
        yield found


@pytest.fixture
def at(installation: Installation) -> Installation:
    """The same, with nothing wrong and Ada in two groups."""
    installation.provider.wrong()
    installation.provider.user("ada", name="Ada Lovelace", email="ada@example.org", groups=["ml-vision", "staff"])
    installation.provider.user("eve", groups=[])
    return installation


@pytest.fixture
def ada(at: Installation) -> Iterator[Person]:
    """Ada in front of her browser."""
    person = Person(at)
    yield person
    person.close()


def refused(answer: Any, status: int, slug: str) -> str:
    assert (answer.status, answer.json["type"]) == (status, slug), answer.json
    return str(answer.json["detail"])


# ---- browser ---------------------------------------------------------------------------------------------------------


def test_a_first_sign_in_makes_the_user_with_teams_and_a_token_that_expires(at: Installation) -> None:
    found = signed_in(at, "ada")
    assert found["subject"] == "user:ada"
    assert (found["role"], found["workspace"], found["token_name"]) == ("member", "default", "laptop")
    assert found["teams"] == ["staff", "vision"]
    left = datetime.fromisoformat(found["expires_at"]) - datetime.now(UTC)
    assert timedelta(hours=11, minutes=58) < left <= timedelta(hours=12)
    user = at.owner.ok("GET", "/users/ada")
    assert (user["display_name"], user["email"]) == ("Ada Lovelace", "ada@example.org")
    who = at.anybody(found["token"]).ok("GET", "/whoami")
    assert {key: who[key] for key in ("subject", "role", "teams", "workspace", "token_name")} == {
        "subject": "user:ada",
        "role": "member",
        "teams": ["staff", "vision"],
        "workspace": "default",
        "token_name": "laptop",
    }


def test_a_second_machine_of_that_name_gets_a_token_of_its_own(at: Installation) -> None:
    names = {signed_in(at, "ada", name="twin")["token_name"] for _ in range(3)}
    assert names == {"twin", "twin-2", "twin-3"}


def test_the_browser_is_told_to_keep_nothing_and_only_it_may_come_back(at: Installation, ada: Person) -> None:
    begun = ada.begin()
    cookie = begun.headers["set-cookie"]
    assert begun.headers["cache-control"] == "no-store"
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie and "Path=/login/callback" in cookie
    address = ada.at_provider("ada")
    other = Person(at)
    answer = other.browser.open(address)
    other.close()
    assert answer.status_code == 400
    assert "another browser" in answer.text


def test_a_program_is_named_by_its_port_and_never_by_an_address(ada: Person) -> None:
    for wrong in ("80", "99999", "4711/../x", "evil.example.org", "48123@evil.example.org", None):
        answer = ada.begin(port=wrong)
        assert answer.status_code == 422, (wrong, answer.text)
        assert "location" not in answer.headers
    for name in ("redirect_uri", "next", "host"):
        assert ada.begin(**{name: "https://evil.example.org"}).status_code == 422


@pytest.mark.parametrize("wrong", [{"state": ""}, {"state": "x" * 201}, {"challenge": "short"}, {"challenge": None}])
def test_a_sign_in_that_is_begun_wrongly_is_refused(ada: Person, wrong: dict[str, object]) -> None:
    answer = ada.begin(**wrong)
    assert (answer.status_code, answer.json()["type"]) == (422, "invalid-input")


@pytest.mark.parametrize("query", ["", "?state=x&code=y", "?code=y", "?error=access_denied", "?state=%3Cscript%3E"])
def test_a_callback_that_belongs_to_no_sign_in_leads_nowhere(ada: Person, at: Installation, query: str) -> None:
    answer = ada.browser.open(f"{at.owner.url}/login/callback{query}")
    assert answer.status_code == 400
    assert "not signed in" in answer.text and "<script>" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_whoever_declines_brings_that_back_to_the_terminal(ada: Person) -> None:
    said = ada.comes_back(ada.at_provider("ada", answer="no"))
    assert said["error"] == "access_denied"
    assert "declined" in said["error_description"]


def test_the_callback_counts_once(ada: Person) -> None:
    address = ada.at_provider("ada")
    assert "code" in ada.comes_back(address)
    assert ada.comes_back(address)["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"id_token": {"nonce": "another"}}, "nonce"),
        ({"id_token": {"aud": "another-application"}}, "aud"),
        ({"signed": "not at all"}, "none"),
        ({"signed": "with another key"}, "not signed with one of its keys"),
        ({"older_s": -3600}, "expired"),
        ({"id_token": {"preferred_username": "Ada Lovelace"}}, "Ada Lovelace"),
        ({"broken": ["/token"]}, "the provider cannot be used"),
    ],
)
def test_an_answer_that_does_not_count_is_told_in_the_terminal(
    at: Installation, ada: Person, wrong: dict[str, object], told: str
) -> None:
    at.provider.wrong(**wrong)
    said = ada.comes_back(ada.at_provider("ada"))
    assert "code" not in said
    assert told in said["error_description"]


def test_without_its_provider_the_server_stays_up_and_says_what_is_wrong(tmp_path: Path) -> None:
    with obedient_provider() as provider:
        address, port = provider.url, int(provider.url.rpartition(":")[2])
    with obedient_provider(port) as provider, installed(tmp_path, provider) as found:
        provider.user("ada")
        token = signed_in(found, "ada")["token"]
        with_code = Person(found)
        back = with_code.at_provider("ada")
        stopped = found
        provider.stop()
        assert "cannot be reached" in with_code.comes_back(back)["error_description"]
        with_code.close()
        challenge = challenge_of("x" * 43)
        answer = stopped.anybody()("POST", "/sign-in/device", {"challenge": challenge})
        assert "cannot be used: it cannot be reached" in refused(answer, 503, "provider-unavailable")
        assert answer.headers["retry-after"] == "5"
        assert stopped.anybody(token).ok("GET", "/whoami")["subject"] == "user:ada"
        assert stopped.owner.ok("GET", "/pools")["items"] == []
        with obedient_provider(port) as again:
            assert again.url == address
            again.client(f"{found.owner.url}/login/callback")
            again.user("ada")
            assert signed_in(found, "ada")["subject"] == "user:ada"


def test_a_server_that_starts_without_its_provider_starts(tmp_path: Path) -> None:
    with obedient_provider() as gone:
        pass
    with installed(tmp_path, gone, is_up=False) as found:
        assert found.owner.ok("GET", "/pools")["items"] == []
        assert "cannot be reached" in refused(found.anybody()("GET", "/sign-in"), 503, "provider-unavailable")
        person = Person(found)
        assert "cannot be reached" in person.brought(person.begin())["error_description"]
        person.close()


def test_without_a_provider_people_are_told_to_use_a_token(tmp_path: Path) -> None:
    with serving(tmp_path) as owner:
        nobody = Caller(owner.url, "")
        assert nobody.ok("GET", "/sign-in") == {"provider": "", "browser_url": "", "device": False, "workspace": ""}
        for method, path in (("GET", "/sign-in/begin"), ("GET", "//login/callback")):
            assert "no provider" in refused(nobody(method, path), 404, "not-found")


def test_the_options_say_where_a_browser_begins(at: Installation) -> None:
    assert at.anybody().ok("GET", "/sign-in") == {
        "provider": at.provider.url,
        "browser_url": at.owner.url + "/api/v1/sign-in/begin",
        "device": True,
        "workspace": "default",
    }


# ---- codes -----------------------------------------------------------------------------------------------------------


def test_a_code_is_exchanged_once(ada: Person) -> None:
    code = ada.comes_back(ada.at_provider("ada"))["code"]
    assert ada.exchange(code).status == 200
    assert "exchanged already" in refused(ada.exchange(code), 403, "forbidden")


def test_a_code_that_was_stolen_is_worth_nothing_to_the_thief_and_stays_good(at: Installation, ada: Person) -> None:
    code = ada.comes_back(ada.at_provider("ada"))["code"]
    thief = Person(at)
    thief.close()
    assert "somebody else" in refused(thief.exchange(code), 403, "sign-in-failed")
    assert ada.exchange(code).status == 200


def test_a_code_that_was_changed_or_made_up_is_refused(ada: Person) -> None:
    code = ada.comes_back(ada.at_provider("ada"))["code"]
    for wrong in (code[:-2] + "AA", "made-up", code + "A"):
        assert "not one that this server gave out" in refused(ada.exchange(wrong), 403, "sign-in-failed")
    for wrong, status in (("", 422), ("ß", 422), ("x" * 20_000, 413)):
        assert ada.exchange(wrong).status == status


# ---- device ----------------------------------------------------------------------------------------------------------


def test_a_terminal_gets_its_token_when_somebody_has_entered_its_code(at: Installation, ada: Person) -> None:
    anybody = at.anybody()
    begun = anybody.ok("POST", "/sign-in/device", {"challenge": challenge_of(ada.verifier)})
    assert begun["verification_uri"] == at.provider.url + "/device"
    assert begun["interval_s"] == 1

    def poll() -> Any:
        return anybody.ok("POST", "/sign-in/poll", {"handle": begun["handle"]})

    assert poll()["status"] == "pending"
    at.provider.wrong(slow_down=True)
    assert poll()["status"] == "slower"
    at.provider.enter(begun["user_code"], "ada")
    polled = poll()
    assert polled["status"] == "done"
    assert ada.exchange(polled["code"]).json["subject"] == "user:ada"


def test_a_terminal_is_told_when_somebody_declines_or_nobody_comes(at: Installation, ada: Person) -> None:
    anybody = at.anybody()
    for answer, code in (("no", "access_denied"), ("", "expired_token")):
        begun = anybody.ok("POST", "/sign-in/device", {"challenge": challenge_of(ada.verifier)})
        if answer:
            at.provider.enter(begun["user_code"], "ada", answer=answer)
        else:
            at.provider.expire()
        polled = anybody("POST", "/sign-in/poll", {"handle": begun["handle"]})
        refused(polled, 403, "sign-in-failed")
        assert polled.json["numbers"]["code"] == code


# ---- who may, and as what --------------------------------------------------------------------------------------------


def test_groups_give_roles_and_keep_others_out_where_the_settings_say_so(tmp_path: Path) -> None:
    said: Any = {
        "roles": "chiefs=admin,ops=operator",
        "default_role": "viewer",
        "allowed_groups": "staff",
        "token_hours": "1",
    }
    with obedient_provider() as provider, installed(tmp_path, provider, **said) as found:
        provider.user("ada", groups=["staff", "chiefs"])
        provider.user("eve", groups=["guests"])
        ada = signed_in(found, "ada")
        assert ada["role"] == "admin"
        left = datetime.fromisoformat(ada["expires_at"]) - datetime.now(UTC)
        assert left <= timedelta(hours=1)
        provider.user("ada", groups=["staff"])
        assert signed_in(found, "ada")["role"] == "viewer"
        refused(found.anybody(ada["token"])("POST", "/users", {"name": "x"}), 403, "forbidden")
        person = Person(found)
        brought = person.comes_back(person.at_provider("eve"))
        person.close()
        assert "only members of 'staff' may sign in" in brought["error_description"]
        assert [user["name"] for user in found.owner.ok("GET", "/users")["items"]] == ["ada"]


# ---- what follows ----------------------------------------------------------------------------------------------------


def test_whoever_has_lost_a_group_has_lost_its_team_at_the_next_sign_in(at: Installation) -> None:
    at.provider.user("bob", groups=["ml-vision", "staff"])
    at.owner.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 1}})
    at.owner.ok("POST", "/policies", {"pool": "gpus", "subject": "team:vision"})
    assert signed_in(at, "bob")["teams"] == ["staff", "vision"]
    at.owner.ok("PATCH", "/teams/by-hand", {"members": ["bob"]})
    bob = at.anybody(signed_in(at, "bob")["token"])
    body = {"demand": {"gpu": 1}, "subjects": ["team:vision"]}
    runs, waits = (bob.ok("POST", "/requests", body) for _ in range(2))
    at.provider.user("bob", groups=["staff"])
    assert signed_in(at, "bob")["teams"] == ["by-hand", "staff"]
    assert at.owner.ok("GET", f"/requests/{waits['id']}")["status"] == "cancelled"
    assert at.owner.ok("GET", f"/requests/{runs['id']}")["status"] == "allocated"
    at.owner.ok("POST", f"/requests/{runs['id']}/release", {"force": True})
    entries = at.owner.ok("GET", "/history?kind=team")["items"]
    assert "sign-in" in {entry["actor"] for entry in entries}


def test_a_team_that_is_bound_to_a_group_is_the_providers(at: Installation) -> None:
    at.provider.user("finn", groups=["ml-speech"])
    at.provider.user("gwen")
    at.owner.ok("POST", "/users", {"name": "gwen"})
    at.owner.ok("POST", "/teams", {"name": "speech", "group": "ml-speech"})
    made = at.owner.ok("PATCH", "/teams/speech", {"members": ["gwen"]})
    assert (made["group"], made["members"]) == ("ml-speech", ["gwen"])
    assert signed_in(at, "finn")["teams"] == ["speech"]
    assert signed_in(at, "gwen")["teams"] == []
    assert at.owner.ok("GET", "/teams/speech")["members"] == ["finn"]
    file = {"kind": "team", "name": "speech", "group": "ml-speech", "description": "from a file"}
    at.owner.ok("POST", "/apply", {"documents": [file]})
    team = at.owner.ok("GET", "/teams/speech")
    assert (team["members"], team["description"]) == (["finn"], "from a file")
    at.owner.ok("PATCH", "/teams/speech", {"group": ""})
    at.provider.user("finn", groups=[])
    assert signed_in(at, "finn")["teams"] == [], "the provider gave it, and takes it away"


def test_a_renamed_person_stays_the_same_user_and_nobody_else_takes_their_name(at: Installation) -> None:
    at.provider.user("carol", preferred_username="carol")
    assert signed_in(at, "carol")["subject"] == "user:carol"
    at.provider.user("carol", preferred_username="carol-married")
    assert signed_in(at, "carol")["subject"] == "user:carol"
    at.provider.user("mallory", preferred_username="carol")
    person = Person(at)
    code = person.comes_back(person.at_provider("mallory"))["code"]
    assert "somebody else at the provider" in refused(person.exchange(code), 403, "forbidden")
    person.close()


def test_a_user_that_an_administrator_made_is_the_one_that_signs_in(at: Installation) -> None:
    at.owner.ok("POST", "/users", {"name": "dan", "role": "operator"})
    at.provider.user("dan", name="Dan")
    found = signed_in(at, "dan")
    assert (found["subject"], found["role"]) == ("user:dan", "operator")
    assert at.owner.ok("GET", "/users/dan")["display_name"] == "Dan"


def test_signing_out_revokes_the_token_at_once(at: Installation) -> None:
    caller = at.anybody(signed_in(at, "ada")["token"])
    assert caller("POST", "/sign-out").status == 204
    refused(caller("GET", "/whoami"), 401, "unauthenticated")
    refused(at.owner("POST", "/sign-out"), 409, "conflict")


def test_the_log_holds_no_code_no_token_and_no_secret(at: Installation, ada: Person) -> None:
    address = ada.at_provider("ada")
    code = ada.comes_back(address)["code"]
    token = ada.exchange(code).json["token"]
    log = (at.folder / local_server.LOG_FILE).read_text()
    for secret in (code, token, CLIENT_SECRET, address.partition("code=")[2][:20], ada.verifier):
        assert secret not in log
