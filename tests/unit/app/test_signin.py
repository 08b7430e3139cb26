"""What claims mean: names, groups, roles, teams; what was arranged by hand stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool.app.authz import Role
from fairpool.app.errors import NotAllowed
from fairpool.app.signin import (
    MAX_GROUPS,
    Memberships,
    SignInRules,
    TeamState,
    groups_in,
    identify,
    memberships,
    relevant,
    role_of,
)

RULES = SignInRules()
CLAIMS: dict[str, Any] = {"iss": "https://id.example.org", "sub": "42", "preferred_username": "ada", "name": "Ada"}


# ---- who -----------------------------------------------------------------------------------------------------------


def test_a_name_comes_from_the_claim_that_the_rules_say() -> None:
    claims = {**CLAIMS, "email": "ada@example.org", "person": {"login": "al"}, "https://example.org/login": "url"}
    assert identify(claims, RULES).name == "ada"
    assert identify(claims, replace(RULES, username_claim="email")).name == "ada@example.org"
    assert identify(claims, replace(RULES, username_claim="person.login")).name == "al"
    assert identify(claims, replace(RULES, username_claim="https://example.org/login")).name == "url"


@pytest.mark.parametrize(
    ("claims", "rules", "told"),
    [
        ({"preferred_username": None}, RULES, "claim 'preferred_username' is missing"),
        ({"preferred_username": ""}, RULES, "missing"),
        ({"preferred_username": 7}, RULES, "missing"),
        ({"preferred_username": "Ada Lovelace"}, RULES, "'Ada Lovelace'"),
        ({"preferred_username": "ada\n"}, RULES, "characters that it may not"),
        ({"preferred_username": "a" * 64}, RULES, "64 characters"),
        ({"email": "a@b", "email_verified": False}, replace(RULES, username_claim="email"), "not verified"),
        ({"email": "a@b", "email_verified": "false"}, replace(RULES, username_claim="email"), "not verified"),
        ({}, replace(RULES, allowed_groups=frozenset({"ml"})), "'ml'"),
        ({"groups": ["a"]}, replace(RULES, allowed_groups=frozenset({"ml"})), "'a'"),
        ({"_claim_names": {"groups": "src1"}}, RULES, "more groups than the provider lists"),
        ({"groups": [str(n) for n in range(MAX_GROUPS + 1)]}, RULES, "at most"),
    ],
)
def test_whoever_cannot_be_named_or_may_not_come_in_is_told_why(
    claims: dict[str, Any], rules: SignInRules, told: str
) -> None:
    with pytest.raises(NotAllowed, match=told):
        identify({**CLAIMS, **claims}, rules)


def test_what_people_are_called_hides_no_control_characters() -> None:
    found = identify({**CLAIMS, "name": "Ada\x1b[31m", "email": ["no", "text"]}, RULES)
    assert (found.display_name, found.email) == ("Ada[31m", "")


@pytest.mark.parametrize(
    ("claims", "path", "groups"),
    [
        ({}, "groups", ()),
        ({"groups": ["b", "a", "b"]}, "groups", ("a", "b")),
        ({"groups": "one"}, "groups", ("one",)),
        ({"groups": ["a", 7, None, ""]}, "groups", ("a",)),
        ({"groups": {"a": 1}}, "groups", ()),
        ({"realm_access": {"roles": ["a"]}}, "realm_access.roles", ("a",)),
        ({"https://example.org/groups": ["a"]}, "https://example.org/groups", ("a",)),
        ({"realm_access": "text"}, "realm_access.roles", ()),
    ],
)
def test_groups_are_read_wherever_the_provider_puts_them(
    claims: dict[str, Any], path: str, groups: tuple[str, ...]
) -> None:
    assert groups_in(claims, path) == groups


# ---- role -----------------------------------------------------------------------------------------------------------

ROLES = SignInRules(roles={"ops": Role.OPERATOR, "chiefs": Role.ADMIN, "guests": Role.VIEWER})


@pytest.mark.parametrize(
    ("groups", "rules", "known", "role"),
    [
        ((), RULES, None, Role.MEMBER),
        (("ops",), RULES, Role.ADMIN, Role.ADMIN),
        ((), replace(RULES, default_role=Role.VIEWER), None, Role.VIEWER),
        (("ops", "chiefs"), ROLES, None, Role.ADMIN),
        (("guests",), ROLES, Role.ADMIN, Role.VIEWER),
        (("nothing",), ROLES, Role.ADMIN, Role.MEMBER),
    ],
)
def test_roles_are_given_by_hand_unless_groups_give_them(
    groups: tuple[str, ...], rules: SignInRules, known: Role | None, role: Role
) -> None:
    assert role_of(groups, rules, known=known) is role


# ---- teams -----------------------------------------------------------------------------------------------------------


def team(name: str, *members: str, group: str = "") -> TeamState:
    return TeamState(name=name, members=frozenset(members), group=group)


def changed(
    groups: tuple[str, ...], *teams: TeamState, rules: SignInRules = RULES, provided: tuple[str, ...] = ()
) -> Memberships:
    return memberships("ada", groups, rules, teams=teams, provided=provided)


def test_a_group_means_the_team_that_it_is_mapped_to_or_that_names_it_or_has_its_name() -> None:
    rules = SignInRules(teams={"ml-vision": "vision"})
    teams = (team("vision"), team("speech", group="ml-speech"), team("staff"), team("ml-vision"), team("other"))
    found = changed(("ml-vision", "ml-speech", "staff", "unknown"), *teams, rules=rules)
    assert found == Memberships(joined=("speech", "staff", "vision"), left=(), provided=("speech", "staff", "vision"))


def test_a_team_that_is_bound_to_a_group_is_not_entered_by_another_of_its_name() -> None:
    assert changed(("vision",), team("vision", group="ml-vision")).joined == ()


def test_a_team_that_does_not_exist_is_not_made() -> None:
    assert changed(("a",), rules=SignInRules(teams={"a": "nowhere"})) == Memberships(joined=(), left=(), provided=())


def test_what_the_provider_gave_it_takes_away_and_what_was_given_by_hand_stays() -> None:
    teams = (team("given", "ada"), team("by-hand", "ada"), team("bound", "ada", group="g"), team("foreign", "eve"))
    assert changed((), *teams, provided=("given",)) == Memberships(joined=(), left=("bound", "given"), provided=())


def test_a_membership_by_hand_does_not_become_the_providers_when_a_group_says_the_same() -> None:
    first = changed(("staff",), team("staff", "ada"))
    assert first == Memberships(joined=(), left=(), provided=())
    assert changed((), team("staff", "ada"), provided=first.provided).left == ()


NAMES = st.sampled_from(["a", "b", "c", "d", "e"])


@given(
    groups=st.sets(NAMES),
    later=st.sets(NAMES),
    mapped=st.dictionaries(NAMES, NAMES, max_size=3),
    teams=st.dictionaries(NAMES, st.tuples(st.booleans(), st.one_of(st.just(""), NAMES)), max_size=5),
)
def test_signing_in_again_changes_nothing_and_leaving_all_groups_restores_what_was_by_hand(
    groups: set[str], later: set[str], mapped: dict[str, str], teams: dict[str, tuple[bool, str]]
) -> None:
    rules = SignInRules(teams=mapped)
    at_first = {name: team(name, *(["ada"] if inside else []), group=group) for name, (inside, group) in teams.items()}

    def after(known: dict[str, TeamState], said: set[str], provided: tuple[str, ...]) -> Any:
        found = memberships("ada", sorted(said), rules, teams=known.values(), provided=provided)
        assert not set(found.joined) & set(found.left)
        new = {
            name: replace(
                state,
                members=(state.members | {"ada"} if name in found.joined else state.members)
                - ({"ada"} if name in found.left else set()),
            )
            for name, state in known.items()
        }
        return new, found.provided

    known, provided = after(at_first, groups, ())
    again, same = after(known, groups, provided)
    assert (again, same) == (known, provided)
    known, provided = after(known, later, provided)
    known, provided = after(known, set(), provided)
    assert provided == ()
    bound = {*mapped.values(), *(name for name, state in at_first.items() if state.group)}
    inside = {name for name, state in known.items() if "ada" in state.members}
    assert inside == {name for name, state in at_first.items() if "ada" in state.members and name not in bound}


def test_only_groups_that_mean_something_are_kept() -> None:
    rules = SignInRules(teams={"ml": "vision"}, roles={"ops": Role.OPERATOR})
    found = relevant(("ml", "ops", "staff", "g", "noise"), rules, [team("staff"), team("x", group="g")])
    assert found == ("ml", "ops", "staff", "g")
