"""Signing in at a provider that is not ours: Canaille, with its own pages, password, key set and metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.serving import Caller, begin, end
from tests.oidc.installation import Installation, Person, free_port, said_to_server
from tests.oidc.real_provider import at_canaille, canaille


@pytest.mark.timeout(400)  # its environment may have to be made first
def test_somebody_signs_in_with_a_password_and_gets_the_team_of_their_group(tmp_path: Path) -> None:
    port, theirs = free_port(), free_port()
    with canaille(theirs, f"http://127.0.0.1:{port}/login/callback") as issuer:
        said = said_to_server(issuer, port, scopes="openid profile email groups", teams="ml-vision=vision")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in said.items():
                patch.setenv(name, value)
            owner = begin(tmp_path, "--port", str(port))
        try:
            owner.ok("POST", "/teams", {"name": "vision"})
            assert owner.ok("GET", "/sign-in")["device"] is False, "Canaille has no device flow"
            signed_in = _signed_in(owner)
            assert {key: signed_in[key] for key in ("subject", "role", "teams")} == {
                "subject": "user:ada",
                "role": "member",
                "teams": ["vision"],
            }
            user = owner.ok("GET", "/users/ada")
            assert (user["display_name"], user["email"]) == ("Ada Lovelace", "ada@example.org")
        finally:
            end(tmp_path)


def _signed_in(owner: Caller) -> dict[str, object]:
    person = Person(Installation(owner, Path(), None))  # type: ignore[arg-type]  # it is told nothing
    try:
        brought = person.comes_back(at_canaille(person, f"{owner.url}/login/callback?"))
        answer = person.exchange(brought["code"])
    finally:
        person.close()
    assert answer.status == 200, answer.json
    found: dict[str, object] = answer.json
    return found
