"""Which pools, policies and profiles concern a member."""

from __future__ import annotations

from fairpool.app.authz import Principal, Reach, Right, Role
from fairpool.app.records import Kind
from fairpool.app.use_cases import policies
from fairpool.core.policies import Subject
from fairpool.server.concerns import chosen
from tests.unit.app.office import Office, opened, policy

ALICE = Principal(subject=Subject.parse("user:alice"), role=Role.MEMBER, teams=frozenset({"red"}))


def names(office: Office, kind: Kind, right: Right = Right.OWN) -> list[str]:
    reach = Reach(principal=ALICE, right=right)
    return office.ask(lambda memory, now: [record.name for record in chosen(memory, kind, reach)])


def test_a_pool_concerns_who_may_ask_there_and_so_do_the_policies_of_all_teams() -> None:
    office = opened()
    office.pool("far")
    office.policy("team:blue", pool="far")
    office.policy("user:bob")
    assert names(office, Kind.POOL) == ["p"]
    assert names(office, Kind.POLICY) == ["p/team:blue", "p/team:red"]
    assert names(office, Kind.POOL, Right.ALL) == ["far", "p"]


def test_every_pool_of_a_policy_concerns_who_it_speaks_of() -> None:
    office = opened()
    office.pool("far")
    office.do(policies.attach, "p", policy("user:alice"), also=("far",))
    assert names(office, Kind.POOL) == ["far", "p"]
