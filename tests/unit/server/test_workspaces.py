"""Keeping to the workspaces that are declared: what is there opens, what goes closes, and none holds up another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from fairpool.app.errors import AppError, Busy
from fairpool.app.ports import Reader
from fairpool.app.records import Declared, Document, Kind
from fairpool.app.store_errors import StoreCorrupt, StoreUnavailable
from fairpool.app.use_cases.workspaces import WorkspaceRecord
from fairpool.core.ids import Instant
from fairpool.server.problems import Refused
from fairpool.server.workspaces import Workspace, Workspaces
from tests.waiting import wait_until


def record(name: str, *, state: str = "open", id_: str = "") -> Declared[Document]:
    at = Instant(0)
    return Declared(
        kind=Kind.WORKSPACE, id=id_ or f"id-{name}", name=name, spec={"state": state}, created_at=at, updated_at=at
    )


@dataclass
class Loop:
    """A scheduler's thread that only knows whether it leads, or somebody else does."""

    is_leading: bool = True
    stopped: int = 0

    def is_led(self, now: Instant) -> bool:
        return self.is_leading

    def stop(self) -> None:
        self.stopped += 1


@dataclass
class World:
    """What is declared, and what happens to each: fails, hangs, was closed, was removed."""

    records: dict[str, WorkspaceRecord] = field(default_factory=dict)
    fails: dict[str, Exception] = field(default_factory=dict)
    hangs: dict[str, threading.Event] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    still_led: int = 0
    is_away: bool = False
    now: float = 0.0

    def declare(self, *records: WorkspaceRecord) -> None:
        self.records = {one.name: one for one in records}

    def declared(self) -> Mapping[str, WorkspaceRecord]:
        if self.is_away:
            raise StoreUnavailable("the database does not answer")
        return self.records

    def reader(self, name: str) -> Reader:
        raise AssertionError("nobody reads")

    def open(self, record: WorkspaceRecord) -> Workspace:
        if record.name in self.hangs:
            assert self.hangs[record.name].wait(60)
        if record.name in self.fails:
            raise self.fails[record.name]
        self.opened.append(record.id)
        return workspace(record.name, close=lambda: self.closed.append(record.id))

    def finish(self, record: WorkspaceRecord) -> bool:
        if self.still_led:
            self.still_led -= 1
            return False
        del self.records[record.name]
        self.removed.append(record.name)
        return True


def workspace(name: str, **parts: Any) -> Workspace:
    unused: Any = None
    loop: Any = Loop()
    return Workspace(name=name, loop=loop, reader=unused, **parts)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def workspaces(world: World) -> Workspaces:
    return Workspaces(workspace("default"), world, monotonic=lambda: world.now)


def names(workspaces: Workspaces) -> list[str]:
    return [one.name for one in workspaces]


def adjusted(workspaces: Workspaces, *wanted: str) -> None:
    """Keep to what is declared, as the thread does, until exactly these are open."""

    def look() -> bool:
        workspaces.adjust()
        return names(workspaces) == ["default", *wanted]

    wait_until(look, what=f"the open workspaces to be {wanted}")


def test_what_is_declared_opens_and_what_is_gone_closes(world: World, workspaces: Workspaces) -> None:
    world.declare(record("a"), record("b"))
    adjusted(workspaces, "a", "b")
    world.declare(record("b"), record("c"))
    adjusted(workspaces, "b", "c")
    wait_until(lambda: world.closed == ["id-a"], what="a to be closed")
    assert sorted(world.opened) == ["id-a", "id-b", "id-c"]


def test_another_one_of_the_same_name_is_opened_anew(world: World, workspaces: Workspaces) -> None:
    world.declare(record("a"))
    adjusted(workspaces, "a")
    world.declare(record("a", id_="second"))

    def is_second() -> bool:
        workspaces.adjust()
        return world.opened == ["id-a", "second"] and names(workspaces) == ["default", "a"]

    wait_until(is_second, what="the second to be open")
    assert world.closed == ["id-a"]


def test_one_that_cannot_be_opened_takes_no_other_down(world: World, workspaces: Workspaces) -> None:
    world.fails["broken"] = StoreCorrupt("a row makes no sense")
    world.declare(record("broken"), record("sound"))
    adjusted(workspaces, "sound")
    with pytest.raises(AppError):
        asyncio.run(_found(workspaces, "broken"))
    assert [workspaces.serves(name, Instant(0)) for name in ("default", "broken", "sound")] == [True, False, True]
    world.fails.clear()
    workspaces.adjust()
    assert world.opened == ["id-sound"], "it is not tried all the time"
    world.now = 6.0
    adjusted(workspaces, "broken", "sound")
    assert workspaces.serves("broken", Instant(0))


def test_one_that_nobody_decides_for_is_not_served(world: World) -> None:
    unled: Any = Loop(is_leading=False)
    workspaces = Workspaces(replace(workspace("default"), loop=unled), world)
    assert not workspaces.serves("default", Instant(0))


def test_one_that_hangs_keeps_only_its_own_callers_waiting(
    world: World, workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairpool.server.workspaces._OPENS_S", 0.05)
    world.hangs["slow"] = threading.Event()
    world.declare(record("slow"), record("sound"))
    adjusted(workspaces, "sound")

    async def story() -> str:
        with pytest.raises(Busy, match="being opened"):
            await workspaces.of("slow")
        return (await workspaces.of("sound")).name

    assert asyncio.run(story()) == "sound"
    world.hangs["slow"].set()
    adjusted(workspaces, "slow", "sound")


async def _found(workspaces: Workspaces, name: str) -> str:
    return (await workspaces.of(name)).name


def test_a_call_has_its_workspace_looked_up_at_once(world: World, workspaces: Workspaces) -> None:
    world.declare(record("new"))
    assert asyncio.run(_found(workspaces, "new")) == "new"
    assert names(workspaces) == ["default", "new"]
    assert asyncio.run(_found(workspaces, "default")) == "default"


def test_a_bug_while_opening_is_no_callers_business(world: World, workspaces: Workspaces) -> None:
    world.fails["broken"] = RuntimeError("secret details")
    world.declare(record("broken"))
    with pytest.raises(Busy) as told:
        asyncio.run(_found(workspaces, "broken"))
    assert "secret" not in told.value.message and "log" in told.value.message


@pytest.mark.parametrize(("state", "status"), [("", 404), ("closing", 409)])
def test_what_is_not_there_or_about_to_go_is_refused(
    world: World, workspaces: Workspaces, state: str, status: int
) -> None:
    world.declare(*([record("a", state=state)] if state else []))
    with pytest.raises(Refused) as refused:
        asyncio.run(_found(workspaces, "a"))
    assert refused.value.problem.status == status


def test_one_that_closes_is_closed_here_and_then_removed_by_who_leads_default(
    world: World, workspaces: Workspaces
) -> None:
    world.declare(record("a"))
    adjusted(workspaces, "a")
    world.declare(record("a", state="closing"))
    world.still_led = 2
    wait_until(lambda: workspaces.adjust() and world.removed == ["a"], what="a to be removed")
    assert world.closed == ["id-a"] and names(workspaces) == ["default"]


def test_who_follows_removes_nothing(world: World) -> None:
    default = workspace("default")
    following: Any = Loop(is_leading=False)
    workspaces = Workspaces(replace(default, loop=following), world)
    world.declare(record("a", state="closing"))
    workspaces.adjust()
    assert world.removed == [] and "a" in world.records


def test_a_waiting_call_is_woken_when_its_workspace_goes(world: World, workspaces: Workspaces) -> None:
    async def story() -> bool:
        workspaces.attach(asyncio.get_running_loop())
        world.declare(record("a"))
        found = await workspaces.of("a")
        with found.watch.watching("request") as changed:
            world.declare()
            workspaces.adjust()
            async with asyncio.timeout(10):
                await changed.wait()
        return found.watch.closing

    assert asyncio.run(story())


def test_while_the_database_is_away_what_is_open_stays_open(world: World, workspaces: Workspaces) -> None:
    world.declare(record("a"))
    workspaces.start()
    try:
        workspaces.news()
        wait_until(lambda: names(workspaces) == ["default", "a"], what="a to be open")
        world.is_away = True
        workspaces.news()
        assert asyncio.run(_found(workspaces, "a")) == "a"
        with pytest.raises(StoreUnavailable):
            asyncio.run(_found(workspaces, "b"))
        world.is_away = False
        world.declare(record("a"), record("b"))
        workspaces.news()
        wait_until(lambda: names(workspaces) == ["default", "a", "b"], what="b to be open")
    finally:
        workspaces.stop()
    assert sorted(world.closed) == ["id-a", "id-b"]


def test_a_process_that_ends_hands_every_workspace_over_and_opens_none(world: World, workspaces: Workspaces) -> None:
    world.declare(record("a"))
    adjusted(workspaces, "a")
    loops: list[Any] = [one.loop for one in workspaces]
    workspaces.hand_over()
    assert [loop.stopped for loop in loops] == [1, 1]
    world.declare(record("a"), record("b"))
    workspaces.adjust()
    with pytest.raises(Busy):
        asyncio.run(_found(workspaces, "b"))
    assert world.opened == ["id-a"]
