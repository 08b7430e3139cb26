"""Documents against a scheduler: what they change, what that does to work, all of it or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool.app.errors import Conflict, InUse
from fairpool.app.manifests import planning
from fairpool.app.manifests.carrying_out import Refusals
from fairpool.app.manifests.planning import NotOurs
from fairpool.app.manifests.values import Action, Scope
from fairpool.app.records import Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import components, pools
from fairpool.cli.manifests import plain
from fairpool.core.pools import NodeState
from fairpool.server import declaring
from fairpool.wire.manifests.kinds import KINDS, read_document
from fairpool.wire.reading import InvalidBody
from tests.documents import FULL, Data
from tests.unit.app.office import Office, opened, same_as_stored
from tests.unit.server.applying import SEALER, apply, attempt, carrying, fields, plan, summary

POOL = {"kind": "pool", "name": "gpus", "capacity": {"gpu": 8}}
RED = {"kind": "policy", "pool": "gpus", "subject": "team:red", "reserved": {"gpu": 2}}
BLUE = {"kind": "policy", "pool": "gpus", "subject": "team:blue", "reserved": {"gpu": 2}}
HALF = {"kind": "profile", "name": "half", "demand": {"gpu": 0.5}, "pools": ["gpus"]}
K8S = {"kind": "component", "type": "step_operator", "name": "k8s", "config": {"x": 0.25}}
STACK = {"kind": "stack", "name": "prod", "orchestrator": "local", "step_operators": ["k8s"]}
EVERYTHING = (STACK, RED, HALF, POOL, K8S)


def empty() -> Office:
    """A workspace with its defaults."""
    from fairpool.app.use_cases import stacks

    office = Office()
    office.do(stacks.ensure_defaults)
    return office


def test_documents_come_in_any_order_and_what_is_so_already_is_left_alone() -> None:
    office = empty()
    assert summary(plan(office, *EVERYTHING)) == [
        "create component k8s",
        "create pool gpus",
        "create profile half",
        "create policy gpus/team:red",
        "create stack prod",
    ]
    apply(office, *EVERYTHING)
    again = plan(office, *EVERYTHING)
    assert (again.pending, len(again.kept)) == ((), 5)
    assert same_as_stored(office)


def test_a_field_that_is_left_out_is_as_it_would_be_by_itself() -> None:
    office = empty()
    apply(office, {**POOL, "placement": "spread"}, {**RED, "priority": 5, "limit": {"gpu": 0}, "reserved": {}})
    assert fields(plan(office, POOL, RED)) == {
        "placement": ("spread", "pack"),
        "priority": (5, 0),
        "reserved.gpu": (None, 2),
        "limit.gpu": (0, None),
    }
    apply(office, POOL, RED)
    assert plan(office, POOL, RED).pending == ()


def test_whether_a_node_works_and_its_labels_stay_where_a_document_does_not_speak_of_them() -> None:
    office = empty()
    node = {"name": "n1", "capacity": {"gpu": 4}}
    pool = {"kind": "pool", "name": "gpus", "nodes": [node]}
    apply(office, {**pool, "nodes": [{**node, "labels": {"rack": "1"}}]})

    def cordon(tx: Transaction) -> Any:
        from dataclasses import replace

        return pools.update_node(tx, "gpus", "n1", lambda old: replace(old, state=NodeState.CORDONED))

    office.do(cordon)
    assert plan(office, pool).pending == ()
    said = {**pool, "nodes": [{**node, "state": "ready", "labels": {}}]}
    assert fields(plan(office, said)) == {
        "nodes.n1.state": ("cordoned", "ready"),
        "nodes.n1.labels.rack": ("1", None),
    }
    more = {**pool, "nodes": [{"name": "n2", "capacity": {"gpu": 2}}, node]}
    assert list(fields(plan(office, more))) == ["nodes.n2"]


def test_rules_hold_at_every_step_so_changes_wait_for_one_another() -> None:
    """What one gives up another gets; a pool grows first and shrinks last; a node leaves before it joins."""
    office = empty()
    nodes = [{"name": name, "capacity": {"gpu": 4}} for name in ("n1", "n2")]
    a, b = {"kind": "pool", "name": "a"}, {"kind": "pool", "name": "b"}
    apply(office, POOL, {**RED, "reserved": {"gpu": 6}}, BLUE, {**a, "nodes": nodes[:1]}, {**b, "nodes": nodes[1:]})
    apply(office, POOL, {**RED, "reserved": {"gpu": 2}}, {**BLUE, "reserved": {"gpu": 6}})
    apply(office, {**POOL, "capacity": {"gpu": 12}}, {**RED, "reserved": {"gpu": 6}})
    apply(office, {**POOL, "capacity": {"gpu": 3}}, {**RED, "reserved": {"gpu": 1}}, BLUE)
    apply(office, {**a, "nodes": nodes}, {**b, "nodes": []})
    assert [node.name for node in office.memory.pool("a").spec.nodes] == ["n1", "n2"]
    assert same_as_stored(office)


def test_what_cannot_be_done_in_any_order_changes_nothing_and_spoils_nobody_elses_call() -> None:
    office = empty()
    office.pool()
    wrong = {**RED, "reserved": {"gpu": 9}}
    with pytest.raises(Refusals, match="over the capacity 8"):
        attempt(office, POOL, wrong, K8S)
    mine, other = office.round(
        lambda tx: carrying(tx, (POOL, wrong, K8S), Scope()),
        lambda tx: components.create(tx, "other", kind="orchestrator", flavor="local", config={}),
    )
    assert isinstance(mine.exception(timeout=0), Refusals)
    assert other.result(timeout=0).name == "other"
    office.scheduler.cycle([])
    assert [office.memory.named(Kind.POOL, name) is not None for name in ("p", "gpus")] == [True, False]
    assert office.memory.named(Kind.COMPONENT, "k8s") is None
    assert same_as_stored(office)


def test_what_refers_to_nothing_is_refused_with_everything_else_that_is_wrong() -> None:
    with pytest.raises(Refusals) as caught:
        attempt(empty(), {**RED, "pool": "gpuss"}, POOL, {**HALF, "pools": ["gpus", "cpus"]})
    assert [refusal.change.name for refusal in caught.value.refusals] == ["half", "gpuss/team:red"]


def test_only_what_the_set_made_is_pruned_and_only_the_kinds_that_are_named() -> None:
    office = empty()
    office.pool("by-hand")
    apply(office, POOL, RED, HALF, K8S)
    apply(office, {"kind": "pool", "name": "theirs"}, set_name="theirs")
    assert summary(plan(office, POOL)) == []
    assert summary(plan(office, POOL, prune=True, kinds=frozenset({Kind.POLICY}))) == ["delete policy gpus/team:red"]
    assert summary(plan(office, POOL, prune=True)) == [
        "delete policy gpus/team:red",
        "delete profile half",
        "delete component k8s",
    ]
    apply(office, prune=True)
    assert [pool.name for pool in office.memory.all(Kind.POOL)] == ["by-hand", "theirs"]
    assert same_as_stored(office)


def test_what_belongs_to_another_set_is_changed_only_when_that_is_said() -> None:
    office = empty()
    apply(office, POOL)
    changed = {**POOL, "placement": "spread"}
    with pytest.raises(NotOurs, match="pool 'gpus' belongs to the set 'default', not to 'mine'"):
        plan(office, changed, set_name="mine")
    with pytest.raises(NotOurs):
        plan(office, POOL, set_name="mine", delete=True)
    assert plan(office, POOL, set_name="mine").pending == ()
    apply(office, changed, set_name="mine", overwrite=True)
    assert summary(plan(office, prune=True)) == []
    assert summary(plan(office, prune=True, set_name="mine")) == ["delete pool gpus"]


def test_what_was_made_by_hand_is_adopted_by_a_change_or_when_that_is_said() -> None:
    office = empty()
    office.pool("gpus")
    apply(office, POOL)
    assert summary(plan(office, prune=True)) == []
    assert summary(plan(office, POOL, adopt=True)) == ["adopt pool gpus"]
    apply(office, POOL, adopt=True)
    assert office.memory.pool("gpus").version == 2
    assert summary(plan(office, prune=True)) == ["delete pool gpus"]
    assert same_as_stored(office)


def test_labels_that_others_put_on_a_node_are_not_overwritten_by_accident() -> None:
    office = empty()
    node = {"name": "n1", "capacity": {"gpu": 4}, "labels": {"rack": "1"}}
    pool = {"kind": "pool", "name": "gpus", "nodes": [node]}
    made = read_document(pool).body
    from fairpool.server.bodies import pool_of
    from fairpool.wire.pools import PoolCreate

    assert isinstance(made, PoolCreate)
    office.do(pools.create, pool_of(made))
    other = {**pool, "nodes": [{**node, "labels": {"rack": "2"}}]}
    with pytest.raises(NotOurs, match=r"nodes.n1.labels.rack is '1', and was not set by this set"):
        plan(office, other)
    apply(office, {**pool, "nodes": [{**node, "labels": {"rack": "1", "row": "a"}}]})
    apply(office, other)
    assert office.memory.pool("gpus").spec.nodes[0].labels == (("rack", "2"),)


def test_deleting_goes_by_name_the_other_way_round_and_passes_over_what_is_gone() -> None:
    office = empty()
    apply(office, *EVERYTHING, BLUE)
    office.do(lambda tx: _detached(tx, "gpus/team:blue"))
    documents = (*EVERYTHING, BLUE)
    assert summary(plan(office, *documents, delete=True)) == [
        "delete stack prod",
        "delete policy gpus/team:red",
        "delete profile half",
        "delete pool gpus",
        "delete component k8s",
    ]
    apply(office, *documents, delete=True)
    assert plan(office, *documents, delete=True).pending == ()
    assert same_as_stored(office)


def _detached(tx: Transaction, name: str) -> Any:
    from fairpool.app.use_cases import policies

    found = tx.memory.named(Kind.POLICY, name)
    assert found is not None
    return policies.detach(tx, found.id)


def test_what_goes_along_with_a_pool_is_named_and_work_there_needs_a_word() -> None:
    office = opened()
    held, waits = office.submit(gpus=8), office.submit(gpus=4)
    pool = {"kind": "pool", "name": "p"}
    with pytest.raises(Refusals) as caught:
        attempt(office, pool, delete=True)
    assert isinstance(caught.value.refusals[0].error, InUse)
    trial = attempt(office, pool, delete=True, on_work="let-go")
    assert trial.along == ((Kind.POLICY, "p/team:blue", "delete"), (Kind.POLICY, "p/team:red", "delete"))
    assert {effect.outcome: [one.request for one in effect.requests] for effect in trial.effects} == {
        "rejected": [waits.id],
        "unaccounted": [held.id],
    }
    assert office.status(held.id) == "allocated"


def test_the_plan_says_who_would_be_evicted_rejected_and_started_and_does_none_of_it() -> None:
    office = opened()
    lent = [office.submit("team:blue", 1, name=f"sweep-{number}") for number in range(8)]
    waits = office.submit("team:red", 3, name="train")
    big = office.submit("team:blue", 7, name="big")
    trial = attempt(
        office,
        {"kind": "policy", "pool": "p", "subject": "team:red", "reserved": {"gpu": 4}},
        {"kind": "policy", "pool": "p", "subject": "team:blue", "reserved": {"gpu": 2}, "limit": {"gpu": 6}},
    )
    effects = {effect.outcome: effect.requests for effect in trial.effects}
    assert len(effects["evicted"]) == 3
    assert {one.why for one in effects["evicted"]} == {"reclaim for request train"}
    assert {one.subject for one in effects["evicted"]} == {"team:blue"}
    (rejected,) = effects["rejected"]
    assert (rejected.request, rejected.why) == (
        big.id,
        "7 gpu is asked for, the limit of team:blue on pool p is 6",
    )
    assert [office.status(one.id) for one in (*lent, waits, big)] == ["allocated"] * 8 + ["queued"] * 2
    withdrawn = attempt(office, {"kind": "policy", "pool": "p", "subject": "team:blue"}, delete=True)
    (cancelled,) = [effect.requests for effect in withdrawn.effects if effect.outcome == "cancelled"]
    assert [(one.name, one.why) for one in cancelled] == [("big", "the policy of team:blue on pool p is no more")]
    more = attempt(office, {"kind": "pool", "name": "p", "capacity": {"gpu": 11}})
    assert [(effect.outcome, [one.name for one in effect.requests]) for effect in more.effects] == [
        ("starts", ["train"])
    ]


def test_a_plan_that_rests_on_what_has_changed_says_what_that_is() -> None:
    office = empty()
    apply(office, POOL, RED)
    before = office.ask(lambda memory, now: planning.versions(memory, [Kind.STACK]))
    planning.check_unchanged(before, office.ask(lambda memory, now: planning.versions(memory, [Kind.STACK])))
    apply(office, {**POOL, "placement": "spread"}, BLUE, HALF)
    apply(office, RED, delete=True)
    after = office.ask(lambda memory, now: planning.versions(memory, [Kind.STACK]))
    with pytest.raises(Conflict) as caught:
        planning.check_unchanged(before, after)
    assert str(caught.value) == (
        "since the plan was made: policy 'gpus/team:blue' is new, policy 'gpus/team:red' is gone, "
        "pool 'gpus' has changed, profile 'half' is new; nothing was changed"
    )


def test_a_pool_is_not_pruned_from_under_a_policy_that_is_wanted() -> None:
    on = empty()
    pool, policy = (
        {"kind": "pool", "name": "a", "capacity": {"gpu": 1}},
        {"kind": "policy", "pool": "a", "subject": "team:a"},
    )
    apply(on, pool, policy)
    with pytest.raises(Refusals, match="policy 'a/team:a': it goes with the pool or team that it names"):
        apply(on, policy, prune=True)
    on.scheduler.cycle([])
    assert plan(on, pool, policy, prune=True).pending == (), "nothing was changed"


# ---- whatever the documents are --------------------------------------------------------------------------------------

names = st.sampled_from(["a", "b", "c"])
amounts = st.dictionaries(st.sampled_from(["gpu", "tpu"]), st.sampled_from([0, 0.5, 1, 2, 4]), max_size=2)
some_pools = st.builds(
    lambda name, capacity, settings: {"kind": "pool", "name": name, "capacity": capacity, **settings},
    names,
    amounts,
    st.fixed_dictionaries(
        {}, optional={"placement": st.sampled_from(["pack", "spread", "defragment"]), "backfill": st.booleans()}
    ),
)
some_policies = st.builds(
    lambda pool, subject, settings: {"kind": "policy", "pool": pool, "subject": f"team:{subject}", **settings},
    names,
    names,
    st.fixed_dictionaries(
        {},
        optional={
            "reserved": amounts,
            "limit": amounts,
            "priority": st.integers(-1, 1),
            "weight": st.sampled_from([0.5, 1]),
            "profiles": st.sampled_from([None, []]),
        },
    ),
)
some_documents = st.lists(
    st.one_of(some_pools, some_policies),
    max_size=6,
    unique_by=lambda document: (document["kind"], document.get("name"), document.get("pool"), document.get("subject")),
)


@given(st.lists(some_documents, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_applying_once_or_twice_or_in_another_order_comes_to_the_same(rounds: list[list[Data]], random: Any) -> None:
    one, other = empty(), empty()
    for documents in rounds:
        try:
            apply(one, *documents, prune=True)
        except Refusals:
            one.scheduler.cycle([])
            continue
        assert plan(one, *documents, prune=True).pending == (), "once applied, nothing is left to do"
        shuffled = list(documents)
        random.shuffle(shuffled)
        apply(other, *shuffled, prune=True)
    assert [found.body for found in one.ask(lambda memory, now: declaring.known(memory))] == [
        found.body for found in other.ask(lambda memory, now: declaring.known(memory))
    ]
    assert same_as_stored(one)


# ---- every field -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_every_kind_is_kept_changed_and_told(kind: str) -> None:
    """A field that is new in a kind has to be said here, and then to come through creating and changing."""
    body = KINDS[kind].body
    said = set(FULL[kind]) - {"kind"} | ({"kind"} if kind == "component" else set()) - {"type"}
    said |= {"secrets"} if kind == "vault" else set()  # which must be there before; see below
    said |= {"group"} if kind == "team" else set()  # which stands in place of members; see below
    said |= {"also"} if kind == "policy" else set()  # which no dedicated policy has; see below
    assert said - {"type"} == set(body.model_fields), "say every field, and none as it would be anyway"
    others = [document for name, document in FULL.items() if name != kind]

    office = empty()
    apply(office, *others, FULL[kind])
    (found,) = [known for known in office.ask(lambda memory, now: declaring.known(memory)) if _is(known, kind)]
    wanted = read_document(FULL[kind]).body.model_dump(mode="json")
    assert found.body == wanted

    bare: Data = {name: value for name, value in FULL[kind].items() if body_requires(kind, name)}
    apply(office, bare)
    assert plan(office, bare).pending == ()
    apply(office, FULL[kind])
    (changed,) = [known for known in office.ask(lambda memory, now: declaring.known(memory)) if _is(known, kind)]
    assert changed.body == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_the_history_of_a_change_names_what_has_changed_alone(kind: str) -> None:
    others = [document for name, document in FULL.items() if name != kind]
    bare: Data = {name: value for name, value in FULL[kind].items() if body_requires(kind, name)}
    office = empty()
    apply(office, *others, bare)
    (made,) = [one for one in office.ask(lambda memory, now: memory.all(Kind(kind))) if one.name == named(kind)]
    assert office.history(made.id) == ["created"]
    for field in set(FULL[kind]) - set(bare) - {"description"}:
        apply(office, {**bare, field: FULL[kind][field]})
        assert "description" not in office.history(made.id)[-1]
        apply(office, bare)
    if "description" in FULL[kind]:
        apply(office, {**bare, "description": "another"})
        assert office.history(made.id)[-1] == "description changed"


def named(kind: str) -> str:
    return read_document(FULL[kind]).name


def _is(known: Any, kind: str) -> bool:
    return bool(known.kind == kind and known.name == read_document(FULL[kind]).name)


KEPT = {("pool", "nodes"), ("pool", "capacity"), ("webhook", "waiting_longer_than_s")}
"""What the policy, or another field, rests on."""


def body_requires(kind: str, name: str) -> bool:
    """Fields without which there is no such object, or that do not change."""
    field = KINDS[kind].body.model_fields.get(name)
    return name in ("kind", "type") or (field is not None and field.is_required()) or (kind, name) in KEPT


def test_a_team_of_a_providers_group_keeps_the_members_that_no_file_says() -> None:
    office = empty()
    apply(office, FULL["user"], FULL["team"])
    bound = {"kind": "team", "name": "red", "group": "ml-red"}
    apply(office, bound)
    assert plan(office, bound).pending == ()
    assert office.memory.document(Kind.TEAM, "red").spec == {"members": ["alice"], "group": "ml-red"}
    with pytest.raises(InvalidBody, match="beside members"):
        read_document({**bound, "members": ["alice"]})
    apply(office, {"kind": "team", "name": "red"})
    assert office.memory.document(Kind.TEAM, "red").spec == {"members": []}


def test_a_policy_over_several_pools_comes_through_files_as_it_was_written() -> None:
    office = empty()
    files = [{"kind": "pool", "name": name, "capacity": {"gpu": 8}} for name in ("a", "b", "c")]
    wide: Data = {"kind": "policy", "pool": "a", "also": ["c", "b"], "subject": "team:dev", "reserved": {"gpu": 20}}
    apply(office, *files, wide)
    assert plan(office, *files, wide).pending == ()
    [found] = [
        known.body for known in office.ask(lambda memory, now: declaring.known(memory)) if known.kind == "policy"
    ]
    assert found["also"] == ["c", "b"]
    apply(office, {**wide, "also": ["b"], "reserved": {"gpu": 2}})
    assert [office.memory.pool_name(pool) for pool in office.memory.policy("a/team:dev").spec.pools] == ["a", "b"]


def test_a_vault_keeps_its_secrets_and_a_file_never_says_them() -> None:
    from fairpool.app.use_cases import teams, vaults

    office = empty()
    secrets = {"TOKEN": vaults.Setting(value="s3cret"), "OTHER": vaults.Setting(value="0ther")}
    office.do(teams.create, "red")
    office.do(vaults.create, "red", vaults.VaultChange(secrets=secrets), SEALER)
    vault = {**FULL["vault"], "secrets": {"TOKEN": {"locked": True}, "OTHER": {}}}
    assert "s3cret" not in str(plan(office, vault))
    apply(office, vault)
    assert plan(office, vault).pending == ()
    kept = office.memory.document(Kind.VAULT, "red").spec["secrets"]
    assert isinstance(kept, dict)
    assert "s3cret" in str(kept["TOKEN"])
    apply(office, {**vault, "secrets": {"TOKEN": {}}})
    assert list(cast("Data", office.memory.document(Kind.VAULT, "red").spec["secrets"])) == ["TOKEN"]
    with pytest.raises(Refusals, match="secret NEW has no value yet"):
        attempt(office, {**vault, "secrets": {"NEW": {}}})
    for said in ({"TOKEN": {"value": "s3cret"}}, {"TOKEN": "s3cret"}):
        with pytest.raises(InvalidBody, match=r"secrets\.TOKEN\.value: the value of a secret does") as caught:
            read_document({**vault, "secrets": said})
        assert "s3cret" not in str(caught.value.problems)


def test_what_a_component_is_does_not_change() -> None:
    office = empty()
    apply(office, K8S)
    with pytest.raises(Refusals, match="component 'k8s' is a step_operator, which does not change"):
        attempt(office, {**K8S, "type": "orchestrator"})


def test_the_actions_are_the_words_of_the_api() -> None:
    assert [action.value for action in Action] == ["create", "change", "delete", "adopt", "keep"]


def test_the_example_repository_of_rules_can_be_applied_and_is_what_editors_take() -> None:
    import jsonschema_rs
    import yaml

    from fairpool.wire.manifests import schemas
    from fairpool.wire.manifests.files import read_files

    folder = Path(__file__).parents[3] / "examples" / "rules" / "rules"
    files = read_files([str(folder)])
    documents = [cast("Data", plain(written.placed.value)) for written in files]
    office = empty()
    apply(office, *documents)
    assert plan(office, *documents).pending == ()
    validator = jsonschema_rs.validator_for(schemas.any_kind())
    assert [document for document in documents if not validator.is_valid(document)] == []
    parts = [(path.name, part) for path in sorted(folder.iterdir()) for part in yaml.safe_load_all(path.read_text())]
    assert [name for name, part in parts if not validator.is_valid(part)] == [], "as an editor sees the file"
