"""Tokens let in who they are of, as whom they are in the history, and only for as long as they are valid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.serving import Answer, Caller, serving


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with serving(tmp_path_factory.mktemp("tokens")) as caller:
        caller.ok("POST", "/users", {"name": "root", "role": "admin"})
        caller.ok("POST", "/users", {"name": "alice", "role": "member"})
        caller.ok("POST", "/service-accounts", {"name": "ci"})
        yield caller


def caller_for(owner: Caller, whose: str, name: str, **said: object) -> Caller:
    made = owner.ok("POST", "/tokens", {"name": name, "owner": whose, **said})
    return Caller(owner.url, made["token"])


def refused(answer: Answer, status: int, slug: str) -> str:
    assert (answer.status, answer.json["type"]) == (status, slug), answer.json
    return str(answer.json["detail"])


def test_a_token_is_told_once_and_lets_its_owner_in(owner: Caller) -> None:
    made = owner.ok("POST", "/tokens", {"name": "laptop", "owner": "user:alice"})
    assert made["token"].startswith("fp_" + made["id"])
    listed = owner.ok("GET", "/tokens?owner=user:alice")["items"]
    assert [token["name"] for token in listed] == ["laptop"]
    assert made["token"] not in str(listed)
    alice = Caller(owner.url, made["token"])
    assert [token["name"] for token in alice.ok("GET", "/tokens")["items"]] == ["laptop"]
    assert alice.ok("GET", "/users")["items"][0]["name"] == "alice"


def test_a_revoked_token_is_refused_at_once(owner: Caller) -> None:
    alice = caller_for(owner, "user:alice", "phone")
    alice.ok("GET", "/server")
    owner.ok("DELETE", "/tokens/phone")
    assert "'phone' was revoked" in refused(alice("GET", "/server"), 401, "unauthenticated")


def test_a_token_of_somebody_who_is_gone_is_refused_at_once(owner: Caller) -> None:
    owner.ok("POST", "/users", {"name": "temp"})
    temp = caller_for(owner, "user:temp", "one")
    temp.ok("GET", "/server")
    owner.ok("DELETE", "/users/temp")
    refused(temp("GET", "/server"), 401, "unauthenticated")


def test_another_role_counts_from_the_next_call_on(owner: Caller) -> None:
    bob = owner.ok("POST", "/users", {"name": "bob", "role": "viewer"})
    his = caller_for(owner, "user:bob", "one")
    told = refused(his("POST", "/pools", {"name": "x"}), 403, "forbidden")
    assert "viewer" in told
    owner.ok("PATCH", f"/users/{bob['id']}", {"role": "operator"})
    his.ok("POST", "/pools", {"name": "x"})
    owner.ok("DELETE", "/pools/x")


@pytest.mark.parametrize("token", ["", "fp_", "fp_abc_def", "fp_aaaaaaaaaaaaa_" + "a" * 59, "nonsense", "é"])
def test_a_token_that_nobody_gave_is_refused(owner: Caller, token: str) -> None:
    refused(Caller(owner.url, token)("GET", "/server"), 401, "unauthenticated")


def test_a_known_id_with_another_secret_is_refused_as_unknown(owner: Caller) -> None:
    first = owner.ok("POST", "/tokens", {"name": "a", "owner": "service-account:ci"})["token"]
    second = owner.ok("POST", "/tokens", {"name": "b", "owner": "service-account:ci"})["token"]
    mixed = "_".join([*first.split("_")[:2], second.split("_")[2]])
    assert "not one of this server's" in refused(Caller(owner.url, mixed)("GET", "/server"), 401, "unauthenticated")


def test_members_make_tokens_for_themselves_alone(owner: Caller) -> None:
    alice = caller_for(owner, "user:alice", "work")
    assert alice.ok("POST", "/tokens", {"name": "second"})["owner"] == "user:alice"
    refused(alice("POST", "/tokens", {"name": "x", "owner": "user:root"}), 403, "forbidden")
    refused(alice("POST", "/tokens", {"name": "x", "owner": "service-account:ci"}), 403, "forbidden")
    root = owner.ok("POST", "/tokens", {"name": "hers", "owner": "user:root"})
    refused(alice("DELETE", f"/tokens/{root['id']}"), 404, "not-found")
    alice.ok("DELETE", "/tokens/second")


def test_the_installation_says_whose_token_it_makes(owner: Caller) -> None:
    refused(owner("POST", "/tokens", {"name": "x"}), 422, "invalid-input")


def test_the_history_names_who_did_it(owner: Caller) -> None:
    root = caller_for(owner, "user:root", "admin")
    team = root.ok("POST", "/teams", {"name": "blue", "members": ["alice"]})
    entries = root.ok("GET", f"/history?kind=team&object={team['id']}")["items"]
    assert [(entry["what"], entry["actor"]) for entry in entries] == [("created", "user:root")]
    assert root.ok("GET", "/users/alice")["teams"] == ["blue"]


def test_when_a_token_was_used_is_known_to_the_minute(owner: Caller, tmp_path: Path) -> None:
    made = owner.ok("POST", "/tokens", {"name": "used", "owner": "service-account:ci"})
    assert made["last_used_at"] is None
    Caller(owner.url, made["token"]).ok("GET", "/server")
    owner.ok("POST", "/teams", {"name": "any"})  # what was noted is committed before this
    again = {token["id"]: token for token in owner.ok("GET", "/tokens")["items"]}
    assert again[made["id"]]["last_used_at"] is not None
