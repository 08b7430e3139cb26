"""A backup is one SQLite file, whatever it was made of, and goes back into an empty database of either kind."""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from fairpool.app.records import HistoryQuery, RequestQuery
from fairpool.app.store_errors import StoreError, StoreUnusable
from fairpool.core.ids import SECOND, Instant
from fairpool.store import backups, copying, maintenance, opening
from tests.conformance.store_samples import NOW, Trial, change, pool, request, run, step, trial_of
from tests.conformance.world_batches import Life
from tests.migration.databases import at_revision, rows_of_0001, write_rows_of_0001
from tests.postgres import Cluster

LATER = Instant(NOW + 3600 * SECOND)
New = Callable[[str], str]


@pytest.fixture
def new(tmp_path: Path, postgres_cluster: Cluster) -> Iterator[New]:
    """The URL of a new database of that kind, without tables."""
    made: list[str] = []

    def make(kind: str) -> str:
        if kind == "sqlite":
            made.append(f"sqlite:///{tmp_path / f'{len(made)}.db'}")
        else:
            made.append(postgres_cluster.new_database())
        return made[-1]

    yield make
    for url in made:
        if not url.startswith("sqlite"):
            postgres_cluster.drop_database(url)


def lived_in(url: str) -> Trial:
    """A store in which a lot has happened."""
    on = trial_of(url)
    for batch in Life(7).batches(60):
        on.store.commit(batch, on.token)
    on.commit(changes=tuple(change(f"entry-{number}") for number in range(20)))
    return on


@pytest.mark.parametrize("source", ["sqlite", "postgres"])
@pytest.mark.parametrize("target", ["sqlite", "postgres"])
def test_everything_comes_back_in_a_database_of_either_kind(source: str, target: str, new: New, tmp_path: Path) -> None:
    on = lived_in(new(source))
    backup = tmp_path / "backup.fairpool"
    backups.backup(on.url, backup)
    restored = new(target)
    report = backups.restore(restored, backup, LATER)
    assert report.counts["requests"] == sum(on.store.reader.requests.count(RequestQuery()).values()) > 50
    assert not report.in_use
    copy = opening.open_store(restored)
    assert copy.load() == on.store.load()
    every = RequestQuery()
    assert copy.reader.requests.page(every, limit=500) == on.store.reader.requests.page(every, limit=500)
    assert copy.reader.history.page(HistoryQuery(), limit=500) == on.store.reader.history.page(
        HistoryQuery(), limit=500
    )
    # The next leader has the next token, at once; numbers go on.
    taken = copy.leases.acquire("next", LATER, 60)
    assert taken.token == on.token + 1
    before = copy.reader.history.last_seq()
    trial = Trial(lambda: copy)
    assert trial.commit(inserted=(request("goes-on"),), changes=(change("goes-on"),)) == before + 1
    assert maintenance.check(restored).is_sound
    copy.close()
    on.store.close()


@pytest.mark.parametrize(("source", "target"), [("sqlite", "postgres"), ("postgres", "sqlite")])
def test_all_workspaces_are_backed_up_restored_and_checked(source: str, target: str, new: New, tmp_path: Path) -> None:
    first = lived_in(new(source))
    second = trial_of(first.url, "research")
    second.commit(put=(pool("of-research"),), inserted=(request("of-research"),), changes=(change("of-research"),))
    backup = tmp_path / "backup.fairpool"
    backups.backup(first.url, backup)
    restored = new(target)
    backups.restore(restored, backup, LATER)
    for on, name in ((first, "default"), (second, "research")):
        copy = opening.open_store(restored, workspace=name)
        assert copy.load() == on.store.load()
        assert copy.leases.acquire("next", LATER, 60).token == on.token + 1
        copy.close()
    assert maintenance.check(restored).is_sound
    opening.migrate(restored)
    first.store.close()
    second.store.close()


def test_a_server_s_file_moves_to_postgresql_while_it_is_in_use(new: New) -> None:
    on = lived_in(new("sqlite"))
    target = new("postgres")
    report = backups.restore(target, Path(on.url.removeprefix("sqlite:///")), LATER)
    assert report.in_use
    copy = opening.open_store(target)
    assert copy.load().live == on.store.load().live
    on.commit(inserted=(request("later"),))
    assert "later" not in copy.load().live
    copy.close()
    on.store.close()


def test_a_backup_of_postgresql_is_one_moment_of_a_store_that_is_being_written_to(new: New, tmp_path: Path) -> None:
    on = trial_of(new("postgres"))
    over = threading.Event()

    def write() -> None:
        number = 0
        while not over.is_set():
            names = [f"r{number}-{part}" for part in range(5)]
            on.commit(inserted=tuple(map(request, names)), changes=tuple(map(change, names)))
            number += 1

    writing = threading.Thread(target=write)
    writing.start()
    reports = [backups.backup(on.url, tmp_path / f"{number}.db") for number in range(3)]
    over.set()
    writing.join()
    for report in reports:
        assert stat.S_IMODE(report.path.stat().st_mode) == 0o600
        copy = opening.open_store(f"sqlite:///{report.path}")
        stored = copy.load()
        assert len(stored.live) % 5 == 0
        assert stored.history_seq == len(stored.live)
        copy.close()
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["0.db", "1.db", "2.db"]
    assert not list(tmp_path.glob("*partial*"))
    on.store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_database_that_holds_something_is_not_restored_into(kind: str, new: New, tmp_path: Path) -> None:
    on = lived_in(new("sqlite"))
    backups.backup(on.url, tmp_path / "b.db")
    there = trial_of(new(kind))
    with pytest.raises(StoreUnusable, match=r"the server first uses .* stop it first"):
        backups.restore(there.url, tmp_path / "b.db", NOW)
    there.store.leases.release(there.token)
    there.commit(put=(pool(),))
    with pytest.raises(StoreUnusable, match=r"not empty: it holds .*1 leaders.*1 pools.*FAIRPOOL_DATABASE_URL"):
        backups.restore(there.url, tmp_path / "b.db", NOW)
    assert there.store.load().live == {}
    there.store.close()
    on.store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_restore_that_breaks_off_leaves_an_empty_database_that_can_be_restored_into(
    kind: str, new: New, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = lived_in(new("sqlite"))
    backups.backup(on.url, tmp_path / "b.db")
    target = new(kind)

    def breaks_off(table: str, copied: int, total: int) -> None:
        if table == "requests":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backups.restore(target, tmp_path / "b.db", LATER, progress=breaks_off)
    assert set(maintenance.check(target).counts.values()) == {0}
    assert backups.restore(target, tmp_path / "b.db", LATER).counts["requests"] > 50
    on.store.close()


def test_rows_that_do_not_arrive_are_noticed(new: New, tmp_path: Path) -> None:
    on = lived_in(new("sqlite"))
    backups.backup(on.url, tmp_path / "b.db")
    target = new("postgres")
    opening.migrate(target)
    with psycopg.connect(target, autocommit=True) as operator:
        operator.execute("CREATE RULE lost AS ON INSERT TO labels DO INSTEAD NOTHING")
        operator.execute("CREATE RULE gone AS ON INSERT TO history DO INSTEAD NOTHING")
    with pytest.raises(StoreUnusable, match=r"rows of history.* 0 arrived; nothing was changed"):
        backups.restore(target, tmp_path / "b.db", LATER)
    on.store.close()


def test_what_an_earlier_version_backed_up_is_restored_into_this_one(new: New, tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    at_revision(f"sqlite:///{old}", "0001")
    write_rows_of_0001(f"sqlite:///{old}")
    contents = old.read_bytes()
    target = new("postgres")
    report = backups.restore(target, old, LATER)
    assert report.counts["requests"] == len(rows_of_0001()["requests"])
    assert old.read_bytes() == contents
    assert maintenance.check(target).is_sound


def test_a_postgresql_of_an_earlier_schema_is_brought_up_to_date_before_it_is_backed_up(
    new: New, tmp_path: Path
) -> None:
    url = new("postgres")
    at_revision(url, "0001")
    with pytest.raises(StoreUnusable, match="fairpool db migrate"):
        backups.backup(url, tmp_path / "b.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.db", None, "does not exist"),
        ("text.db", "no database " * 50, "damaged"),
        ("empty.db", "", "holds nothing to restore"),
    ],
)
def test_a_file_that_is_no_backup_is_said_to_be_none(
    name: str, content: str | None, said: str, new: New, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(StoreError, match=said):
        backups.restore(new("postgres"), tmp_path / name, LATER)


def test_progress_is_told_table_by_table(new: New, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "_ROWS_AT_ONCE", 30)
    on = lived_in(new("sqlite"))
    backups.backup(on.url, tmp_path / "b.db")
    told: list[tuple[str, int, int]] = []
    backups.restore(new("postgres"), tmp_path / "b.db", LATER, progress=lambda *one: told.append(one))
    of_requests = [(copied, total) for table, copied, total in told if table == "requests"]
    total = of_requests[0][1]
    assert of_requests == [(min(copied, total), total) for copied in range(30, total + 30, 30)]
    on.store.close()


def test_rows_that_point_to_nothing_are_found(new: New) -> None:
    url = new("postgres")
    at_revision(url, "0001")
    write_rows_of_0001(url)
    with psycopg.connect(url, autocommit=True) as operator:
        operator.execute("ALTER TABLE steps DROP CONSTRAINT fk_steps_run")
        operator.execute("DELETE FROM runs")
    assert "a row of steps points to nothing in runs" in maintenance.check(url).problems
    opening.migrate(url)
    assert "a row of steps points to nothing in runs" in maintenance.check(url).problems


DAMAGE = {
    "UPDATE held_devices SET share = 1000": "held beyond the whole",
    "DELETE FROM subject_sets": "cannot be found by its subjects",
    "DELETE FROM history WHERE seq = 5": "history has gaps: 1 entries",
    "UPDATE workspaces SET grant_sequence = 1": "yet to be given",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_was_changed_by_hand_against_the_rules_is_found(damage: str, new: New) -> None:
    url = new("postgres")
    at_revision(url, "0001")
    write_rows_of_0001(url)
    opening.migrate(url)
    assert maintenance.check(url).problems == ()
    with psycopg.connect(url, autocommit=True) as operator:
        operator.execute("ALTER TABLE held_devices DROP CONSTRAINT ck_held_devices_share")
        operator.execute("DROP INDEX uq_held_devices_whole")
        operator.execute(damage.replace("1000", "1200").encode())
    assert any(DAMAGE[damage] in problem for problem in maintenance.check(url).problems)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_database_without_a_schema_or_with_an_older_one_is_sound_and_wants_a_migration(new: New, kind: str) -> None:
    url = new(kind)
    if kind == "sqlite":
        Path(url.removeprefix("sqlite:///")).touch()
    report = maintenance.check(url)
    assert (report.problems, report.revision, report.needs_migration) == ((), None, True)
    at_revision(url, "0001")
    write_rows_of_0001(url)
    report = maintenance.check(url)
    assert (report.problems, report.revision, report.needs_migration) == ((), "0001", True)


def test_constraints_that_were_never_checked_are_found(new: New) -> None:
    url = new("postgres")
    opening.migrate(url)
    with psycopg.connect(url, autocommit=True) as operator:
        operator.execute("ALTER TABLE steps DROP CONSTRAINT fk_steps_run")
        operator.execute(
            "ALTER TABLE steps ADD CONSTRAINT fk_steps_run FOREIGN KEY (workspace, run_id) "
            "REFERENCES runs (workspace, id) NOT VALID"
        )
    assert "fk_steps_run of steps was never checked" in maintenance.check(url).problems[0]


def test_what_sqlite_kept_of_a_failure_and_postgresql_does_not_is_told_otherwise(new: New, tmp_path: Path) -> None:
    on = trial_of(new("sqlite"))
    on.commit(runs=(run("n1", error="bad \0 byte"),), steps=(step("s1", "n1", error="\0"),))
    backups.backup(on.url, tmp_path / "backup.fairpool")
    restored = new("postgres")
    backups.restore(restored, tmp_path / "backup.fairpool", LATER)
    copy = opening.open_store(restored)
    assert [one.error for one in copy.reader.runs.match("n1")] == ["bad \ufffd byte"]
    assert [one.error for one in copy.reader.runs.steps("n1")] == ["\ufffd"]
    copy.close()
    on.store.close()


def test_rows_travel_as_they_are(new: New) -> None:
    """Quotes, backslashes, signs of other languages: the text that carries the rows says them all."""
    on = trial_of(new("postgres"))
    name = 'it\'s "quoted" \\ 50% $1 :x ü 漢 \U0001f600'
    on.commit(inserted=(request("r1", name=name, labels={name: name}),), changes=(change("r1", name=name),))
    assert on.store.reader.requests.get(["r1"])["r1"].submission.name == name  # type: ignore[index]
    assert [one.id for one in on.store.reader.requests.page(RequestQuery(labels={name: name})).items] == ["r1"]
    on.store.close()
