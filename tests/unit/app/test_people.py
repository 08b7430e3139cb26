"""Users, teams, service accounts and their tokens, as the use cases keep them."""

from __future__ import annotations

from typing import Any

import pytest

from fairpool.app.authz import Role
from fairpool.app.errors import Ambiguous, Conflict, Exists, KeyReused, NotFound
from fairpool.app.records import Kind, TokenRecord
from fairpool.app.token_text import mint, parse
from fairpool.app.use_cases import requests, service_accounts, teams, tokens, users
from fairpool.app.use_cases.service_accounts import AccountChange
from fairpool.app.use_cases.teams import TeamChange
from fairpool.app.use_cases.users import UserChange
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import SECOND
from fairpool.core.policies import Subject
from tests.unit.app.office import Office, ask, opened

ALICE = Subject.parse("user:alice")
CI = Subject.parse("service-account:ci")


@pytest.fixture
def office() -> Office:
    """Two admins, Alice and Bob in team red, Bob in team blue too, and a service account that is in team blue."""
    office = opened()
    for name, role in (("root", Role.ADMIN), ("alice", Role.MEMBER), ("bob", Role.MEMBER)):
        office.do(users.create, name, role=role)
    office.do(teams.create, "red", members=["alice", "bob"])
    office.do(teams.create, "blue", members=["bob"])
    office.do(service_accounts.create, "ci", teams=["blue"])
    return office


def kept(office: Office, owner: str = "") -> dict[str, TokenRecord]:
    return {token.name: token for token in office.store.reader.tokens.all(owner)}


def teams_of(office: Office, subject: str) -> tuple[str, ...]:
    return office.ask(lambda memory, now: memory.teams_of(Subject.parse(subject)))


def test_people_are_in_the_teams_that_name_them_and_services_in_those_that_they_name(office: Office) -> None:
    assert teams_of(office, "user:bob") == ("blue", "red")
    assert teams_of(office, "service-account:ci") == ("blue",)
    assert teams_of(office, "user:root") == ()
    office.do(teams.update, "blue", TeamChange(remove=("bob",), add=("root",)))
    office.do(service_accounts.update, "ci", AccountChange(teams=("red", "blue")))
    assert teams_of(office, "user:bob") == ("red",)
    assert teams_of(office, "user:root") == ("blue",)
    assert teams_of(office, "service-account:ci") == ("blue", "red")


def test_a_team_names_only_people_who_are_there(office: Office) -> None:
    with pytest.raises(NotFound) as refused:
        office.do(teams.update, "red", TeamChange(add=("alic",)))
    assert refused.value.candidates == ("alice",)
    with pytest.raises(NotFound):
        office.do(service_accounts.create, "nightly", teams=["green"])


@pytest.mark.parametrize("change", [UserChange(role=Role.OPERATOR), None])
def test_the_last_admin_is_neither_demoted_nor_removed(office: Office, change: UserChange | None) -> None:
    def lose(name: str) -> object:
        return office.do(users.delete, name) if change is None else office.do(users.update, name, change)

    with pytest.raises(Conflict, match="last admin"):
        lose("root")
    office.do(users.update, "bob", UserChange(role=Role.ADMIN))
    lose("root")
    with pytest.raises(Conflict, match="last admin"):
        lose("bob")


def test_the_last_admin_may_change_everything_but_the_role(office: Office) -> None:
    assert office.do(users.update, "root", UserChange(display_name="Root")).spec["display_name"] == "Root"


def test_a_user_who_goes_leaves_teams_and_queue_and_no_token_lets_them_in(office: Office) -> None:
    office.do(tokens.create, ALICE, "laptop")
    running = office.do(requests.submit, ask("team:red", 8), actor="user:alice")
    waiting = office.do(requests.submit, ask("team:red", 2), actor="user:alice")
    others = office.do(requests.submit, ask("team:red", 2), actor="user:bob")
    trial = office.do(users.delete, "alice", dry_run=True)
    done = office.do(users.delete, "alice")
    assert (done.teams, done.tokens, done.queued, done.active) == (("red",), ("laptop",), (waiting.id,), (running.id,))
    assert trial == done
    assert kept(office)["laptop"].revoked_at == office.clock.now()
    assert [office.status(one.id) for one in (running, waiting, others)] == ["allocated", "cancelled", "queued"]
    assert office.memory.document(Kind.TEAM, "red").spec == {"members": ["bob"]}


def test_a_token_is_kept_as_a_hash_and_nowhere_written(office: Office) -> None:
    issued = office.do(tokens.create, ALICE, "laptop")
    text = issued.text.reveal()
    assert parse(text) == issued.text
    assert issued.text.is_of(kept(office)["laptop"].hash)
    secret = text.rpartition("_")[2]
    assert secret not in repr(office.store.batches) + repr(issued)


@pytest.mark.parametrize("spoil", [lambda text: text[:-1] + "a", lambda text: text.upper(), lambda text: text[3:]])
def test_a_mistyped_token_is_known_for_one(spoil: object) -> None:
    text = mint(lambda size: bytes(range(size))).reveal()
    assert parse(text) is not None
    assert parse(spoil(text)) is None  # type: ignore[operator]


def test_an_owner_has_one_valid_token_of_a_name(office: Office) -> None:
    first = office.do(tokens.create, ALICE, "laptop")
    with pytest.raises(Exists):
        office.do(tokens.create, ALICE, "laptop")
    office.do(tokens.create, CI, "laptop")
    with pytest.raises(Ambiguous):
        office.do(tokens.revoke, "laptop")
    office.do(tokens.revoke, first.record.id)
    assert office.do(tokens.create, ALICE, "laptop").record.id != first.record.id


def test_a_person_s_token_expires_and_a_service_s_need_not(office: Office) -> None:
    with pytest.raises(InvalidInput, match="expires"):
        office.do(tokens.create, ALICE, "laptop", life_s=None)
    with pytest.raises(InvalidInput, match="expires"):
        office.do(tokens.create, ALICE, "laptop", life_s=367 * 86_400)
    assert office.do(tokens.create, CI, "deploy", life_s=None).record.expires_at is None
    made = office.do(tokens.create, ALICE, "laptop").record
    assert made.expires_at == made.created_at + 90 * 86_400 * SECOND


def test_a_token_that_has_expired_gives_its_name_free(office: Office) -> None:
    first = office.do(tokens.create, ALICE, "laptop", life_s=60)
    office.pass_time(60)
    assert office.do(tokens.create, ALICE, "laptop", life_s=60).record.id != first.record.id


def test_a_team_and_a_component_have_no_tokens(office: Office) -> None:
    for owner in ("team:red", "component:local"):
        with pytest.raises(InvalidInput, match="cannot have tokens"):
            office.do(tokens.create, Subject.parse(owner), "x")
    with pytest.raises(NotFound):
        office.do(tokens.create, Subject.parse("user:nobody"), "x")


def test_a_token_is_told_again_for_the_same_key_and_nothing_of_it_is_kept(office: Office) -> None:
    asked: dict[str, Any] = {"key": "k1", "fingerprint": "f", "secret": b"of the installation"}
    first = office.do(tokens.create_once, ALICE, "laptop", **asked)
    again = office.do(tokens.create_once, ALICE, "laptop", **asked)
    assert (again.record, again.text.reveal()) == (first.record, first.text.reveal())
    assert office.history(first.record.id) == ["created"]
    kept_keys = [use for batch in office.store.batches for use in batch.keys]
    assert len(kept_keys) == 1
    assert "k1" not in kept_keys[0].key
    with pytest.raises(KeyReused):
        office.do(tokens.create_once, ALICE, "other", **{**asked, "fingerprint": "g"})
    with pytest.raises(Conflict, match=rf"revoke it \('fairpool token revoke {first.record.id}'\)"):
        office.do(tokens.create_once, ALICE, "laptop", **{**asked, "secret": b"another"})
    other = office.do(tokens.create_once, ALICE, "desk", **asked, actor="user:bob")
    assert other.record.id != first.record.id


def test_revoking_twice_is_revoking_once(office: Office) -> None:
    office.do(tokens.create, ALICE, "laptop")
    first = office.do(tokens.revoke, "laptop")
    office.pass_time(5)
    assert office.do(tokens.revoke, first.id) == first
    assert office.history(first.id) == ["created", "revoked"]


def test_use_is_noted_without_a_line_of_history(office: Office) -> None:
    made = office.do(tokens.create, ALICE, "laptop").record
    office.pass_time(5)
    at = office.clock.now()
    office.do(tokens.used, [(made.id, at), ("gone", at)])
    assert kept(office)["laptop"].last_used_at == at
    assert office.history(made.id) == ["created"]


def test_what_the_history_says_of_people_is_who_did_what(office: Office) -> None:
    office.do(users.update, "alice", UserChange(role=Role.OPERATOR), actor="user:root")
    alice = office.memory.document(Kind.USER, "alice")
    assert office.history(alice.id) == ["created", "role changed"]
