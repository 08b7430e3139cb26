"""What a store keeps, what it refuses, and that a batch is all or nothing (S34)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairpool.app.records import AnyDeclared, KeyUse, Kind, Lease, RequestQuery, RunStatus
from fairpool.app.store_errors import (
    InvariantBroken,
    KeyUsed,
    MissingReference,
    NameTaken,
    NodeTaken,
    PolicyExists,
    StaleLeader,
)
from fairpool.core.amounts import vector
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, RequestId
from fairpool.core.plan import Claim
from fairpool.core.pools import NodeState, Ordering, Placement, Pool, PoolState
from fairpool.core.reasons import Code, Reason
from fairpool.core.requests import Demand, PartPlacement, Status
from tests.conformance.store_samples import (
    BLUE,
    K8S,
    NOW,
    RED,
    Trial,
    allocated,
    change,
    changed,
    document,
    ended,
    grant,
    node,
    policy,
    pool,
    preempting,
    profile,
    request,
    run,
    step,
)


def test_every_declared_object_comes_back_as_it_was_put(on: Trial) -> None:
    rich = changed(
        pool("rich", nodes=(node("n2", 8), node("n1", 4, NodeState.CORDONED))),
        capacity=vector({"license/matlab": 3, "step_run": 10}),
        state=PoolState.DRAINING,
        ordering=Ordering.FIFO,
        backfill=False,
        placement=Placement.SPREAD,
        max_bypass_s=0,
        components=frozenset({"k8s", "slurm"}),
    )
    labelled = changed(
        rich, nodes=(replace(node("n2", 8), gpu_type="A100", labels=(("zone", "b"), ("a", "ü"))), node("n1"))
    )
    forbidding = policy(
        reserved=vector({"gpu": 2}),
        limit=(("gpu", 4000), ("tpu", 0)),
        priority=-5,
        weight=2500,
        dedicated=True,
        grace_s=0,
        min_runtime_s=60,
        profiles=("half",),
    )
    objects: list[AnyDeclared] = [
        replace(pool(), note={"description": "for all", "tags": ["a", 1, None, True, 0.5]}),
        labelled,
        changed(pool("tidy"), placement=Placement.DEFRAGMENT),
        forbidding,
        policy(BLUE, profiles=()),
        profile(),
        document(Kind.COMPONENT, "k8s", {"kind": "orchestrator", "config": {"namespace": "ml"}}),
        document(Kind.STACK, "prod", {"orchestrator": "k8s"}),
        document(Kind.SETTINGS, "settings", {"require_policy": True}),
    ]
    on.commit(put=tuple(objects))
    found = on.reopened().load().declared
    assert sorted(found, key=lambda one: one.id) == sorted(objects, key=lambda one: one.id)


def test_putting_an_object_again_replaces_all_that_it_was_made_of(on: Trial) -> None:
    first = pool("shared", nodes=(node("n1"), node("n2")))
    on.commit(put=(first, policy(reserved=vector({"gpu": 2}), limit=vector({"gpu": 4}))))
    second = changed(first, nodes=(node("n2", 2),))
    loose = policy(reserved=vector({"gpu": 1}))
    on.commit(put=(second, loose))
    assert on.store.reader.declared.all(Kind.POOL) == (second,)
    assert on.store.reader.declared.all(Kind.POLICY) == (loose,)


def test_dropped_objects_are_gone_and_their_names_are_free(on: Trial) -> None:
    on.commit(put=(pool(), policy()))
    on.commit(drop=((Kind.POOL, "pool-shared"), (Kind.POLICY, "policy-red-pool-shared")))
    on.commit(put=(pool(object_id="other"),))
    assert [one.id for one in on.reopened().load().declared] == ["other"]


def test_a_second_object_of_one_name_is_refused(on: Trial) -> None:
    on.commit(put=(pool(), document(Kind.STACK, "prod", {})))
    with pytest.raises(NameTaken, match="pool"):
        on.commit(put=(pool(object_id="other"),))
    with pytest.raises(NameTaken):
        on.commit(put=(replace(document(Kind.STACK, "prod", {}), id="other"),))
    on.commit(put=(document(Kind.COMPONENT, "prod", {}),))  # names are taken per kind


def test_a_subject_has_one_policy_on_a_pool(on: Trial) -> None:
    on.commit(put=(pool(), policy()))
    with pytest.raises(PolicyExists):
        on.commit(put=(policy(object_id="second"),))


def test_a_pool_that_policies_speak_of_cannot_go_alone(on: Trial) -> None:
    on.commit(put=(pool(), policy()))
    with pytest.raises(MissingReference):
        on.commit(drop=((Kind.POOL, "pool-shared"),))
    with pytest.raises(MissingReference):
        on.commit(put=(policy(BLUE, of="no-such-pool"),))
    with pytest.raises(MissingReference):
        on.commit(drop=((Kind.STACK, "never was"),))


WIDE = policy(RED, also=(PoolId("pool-c"), PoolId("pool-b")))


def test_a_policy_over_several_pools_keeps_them_in_its_order(on: Trial) -> None:
    on.commit(put=(pool(), pool("b"), pool("c"), WIDE, policy(BLUE)))
    assert WIDE in on.reopened().load().declared
    assert WIDE.spec in on.reopened().load().snapshot.policies
    narrower = changed(WIDE, also=(PoolId("pool-b"),))
    on.commit(put=(narrower,))
    assert narrower in on.reopened().load().declared


def test_a_policy_over_several_pools_needs_all_of_them(on: Trial) -> None:
    on.commit(put=(pool(), pool("b"), pool("c")))
    with pytest.raises(MissingReference):
        on.commit(put=(changed(WIDE, also=(PoolId("no-such-pool"),)),))
    on.commit(put=(WIDE,))
    with pytest.raises(MissingReference):
        on.commit(drop=((Kind.POOL, "pool-c"),))
    on.commit(drop=((Kind.POLICY, WIDE.id), (Kind.POOL, "pool-c")))


@pytest.mark.parametrize("gone", ["pool-shared", "pool-b", "pool-c"])
def test_a_pool_goes_in_one_batch_with_the_policies_that_are_taken_out_of_it(on: Trial, gone: str) -> None:
    on.commit(put=(pool(), pool("b"), pool("c"), WIDE, policy(BLUE, of="pool-b")))
    narrower = WIDE.spec.without(PoolId(gone))
    assert narrower is not None
    drop = ((Kind.POOL, gone), *(((Kind.POLICY, "policy-blue-pool-b"),) if gone == "pool-b" else ()))
    on.commit(put=(changed(WIDE, pool=narrower.pool, also=narrower.also),), drop=drop)
    (found,) = [one for one in on.reopened().load().declared if one.id == WIDE.id]
    assert found.spec == narrower


def test_a_node_belongs_to_one_pool_and_moves_in_one_batch(on: Trial) -> None:
    a, b = pool("a", nodes=(node("n1"), node("n2"))), pool("b", nodes=(node("n3"),))
    on.commit(put=(a, b))
    with pytest.raises(NodeTaken):
        on.commit(put=(changed(b, nodes=(node("n3"), node("n1"))),))
    on.commit(put=(changed(b, nodes=(node("n3"), node("n1"))), changed(a, nodes=(node("n2"),))))
    moved = on.store.reader.declared.get(Kind.POOL, "pool-b")
    assert moved is not None
    assert isinstance(moved.spec, Pool)
    assert [one.name for one in moved.spec.nodes] == ["n3", "n1"]


def test_a_reservation_over_its_limit_is_refused(on: Trial) -> None:
    on.commit(put=(pool(),))
    with pytest.raises(InvariantBroken) as refused:
        on.commit(put=(policy(reserved=vector({"gpu": 4}), limit=vector({"gpu": 2})),))
    assert refused.value.constraint == "ck_policy_amounts_reserved_within_limit"


def test_every_field_of_a_request_comes_back(on: Trial) -> None:
    full = request(
        "r1",
        subjects=(RED, K8S),
        demand=Demand((vector({"gpu": 8, "mcpu": 500}), vector({"gpu": 8, "mcpu": 500}), vector({"gpu": 0.5}))),
        preemptible=False,
        priority=-3,
        profile="half",
        pool="shared",
        max_runtime_s=3600,
        wait_timeout_s=0,
        created_by="user:alice",
        name="train ✓",
        run="run-1",
        step="step-1",
        retry_of="r0",
        idempotency_key="once",
        labels={"experiment": "a b", "": "empty key"},
        details={"command": ["python", "train.py"], "host": None},
    )
    bare = replace(request("r2", subjects=()), lease=None)
    on.commit(inserted=(full, bare))
    assert on.reopened().reader.requests.get(["r1", "r2", "r3"]) == {"r1": full, "r2": bare}


def test_every_state_of_a_request_comes_back(on: Trial) -> None:
    held = replace(grant((0, 1000), (3, 1000)), parts=(PartPlacement("n1", ((0, 1000),)), PartPlacement("n2", ())))
    claim = Claim(
        request=RequestId("waits"),
        pool=PoolId("pool-shared"),
        policy=PolicyId("policy-red"),
        parts=(PartPlacement("n1", ((1, 1000), (2, 500))),),
    )
    no = Reason(code=Code.POOL_FULL, pool=PoolId("p"), key="gpu", asked=1000, free=0, degraded=True)
    states = {
        "waits": replace(request("waits").state, version=2, claim=claim),
        "holds": allocated(held),
        "leaves": preempting(replace(grant((1, 1000), sequence=2), pool_name="other")),
        "told": preempting(grant((2, 1000), sequence=3), None),
        "evicted": ended(preempting(grant((2, 1000), sequence=4)), Status.PREEMPTED, "deadline"),
        "never": replace(ended(request("never").state, Status.REJECTED), reasons=(no, Reason(code=Code.NO_POLICY))),
        "done": ended(allocated(grant((0, 1000), sequence=5)), Status.RELEASED),
        "ungoverned": allocated(replace(grant(sequence=6, pool=None), parts=())),
    }
    on.commit(inserted=tuple(request(name) for name in states))
    on.commit(updated=tuple((RequestId(name), state) for name, state in states.items()))
    found = on.reopened().reader.requests.get(list(states))
    assert {name: record.state for name, record in found.items()} == states


def test_a_restart_finds_what_waits_and_what_is_held(on: Trial) -> None:
    """S34."""
    on.commit(put=(pool(), policy(), document(Kind.SETTINGS, "x", {"require_policy": True})))
    on.commit(inserted=tuple(request(name) for name in ("r3", "r1", "r2", "r4")))
    held = grant((0, 1000), sequence=7)
    on.commit(
        updated=(
            (RequestId("r1"), allocated(held)),
            (RequestId("r4"), ended(request("r4").state, Status.CANCELLED)),
        ),
        changes=(change("r1", "allocated"), change("r4", "cancelled")),
        sequence=7,
    )
    stored = on.reopened().load()
    assert [one.id for one in stored.snapshot.queued] == ["r2", "r3"]
    assert stored.snapshot.allocations == (held.allocation(request("r1").request),)
    assert stored.snapshot.sequence == 7
    assert stored.snapshot.require_policy is False  # it is an object of another id that says so
    assert set(stored.live) == {"r1", "r2", "r3"}
    assert stored.history_seq == 2


def test_the_settings_say_whether_a_policy_is_required(on: Trial) -> None:
    settings = replace(document(Kind.SETTINGS, "settings", {"require_policy": True}), id="settings")
    on.commit(put=(settings,))
    assert on.reopened().load().snapshot.require_policy is True


def test_renewed_leases_are_kept_and_count_as_no_change(on: Trial) -> None:
    """S35."""
    on.commit(inserted=(request("r1"),))
    lease = Lease(until=Instant(NOW + 500 * SECOND), length_s=120)
    on.commit(renewed=((RequestId("r1"), lease),))
    record = on.reopened().load().live[RequestId("r1")]
    assert (record.lease, record.state.version) == (lease, 1)
    with pytest.raises(MissingReference):
        on.commit(renewed=((RequestId("nobody"), lease),))


def test_a_batch_that_cannot_be_changes_nothing_at_all(on: Trial) -> None:
    """S34: every change of status is one transaction."""
    on.commit(put=(pool(),), inserted=(request("r1"),), changes=(change("r1"),))
    before = on.store.load()
    with pytest.raises(NameTaken):
        on.commit(
            put=(pool("other"), policy()),
            inserted=(request("r2"), request("r1")),
            updated=((RequestId("r1"), allocated(grant((0, 1000)))),),
            runs=(run("run-1"),),
            changes=(change("r2"),),
        )
    assert on.store.load() == before
    assert on.store.reader.runs.match("run-1") == ()
    on.commit(updated=((RequestId("r1"), allocated(grant((0, 1000)))),))  # and the device is still free


def test_a_change_of_an_unknown_request_is_refused(on: Trial) -> None:
    with pytest.raises(MissingReference):
        on.commit(updated=((RequestId("nobody"), allocated(grant((0, 1000)))),))


@pytest.mark.parametrize(
    ("state", "constraint"),
    [
        (replace(allocated(grant((0, 1000))), grant=None), "ck_requests_held"),
        (replace(allocated(grant((0, 1000))), status=Status.QUEUED), "ck_requests_not_held"),
        (replace(allocated(grant((0, 1000))), status=Status.PREEMPTING), "ck_requests_evicted"),
        (replace(preempting(grant((0, 1000))), status=Status.ALLOCATED), "ck_requests_not_evicted"),
        (replace(allocated(grant((0, 1000))), ended_at=NOW), "ck_requests_ended"),
        (replace(ended(allocated(grant()), Status.RELEASED), ended_at=None), "ck_requests_ended"),
        (replace(ended(allocated(grant()), Status.RELEASED), grant=None), "ck_requests_was_held"),
        (allocated(replace(grant(), policy=None)), "ck_requests_pool_and_policy"),
        (allocated(grant((0, 1000)), version=0), "ck_requests_version"),
        (allocated(grant((0, 1001))), "ck_held_devices_share"),
        (allocated(grant((0, 0))), "ck_held_devices_share"),
    ],
)
def test_a_state_that_no_decision_should_say_is_refused(on: Trial, state: object, constraint: str) -> None:
    on.commit(inserted=(request("r1"),))
    with pytest.raises(InvariantBroken) as refused:
        on.commit(updated=(("r1", state),))
    # A share above one breaks two rules at once, and which is seen first is the database's business.
    assert refused.value.constraint in (constraint, "tr_held_devices_shares")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (allocated(grant((0, 1000))), request("r1").state),
        (preempting(grant((0, 1000))), allocated(grant((0, 1000)))),
        (preempting(grant((0, 1000))), ended(allocated(grant((0, 1000))), Status.RELEASED)),
        (ended(allocated(grant((0, 1000))), Status.RELEASED), allocated(grant((0, 1000)))),
        (ended(request("r1").state, Status.CANCELLED), ended(request("r1").state, Status.EXPIRED)),
    ],
)
def test_a_status_never_goes_backwards(on: Trial, before: object, after: object) -> None:
    on.commit(inserted=(request("r1"),))
    on.commit(updated=(("r1", before),))
    with pytest.raises(InvariantBroken):
        on.commit(updated=(("r1", after),))


def test_one_device_is_held_by_one_whole_or_by_shares_up_to_one(on: Trial) -> None:
    on.commit(inserted=tuple(request(f"r{i}") for i in range(6)))

    def take(name: str, device: int, share: int, sequence: int, **where: str) -> None:
        held = grant((device, share), sequence=sequence, **where)
        on.commit(updated=((RequestId(name), allocated(held)),))

    take("r0", 0, 1000, 1)
    with pytest.raises(InvariantBroken):
        take("r1", 0, 1000, 2)
    with pytest.raises(InvariantBroken):
        take("r1", 0, 1, 2)
    take("r1", 1, 500, 2)
    take("r2", 1, 500, 3)
    with pytest.raises(InvariantBroken):
        take("r3", 1, 1, 4)
    with pytest.raises(InvariantBroken):
        take("r3", 1, 1000, 4)
    take("r3", 0, 1000, 4, node="another")
    take("r4", 0, 1000, 5, pool="pool-other")


def test_a_device_goes_from_one_request_to_the_next_in_one_batch(on: Trial) -> None:
    on.commit(inserted=(request("r1"), request("r2")))
    first = allocated(grant((0, 1000), sequence=1))
    on.commit(updated=((RequestId("r1"), first),))
    second = allocated(grant((0, 1000), sequence=2))
    on.commit(updated=((RequestId("r2"), second), (RequestId("r1"), ended(first, Status.RELEASED))))
    assert set(on.reopened().load().live) == {"r2"}


def test_what_a_deleted_pool_let_go_holds_its_devices_no_more(on: Trial) -> None:
    on.commit(inserted=(request("r1"), request("r2")))
    on.commit(updated=((RequestId("r1"), allocated(grant((0, 1000), sequence=1))),))
    unaccounted = replace(grant((0, 1000), sequence=1), pool=None, policy=None)
    on.commit(updated=((RequestId("r1"), allocated(unaccounted, version=3)),))
    on.commit(updated=((RequestId("r2"), allocated(grant((0, 1000), sequence=2))),))
    assert set(on.store.load().live) == {"r1", "r2"}


def test_two_live_grants_never_share_a_place_in_the_order(on: Trial) -> None:
    on.commit(inserted=(request("r1"), request("r2")))
    on.commit(updated=((RequestId("r1"), allocated(grant((0, 1000), sequence=5))),))
    with pytest.raises(InvariantBroken):
        on.commit(updated=((RequestId("r2"), allocated(grant((1, 1000), sequence=5))),))


def test_an_idempotency_key_is_used_once_per_kind(on: Trial) -> None:
    use = KeyUse(key="k", kind=Kind.REQUEST, object="r1", fingerprint="abc", at=NOW)
    on.commit(inserted=(request("r1"),), keys=(use,))
    with pytest.raises(KeyUsed):
        on.commit(inserted=(request("r2"),), keys=(replace(use, object="r2"),))
    on.commit(keys=(replace(use, kind=Kind.RUN, object="run-1"),))
    reader = on.reopened().reader.requests
    assert reader.key(Kind.REQUEST, "k") == use
    assert reader.key(Kind.REQUEST, "other") is None
    assert reader.get(["r2"]) == {}


def test_runs_and_steps_are_replaced_by_what_is_reported_later(on: Trial) -> None:
    begun = run("run-1", labels={"a": "b"}, user="alice", stack="prod", details={"x": [1]})
    working = step("step-1", "run-1", index=2, component="k8s", log="s1.log", details={"gpu": 1})
    on.commit(runs=(begun,), steps=(working,))
    over = replace(begun, status=RunStatus.FAILED, version=2, error="boom", ended_at=NOW)
    failed = replace(working, status=RunStatus.FAILED, version=2, attempt=1, request="r1", started_at=NOW, ended_at=NOW)
    on.commit(runs=(over,), steps=(failed,))
    reader = on.reopened().reader.runs
    assert reader.match("run-1") == (over,)
    assert reader.steps("run-1") == (failed,)
    with pytest.raises(MissingReference):
        on.commit(steps=(step("step-2", "no-such-run"),))


def test_only_the_current_leader_can_commit(on: Trial) -> None:
    usurper = on.store.leases.acquire("first", NOW, 60)
    with pytest.raises(StaleLeader) as refused:
        on.commit(inserted=(request("r1"),))
    assert (refused.value.token, refused.value.current) == (on.token, usurper.token)
    on.commit(token=usurper.token, inserted=(request("r2"),))
    with pytest.raises(StaleLeader):
        on.commit(token=usurper.token + 1, inserted=(request("r3"),))
    assert on.store.reader.requests.count(RequestQuery()) == {Status.QUEUED: 1}
