"""A world that lives a random life, told in batches: what a scheduler would commit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from fairpool.app.records import AnyDeclared, Batch, Declared, Grant, Kind, Lease, RequestRecord, State, Submission
from fairpool.core import events as ev
from fairpool.core.amounts import vector
from fairpool.core.errors import InvalidRules
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, RequestId
from fairpool.core.plan import Plan
from fairpool.core.planner import decide
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Node, NodeState, Pool
from fairpool.core.requests import Demand, Request, Status
from fairpool.core.world import World
from tests.conformance.store_samples import NOW

SUBJECTS = tuple(Subject.parse(f"team:{name}") for name in ("red", "blue", "green"))
POOLS = ("bucket", "nodes", "small")


class Life:
    """Events at random, each with the decision that follows and the batch that tells of both."""

    def __init__(self, seed: int) -> None:
        self.world = World()
        self.records: dict[RequestId, RequestRecord] = {}
        self.declared: dict[tuple[Kind, str], AnyDeclared] = {}
        self._random = random.Random(seed)
        self.now = NOW
        self._count = 0

    def batches(self, length: int) -> Iterator[Batch]:
        """So many batches; the world is ahead of none of them when the next is asked for."""
        for name in POOLS:
            yield self._rule(ev.PoolSet(pool=self._pool(name)))
        for subject in SUBJECTS:
            yield self._rule(ev.PolicySet(policy=self._policy(subject)))
        steps: list[Callable[[], Batch]] = [self._submit] * 6 + [self._end] * 4 + [self._wait, self._renew]
        steps += [self._change_pool, self._change_policy, self._drop_policy]
        for _ in range(length):
            self.now = Instant(self.now + self._random.randrange(20) * SECOND)
            yield self._random.choice(steps)()

    # ---- what can happen --------------------------------------------------------------------------------------------

    def _submit(self) -> Batch:
        inserted = []
        for _ in range(self._random.randrange(1, 5)):
            self._count += 1
            size = self._random.choice(["0.25", "0.5", 1, 1, 2, 3])
            request = Request(
                id=RequestId(f"r{self._random.randrange(10**6):06}-{self._count}"),
                subjects=tuple(self._random.sample(SUBJECTS, self._random.randrange(1, 3))),
                demand=Demand.of(vector({"gpu": size}), self._random.choice([1, 1, 1, 2])),
                queued_at=self.now,
                preemptible=self._random.random() < 0.8,
                priority=self._random.randrange(3),
                wait_timeout_s=self._random.choice([None, None, 60]),
            )
            lease = Lease(until=Instant(self.now + 60 * SECOND), length_s=60)
            record = RequestRecord(
                request=request,
                submission=Submission(created_at=self.now),
                state=State(status=Status.QUEUED),
                lease=lease,
            )
            self.records[request.id] = record
            inserted.append(record)
            self.world.apply(ev.Submitted(request=request), self.now)
        return replace(self._decided({}), inserted=tuple(inserted))

    def _end(self) -> Batch:
        live = sorted(self.world.queued.keys() | self.world.allocations.keys())
        final: dict[RequestId, Status] = {}
        for request in self._random.sample(live, min(len(live), 2)):
            held = request in self.world.allocations
            how = self._random.choice([Status.RELEASED, Status.EXPIRED] if held else [Status.CANCELLED, Status.EXPIRED])
            for transition in self.world.apply(ev.Ended(request=request, how=how), self.now):
                final[transition.request] = transition.after
        return self._decided(final)

    def _wait(self) -> Batch:
        self.now = Instant(self.now + 40 * SECOND)
        return self._decided({})

    def _renew(self) -> Batch:
        lease = Lease(until=Instant(self.now + 60 * SECOND), length_s=60)
        live = [request for request, record in self.records.items() if not record.status.is_final]
        for request in live:
            self.records[request] = replace(self.records[request], lease=lease)
        return Batch(renewed=tuple((request, lease) for request in live))

    def _change_pool(self) -> Batch:
        return self._rule(ev.PoolSet(pool=self._pool(self._random.choice(POOLS))))

    def _change_policy(self) -> Batch:
        return self._rule(ev.PolicySet(policy=self._policy(self._random.choice(SUBJECTS))))

    def _drop_policy(self) -> Batch:
        policies = sorted(self.world.policies)
        if not policies:
            return Batch()
        dropped = self._random.choice(policies)
        self.world.apply(ev.PolicyDropped(policy=dropped), self.now)
        del self.declared[Kind.POLICY, dropped]
        return replace(self._decided({}), drop=((Kind.POLICY, dropped),))

    # ---- the rules --------------------------------------------------------------------------------------------------

    def _pool(self, name: str) -> Pool:
        if name != "nodes":
            return Pool(id=PoolId(name), name=name, capacity=vector({"gpu": self._random.randrange(3, 7)}))
        states = self._random.choices([NodeState.READY, NodeState.DOWN], [4, 1], k=2)
        nodes = (Node(name=f"n{i}", capacity=vector({"gpu": 2}), state=state) for i, state in enumerate(states))
        return Pool(id=PoolId(name), name=name, nodes=tuple(nodes))

    def _policy(self, subject: Subject) -> Policy:
        pool = PoolId(self._random.choice(POOLS))
        reserved = vector({"gpu": self._random.randrange(2)})
        return Policy(
            id=PolicyId(f"{subject.name}-{pool}"),
            pool=pool,
            subject=subject,
            priority=self._random.randrange(3),
            reserved=reserved,
            min_runtime_s=self._random.choice([0, 30]),
        )

    def _rule(self, event: ev.PoolSet | ev.PolicySet) -> Batch:
        try:
            self.world.apply(event, self.now)
        except InvalidRules:
            return Batch()
        spec = event.pool if isinstance(event, ev.PoolSet) else event.policy
        kind = Kind.POOL if isinstance(spec, Pool) else Kind.POLICY
        old = self.declared.get((kind, spec.id))
        declared: AnyDeclared = Declared(
            kind=kind,
            id=spec.id,
            name=spec.id,
            spec=spec,
            version=old.version + 1 if old else 1,
            created_at=self.now,
            updated_at=self.now,
        )
        self.declared[kind, spec.id] = declared
        return replace(self._decided({}), put=(declared,))

    # ---- what follows -----------------------------------------------------------------------------------------------

    def _decided(self, final: dict[RequestId, Status]) -> Batch:
        """The batch that tells what is other now than the records say."""
        while not (plan := decide(self.world, self.now)).is_empty:
            final |= _finals(plan)
        updated = []
        for request, record in self.records.items():
            state = self._state(record, final.get(request))
            if state != record.state:
                state = replace(state, version=record.state.version + 1)
                self.records[request] = replace(record, state=state)
                updated.append((request, state))
        return Batch(updated=tuple(updated), sequence=self.world.sequence)

    def _state(self, record: RequestRecord, final: Status | None) -> State:
        if record.status.is_final:
            return record.state
        held = self.world.allocations.get(record.id)
        if held is not None:
            return replace(record.state, status=held.status, grant=Grant.of(held), claim=None)
        if self.world.status_of(record.id) is Status.QUEUED:
            return replace(record.state, claim=self.world.claim_of(record.id))
        assert final is not None
        return replace(record.state, status=final, claim=None, ended_at=self.now)


def _finals(plan: Plan) -> dict[RequestId, Status]:
    finished = {finish.request: finish.status for finish in plan.finishes}
    finished |= {cancel.request: Status.CANCELLED for cancel in plan.cancels}
    return finished | {reject.request: Status.REJECTED for reject in plan.rejects}
