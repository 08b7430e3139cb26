"""The table of rights is whole, and says what the roles are for."""

from __future__ import annotations

import pytest

from fairpool.app.authz import OWNER, Principal, Reach, Right, Role
from fairpool.app.errors import NotAllowed
from fairpool.app.rights import OF_INSTALLATION, RIGHTS, right_of, right_of_caller, roles_for
from fairpool.core.policies import Subject
from fairpool.server.gate import OPEN
from fairpool.wire.routes import ROUTES

READING = {name for name, route in ROUTES.items() if route.method == "GET" or name in OPEN} | {"plan"}
"""A plan is asked with a body, and changes nothing."""


def test_every_route_is_in_the_table_and_nothing_else() -> None:
    assert set(RIGHTS) == set(ROUTES)


def test_an_admin_may_do_everything_in_a_workspace_but_hear_the_secrets_of_others_steps() -> None:
    short_of_all = {name for name in ROUTES if right_of(name, Role.ADMIN) is not Right.ALL}
    assert short_of_all == {"request_environment"} | OF_INSTALLATION


@pytest.mark.parametrize("route", sorted(OF_INSTALLATION))
def test_workspaces_are_the_installation_s_own_token_s(route: str) -> None:
    assert right_of_caller(route, OWNER) is Right.ALL
    for role in Role:
        somebody = Principal(subject=Subject.parse("user:alice"), role=role)
        assert right_of_caller(route, somebody) is (Right.OWN if route in READING else Right.NO)


def test_a_viewer_reads_all_and_changes_nothing_but_their_own_tokens() -> None:
    changing = {name for name in ROUTES if right_of(name, Role.VIEWER) is not Right.NO} - READING
    assert changing == {"token_create", "token_revoke", "sign_out"}
    vaults = {"vault_list", "vault_get", "vault_history"}  # what a team works with is nobody else's to see
    webhooks = {"webhook_list", "webhook_get"}  # an address may hold what its receiver knows its callers by
    assert {name for name in READING if right_of(name, Role.VIEWER) is not Right.ALL} == {
        "token_list",
        "workspace_list",
        "workspace_get",
    } | vaults | webhooks


@pytest.mark.parametrize("route", [name for name in ROUTES if name.startswith(("user_", "team_", "service_account_"))])
def test_people_are_for_admins_to_change(route: str) -> None:
    assert route in READING or roles_for(route) == (Role.ADMIN,)


def test_a_member_changes_only_what_is_theirs() -> None:
    assert not [name for name in set(ROUTES) - READING if right_of(name, Role.MEMBER) is Right.ALL]


def test_a_route_that_is_not_in_the_table_is_for_admins() -> None:
    assert roles_for("new_route") == (Role.ADMIN,)


def test_own_is_what_one_made_and_what_is_made_as_one_or_as_one_s_team() -> None:
    alice = Principal(subject=Subject.parse("user:alice"), role=Role.MEMBER, teams=frozenset({"vision"}))
    reach = Reach(principal=alice, right=Right.OWN)
    vision, nlp = Subject.parse("team:vision"), Subject.parse("team:nlp")
    assert reach.covers("user:alice", [nlp])
    assert reach.covers("user:bob", [nlp, vision])
    assert reach.covers("local", [Subject.parse("user:alice")])
    assert not reach.covers("user:bob", [nlp, Subject.parse("component:vision")])
    assert Reach(principal=alice, right=Right.ALL).covers("user:bob")
    assert not Reach(principal=OWNER, right=Right.NO).covers("local")
    with pytest.raises(NotAllowed, match="request r1 is neither yours"):
        reach.check("request r1", "user:bob", [nlp])
