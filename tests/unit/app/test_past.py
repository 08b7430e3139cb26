"""The past can be recalled: whatever happened, each moment reads as it was when it was now."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fairpool.app.errors import AppError
from fairpool.app.memory import Memory
from fairpool.app.past.recalling import present, recall
from fairpool.app.records import DECLARED, AnyDeclared, Kind
from fairpool.app.schedules import Window
from fairpool.app.use_cases import components, policies, pools, profiles, requests, stacks, teams, users
from fairpool.core import amounts
from fairpool.core.errors import CoreError
from fairpool.core.ids import Instant, ProfileId
from fairpool.core.policies import Profile
from fairpool.core.pools import Node, NodeState, Pool
from fairpool.core.requests import Status
from tests.unit.app.office import Office, ask, opened, policy


def seen(memory: Memory) -> dict[str, Any]:
    """All that there is to see at a moment."""
    return {
        "declared": {(kind, one.id): whole(one) for kind in DECLARED for one in memory.all(kind)},
        "usage": {
            pool: {key: used for key, used in memory.world.usage(pool).items() if used} for pool in memory.world.pools
        },
        "requests": {
            request: (
                record.status,
                record.state.grant and (record.state.grant.pool, record.state.grant.policy, record.state.grant.parts),
                record.state.grant and record.state.grant.eviction,
            )
            for request, record in memory.live.items()
        },
        "require_policy": memory.world.routes.require_policy,
    }


def whole(one: AnyDeclared) -> tuple[object, ...]:
    note = {key: value for key, value in one.note.items() if value not in (None, "", {})}
    spec = one.spec
    if isinstance(spec, Pool):
        spec = replace(spec, nodes=tuple(sorted(spec.nodes, key=lambda node: node.name)))
    return one.kind, one.name, spec, note, one.version if one.version > 1 else 1


def recalled(office: Office, at: Instant) -> dict[str, Any]:
    now = office.ask(lambda memory, now: present(memory))
    return seen(recall(now, office.store.reader, at))


def test_a_moment_reads_as_it_was_though_everything_has_changed_since() -> None:
    office = opened()
    held = office.submit(gpus=6, name="first")
    waits = office.submit("team:blue", 4)
    then, was = office.clock.now(), seen(office.memory)
    office.clock.advance(10)
    office.do(requests.cancel, waits.id)
    office.do(requests.release, held.id)
    office.do(pools.update, "p", pools.PoolChange(name="q", capacity=(("gpu", 9000),), description="other"))
    office.do(pools.delete, "q", on_work="let-go")
    office.do(users.create, "alice")
    assert office.memory.all(Kind.POOL) == []
    assert recalled(office, then) == {**was, "declared": without_versions_of_gone(was["declared"])}


def without_versions_of_gone(declared: dict[Any, Any]) -> dict[Any, Any]:
    return {key: (*value[:4], 1) for key, value in declared.items()}


def test_before_anything_there_was_nothing_and_now_is_now() -> None:
    office = opened()
    office.submit()
    before = recalled(office, Instant(office.clock.now() - 1))
    assert (before["declared"], before["requests"]) == ({}, {})
    assert recalled(office, office.clock.now()) == seen(office.memory)


names = st.sampled_from(["a", "b", "c"])
sizes = st.integers(1, 6)


class Story(RuleBasedStateMachine):
    """Anything that can happen; of every moment a picture is kept aside."""

    def __init__(self) -> None:
        super().__init__()
        self.office = Office()
        self.office.do(stacks.ensure_defaults)
        self.pictures: list[tuple[Instant, dict[str, Any]]] = []

    def attempt(self, use_case: Any, *args: Any, **named: Any) -> None:
        with suppress(AppError, CoreError):  # refused: then nothing has happened
            self.office.do(use_case, *args, **named)

    @rule(name=names, size=sizes, note=st.sampled_from(["", "said"]))
    def add_pool(self, name: str, size: int, note: str) -> None:
        spec = Pool(id="", name=name, capacity=amounts.vector({"gpu": size}))  # type: ignore[arg-type]
        self.attempt(pools.create, spec, description=note)

    @rule(name=names, size=sizes)
    def add_node_pool(self, name: str, size: int) -> None:
        node = Node(name=f"{name}-1", capacity=amounts.vector({"gpu": size}), gpu_type="A100", labels=(("r", "1"),))
        self.attempt(pools.create, Pool(id="", name=name, nodes=(node,)))  # type: ignore[arg-type]

    @rule(name=names, state=st.sampled_from(NodeState))
    def change_node(self, name: str, state: NodeState) -> None:
        self.attempt(pools.update_node, name, f"{name}-1", lambda node: replace(node, state=state))

    @rule(name=names, other=names, size=sizes, note=st.sampled_from([None, "", "new"]))
    def change_pool(self, name: str, other: str, size: int, note: str | None) -> None:
        change = pools.PoolChange(name=other, capacity=(("gpu", size * 1000),), backfill=size > 3, description=note)
        self.attempt(pools.update, name, change)

    @rule(name=names, on_work=st.sampled_from(["refuse", "drain", "let-go"]))
    def delete_pool(self, name: str, on_work: str) -> None:
        self.attempt(pools.delete, name, on_work=on_work)

    @rule(pool=names, team=names, reserved=st.integers(0, 3), priority=st.integers(0, 2))
    def attach(self, pool: str, team: str, reserved: int, priority: int) -> None:
        made = policy(f"team:{team}", {"gpu": reserved}, priority=priority, limit=(("tpu", 0),)[:0], grace_s=5)
        window = Window(start="0 * * * *", duration_s=1800, reserved=amounts.vector({"gpu": 1}), priority=7)
        self.attempt(policies.attach, pool, made, schedule=(window,) if priority == 2 else ())

    @rule(pool=names, team=names, reserved=st.integers(0, 3))
    def change_policy(self, pool: str, team: str, reserved: int) -> None:
        change = policies.PolicyChange(
            reserved=amounts.vector({"gpu": reserved}), limit=(("gpu", 3000),), weight=1500, profiles=()
        )
        self.attempt(policies.update, f"{pool}/team:{team}", change)

    @rule(pool=names, team=names)
    def detach(self, pool: str, team: str) -> None:
        self.attempt(policies.detach, f"{pool}/team:{team}")

    @rule(name=names, pool=names, size=sizes)
    def set_profile(self, name: str, pool: str, size: int) -> None:
        demand = amounts.vector({"gpu": size})
        defaults = profiles.Defaults(max_runtime_s=size)
        spec = Profile(id=ProfileId(""), name=name, demand=demand, pools=(pool,))
        self.attempt(profiles.create, spec, defaults=defaults, description="made")
        self.attempt(profiles.update, name, profiles.ProfileChange(demand=demand, description="changed"))

    @rule(name=names)
    def drop_profile(self, name: str) -> None:
        self.attempt(profiles.delete, name)

    @rule(name=names)
    def people(self, name: str) -> None:
        self.attempt(users.create, name, description="somebody")
        self.attempt(teams.create, name, members=[name])
        self.attempt(components.create, name, kind="orchestrator", flavor="local", config={"x": [name]})

    @rule(name=names, other=names)
    def change_people(self, name: str, other: str) -> None:
        self.attempt(teams.update, name, teams.TeamChange(name=f"{other}s", members=(other,), description=other))
        self.attempt(components.update, name, components.ComponentChange(description=other))

    @rule(name=names)
    def drop_people(self, name: str) -> None:
        self.attempt(users.delete, name)
        self.attempt(components.delete, name)

    @rule(team=names, size=sizes, preemptible=st.booleans())
    def submit(self, team: str, size: int, preemptible: bool) -> None:
        self.attempt(requests.submit, ask(f"team:{team}", size, preemptible=preemptible))

    @precondition(lambda self: self.office.memory.live)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(sorted(self.office.memory.live)))
        use_case = requests.cancel if self.office.memory.live[request].status is Status.QUEUED else requests.release
        self.attempt(use_case, request)

    @rule(seconds=st.sampled_from([1, 7, 100, 1800]))
    def time_passes(self, seconds: int) -> None:
        self.office.pass_time(seconds)

    @invariant()
    def keep_a_picture(self) -> None:
        self.pictures.append((self.office.clock.now(), seen(self.office.memory)))
        self.office.clock.advance(0.5)

    def teardown(self) -> None:
        now = self.office.ask(lambda memory, now: present(memory))
        for at, was in self.pictures:
            found = seen(recall(now, self.office.store.reader, at))
            there = {key for kind in DECLARED for one in self.office.memory.all(kind) for key in [(kind, one.id)]}
            expected = {
                key: value if key in there else (*value[:4], found["declared"].get(key, value)[4])
                for key, value in was["declared"].items()
            }
            assert found == {**was, "declared": expected}


Story.TestCase.settings = settings(max_examples=40, stateful_step_count=20)
TestWhateverHappensEachMomentReadsAsItWas = Story.TestCase
