"""Removing everything that a workspace has, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairpool.app.records import (
    HistoryQuery,
    Kind,
    RequestQuery,
    RunQuery,
    WebhookCursor,
)
from fairpool.app.store_errors import StaleLeader
from fairpool.core.requests import Status
from fairpool.store import copying, erasing, schema
from fairpool.store.maintenance import check
from fairpool.store.urls import database_of
from tests.conformance.store_samples import (
    NOW,
    Trial,
    allocated,
    change,
    document,
    grant,
    policy,
    pool,
    profile,
    request,
    run,
    step,
    trial_of,
)
from tests.conformance.test_store_people import token


def fill(trial: Trial, workspace: str = "default", *, prefix: str = "") -> None:
    """Something in every table."""
    trial.commit(
        put=(pool(), policy(), profile(), document(Kind.USER, "alice", {}), document(Kind.WEBHOOK, "chat", {})),
        inserted=(request(f"{prefix}r1", labels={"a": "b"}), request(f"{prefix}r2")),
        runs=(run(f"{prefix}run1"),),
        steps=(step(f"{prefix}step1", f"{prefix}run1"),),
        tokens=(token(f"{prefix}t1", workspace=workspace),),
        cursors=(WebhookCursor(name="webhook-chat", seq=1),),
        changes=(change("r1"), change("r2")),
        sequence=1,
    )
    trial.commit(updated=((f"{prefix}r1", allocated(grant((0, 1000)))),))


def erased(trial: Trial) -> None:
    while trial.store.erase(trial.token):
        pass


def test_nothing_is_left_but_who_led(on: Trial) -> None:
    fill(on)
    erased(on)
    reader = on.store.reader
    assert on.store.load().declared == () and on.store.load().live == {}
    assert reader.requests.page(RequestQuery()).items == ()
    assert reader.runs.page(RunQuery()).items == ()
    assert reader.history.page(HistoryQuery()).items == ()
    assert reader.tokens.all() == () and reader.cursors.all() == {}
    leader = on.store.leases.current()
    assert leader is not None and leader.token == on.token
    on.store.leases.release(on.token)
    assert on.store.leases.acquire("second", NOW, 60).token == on.token + 1


def test_only_who_leads_may_remove_it(on: Trial) -> None:
    fill(on)
    on.store.leases.release(on.token)
    on.store.leases.acquire("second", NOW, 60)
    with pytest.raises(StaleLeader):
        on.store.erase(on.token)
    assert on.store.reader.requests.count(RequestQuery()) == {Status.QUEUED: 1, Status.ALLOCATED: 1}


def test_what_is_removed_can_all_be_made_again(on: Trial) -> None:
    fill(on)
    erased(on)
    fresh = on.reopened()
    on.token = fresh.leases.acquire("first", NOW, 60).token
    fill(on)
    assert fresh.reader.requests.count(RequestQuery()) == {Status.QUEUED: 1, Status.ALLOCATED: 1}


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a database of each kind is, which several workspaces may share."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{tmp_path / 'fairpool.db'}"


def rows_of(url: str) -> dict[str, int]:
    readers = database_of(url).readers()
    with readers.begin() as connection:
        counts = {name: copying.count(connection, table) for name, table in schema.metadata.tables.items()}
    readers.dispose()
    return counts


def test_other_workspaces_keep_every_row(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "ROWS_AT_ONCE", 3)
    first, second = trial_of(url), trial_of(url, "research")
    fill(first)
    alone = rows_of(url)
    fill(second, "research", prefix="x")
    both = rows_of(url)
    assert all(both[name] == 2 * count for name, count in alone.items() if name != "leaders"), both
    assert both["leaders"] == 2
    erased(second)
    assert rows_of(url) == alone | {"leaders": 2}
    first.store.close()
    second.store.close()


def test_missing_history_is_a_fault_unless_a_workspace_was_erased(url: str) -> None:
    first, second = trial_of(url), trial_of(url, "research")
    first.commit(changes=(change("r1"),))
    fill(second, "research", prefix="x")
    first.commit(changes=(change("r1"),))
    erased(second)
    [told] = check(url).problems
    assert "gaps" in told
    first.commit(changes=(change("w1", "erased", Kind.WORKSPACE),))
    assert check(url).problems == ()
    first.store.close()
    second.store.close()
