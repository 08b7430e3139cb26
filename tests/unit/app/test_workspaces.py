"""How a workspace ends: it closes, is taken over, looked at once more, and removed; whatever crashes in between."""

from __future__ import annotations

from typing import Any

import pytest

from fairpool.app import erasing
from fairpool.app.errors import Conflict, Exists, InUse, NotFound
from fairpool.app.leading import Leading
from fairpool.app.records import HistoryQuery, Kind, RequestQuery
from fairpool.app.scheduler import Command
from fairpool.app.store_errors import StaleLeader, StoreUnavailable
from fairpool.app.use_cases import workspaces
from fairpool.app.use_cases.workspaces import Work, WorkspaceRecord, WorkspaceState, state_of
from tests.unit.app.office import Office

NO_WORK = Work()


class Installation:
    """The workspace `default`, and one that is declared there, led by a scheduler of its own."""

    def __init__(self) -> None:
        self.default = Office()
        self.research = Office(clock=self.default.clock, holder="research-1")
        self.record: WorkspaceRecord = self.default.do(workspaces.create, "research")

    def decide(self, command: Command[Any]) -> object:
        return self.default.round(command)[0].result(timeout=0)

    def close(self) -> None:
        self.default.do(workspaces.delete, "research", NO_WORK, {})
        self.research.scheduler.resign()

    def finish(self) -> bool:
        return erasing.finish(self.record, self.research.store, self.decide, self.default.clock, holder="remover")

    @property
    def state(self) -> WorkspaceState | None:
        found = self.default.memory.named(Kind.WORKSPACE, "research")
        return None if found is None else state_of(found)

    def told(self) -> list[str]:
        entries = self.default.store.reader.history.page(HistoryQuery(kind=Kind.WORKSPACE)).items
        return [entry.change.what for entry in entries]


@pytest.fixture
def installation() -> Installation:
    made = Installation()
    made.research.pool(capacity={"gpu": 1})
    made.research.policy()
    return made


def test_a_workspace_that_closes_is_removed_and_its_token_never_comes_again(installation: Installation) -> None:
    before = installation.research.scheduler.leading.token
    assert before is not None
    installation.close()
    assert installation.state is WorkspaceState.CLOSING
    assert installation.finish()
    assert installation.state is None
    assert installation.research.store.load().declared == ()
    leader = installation.research.store.leases.current()
    assert leader is not None and leader.token > before
    assert installation.told() == ["created", "state changed", "erased", "deleted"]


def test_it_is_not_removed_while_a_server_leads_it(installation: Installation) -> None:
    installation.default.do(workspaces.delete, "research", NO_WORK, {})
    assert not installation.finish()
    assert installation.state is WorkspaceState.CLOSING
    assert installation.research.store.load().declared != ()


def test_a_server_that_was_paused_meanwhile_writes_nothing(installation: Installation) -> None:
    token = installation.research.scheduler.leading.token
    assert token is not None
    installation.default.do(workspaces.delete, "research", NO_WORK, {})
    installation.default.clock.advance(60)
    assert installation.finish()
    with pytest.raises(StaleLeader):
        installation.research.store.commit(installation.research.store.batches[0], token)
    assert installation.research.store.load().declared == ()


def test_work_that_came_meanwhile_keeps_the_workspace(installation: Installation) -> None:
    installation.default.do(workspaces.delete, "research", NO_WORK, {})
    installation.research.submit("team:red")
    installation.research.scheduler.resign()
    assert installation.finish()
    assert installation.state is WorkspaceState.OPEN
    assert installation.research.store.reader.requests.count(RequestQuery())
    installation.research.scheduler.cycle([])
    assert installation.research.scheduler.is_leading  # the lease was given back
    [last] = installation.default.store.reader.history.page(
        HistoryQuery(kind=Kind.WORKSPACE), newest_first=True, limit=1
    ).items
    assert "at work" in last.change.cause


@pytest.mark.parametrize("crash", ["erased", "removing", "dropped"])
def test_whoever_leads_next_goes_on_where_the_last_one_crashed(
    installation: Installation, crash: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation.close()

    def fails(*given: object) -> Any:
        raise StoreUnavailable("killed")

    with monkeypatch.context() as broken:
        if crash == "removing":
            broken.setattr(installation.research.store.store, "erase", fails)
        else:
            broken.setattr(workspaces, {"erased": "begin_to_erase", "dropped": "drop"}[crash], fails)
        with pytest.raises(StoreUnavailable):
            installation.finish()
    assert installation.state is WorkspaceState.CLOSING
    after = installation.default = installation.default.restarted()
    assert after.memory.named(Kind.WORKSPACE, "research") is not None
    assert installation.finish()
    assert installation.state is None
    assert installation.research.store.load().declared == ()


def test_nobody_begins_to_lead_what_is_not_there_any_more(installation: Installation) -> None:
    is_there = True
    leases = installation.research.store
    leading = Leading(leases, holder="paused", admits=lambda: is_there)
    installation.research.scheduler.resign()
    now = installation.default.clock.now
    assert leading.keep(now())
    leading.resign()
    is_there = False
    assert not leading.keep(now()) and leading.token is None
    taken = leases.acquire("remover", now(), 60)
    assert taken.holder == "remover"


def test_a_workspace_at_work_does_not_close(installation: Installation) -> None:
    with pytest.raises(InUse, match="1 queued, 2 holding something, 3 runs under way") as refused:
        installation.default.do(workspaces.delete, "research", Work(queued=1, active=2, runs=3), {})
    assert refused.value.counts == {"queued": 1, "active": 2, "runs": 3}
    assert installation.state is WorkspaceState.OPEN


def test_default_neither_comes_nor_goes(installation: Installation) -> None:
    with pytest.raises(Exists, match="installation's own"):
        installation.default.do(workspaces.create, "default")
    with pytest.raises(Conflict, match="stays"):
        installation.default.do(workspaces.delete, "default", NO_WORK, {})
    with pytest.raises(NotFound):
        installation.default.do(workspaces.delete, "elsewhere", NO_WORK, {})


def test_a_name_is_free_again_once_the_workspace_is_gone(installation: Installation) -> None:
    with pytest.raises(Exists):
        installation.default.do(workspaces.create, "research")
    installation.close()
    with pytest.raises(Exists, match="being deleted"):
        installation.default.do(workspaces.create, "research")
    installation.finish()
    again = installation.default.do(workspaces.create, "research")
    assert again.id != installation.record.id
