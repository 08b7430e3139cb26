"""Signing in to a workspace other than `default`, and webhooks of two workspaces side by side."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tests.integration.receiver import receiving
from tests.integration.serving import serving
from tests.oidc.installation import installed, signed_in
from tests.oidc.processes import obedient_provider
from tests.waiting import wait_until

HEADERS = {"Fairpool-Workspace": "research"}


def test_people_sign_in_to_the_workspace_that_is_set_up_for_it(tmp_path: Path) -> None:
    with (
        obedient_provider() as provider,
        installed(tmp_path / "server", provider, workspace="research", teams="ml-vision=vision") as at,
    ):
        provider.user("ada", groups=["ml-vision"])
        options = at.anybody()("GET", "/sign-in")
        assert (options.status, options.json["detail"]) == (404, "no workspace 'research'")
        at.owner.ok("POST", "/workspaces", {"name": "research"})
        at.owner.ok("POST", "/teams", {"name": "vision"}, headers=HEADERS)
        found = signed_in(at, "ada")
        assert (found["workspace"], found["teams"]) == ("research", ["vision"])
        ada = at.anybody(found["token"])
        assert ada.ok("GET", "/whoami")["workspace"] == "research"
        assert at.owner.ok("GET", "/users/ada", headers=HEADERS)["name"] == "ada"
        assert at.owner("GET", "/users/ada").status == 404
        assert ada("GET", "/whoami", headers={"Fairpool-Workspace": "default"}).status == 403
        ada("POST", "/sign-out")
        assert ada("GET", "/whoami").status == 401


def test_a_receiver_is_told_of_its_own_workspace_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRPOOL_VAULT_KEY", Fernet.generate_key().decode())
    monkeypatch.setenv("FAIRPOOL_WEBHOOK_ALLOW_PRIVATE", "1")
    with receiving(tmp_path / "one") as one, receiving(tmp_path / "two") as two, serving(tmp_path / "data") as owner:
        owner.ok("POST", "/workspaces", {"name": "research"})
        made = {}
        for receiver, headers in ((one, {}), (two, HEADERS)):
            owner.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 1}}, headers=headers)
            owner.ok("POST", "/policies", {"pool": "gpus", "subject": "team:red"}, headers=headers)
            hook = {"name": "hook", "url": receiver.url, "events": ["request.granted"]}
            owner.ok("POST", "/webhooks", hook, headers=headers)
        for receiver, headers in ((one, {}), (two, HEADERS)):
            body = {"demand": {"gpu": 1}, "subjects": ["team:red"], "lease_s": 600}
            made[receiver.url] = owner.ok("POST", "/requests", body, headers=headers)["id"]
        for receiver in (one, two):
            wait_until(receiver.taken, what="the receiver to be told")
        for receiver, workspace in ((one, "default"), (two, "research")):
            told = str([call["body"] for call in receiver.taken()])
            assert made[receiver.url] in told and workspace in told
            assert not [name for name in made.values() if name != made[receiver.url] and name in told]
