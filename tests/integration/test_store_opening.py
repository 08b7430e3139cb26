"""Opening a database file: who may read it, what is damaged, what was left by a killed writer (S34)."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairpool.app.records import RequestQuery
from fairpool.app.store_errors import StoreCorrupt, StoreError, StoreReadOnly, StoreUnavailable, StoreUnusable
from fairpool.store import backups, maintenance, opening
from tests.conformance.store_samples import Trial, change, pool, request, trial, trial_of
from tests.tidy import tree


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """The file of a closed store with a few hundred requests."""
    on = trial("sqlite", tmp_path)
    on.commit(put=(pool(),))
    for start in range(0, 400, 40):
        some = [f"r{start + number:04}" for number in range(40)]
        on.commit(inserted=tuple(map(request, some)), changes=tuple(map(change, some)))
    on.store.close()
    return tmp_path / "fairpool.db"


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def test_only_the_owner_can_read_the_file_and_its_companions(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        on = trial("sqlite", tmp_path)
        on.commit(inserted=(request("r1"),))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("fairpool.db", "fairpool.db-wal", "fairpool.db-shm", "fairpool.db-witness"), 0o600)
    on.store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fairpool.db", "fairpool.db-witness"]


def test_commits_are_synced_and_references_are_checked(tmp_path: Path) -> None:
    on = trial("sqlite", tmp_path)
    with on.store._writing() as connection:  # type: ignore[attr-defined]  # what SQLite itself says
        found = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert found == ["wal", 2, 1]
    on.store.close()


def test_a_folder_with_odd_letters_in_its_name_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / "100% für? #1 & co"
    folder.mkdir()
    on = trial("sqlite", folder)
    on.commit(inserted=(request("r1"),))
    assert set(on.reopened().load().live) == {"r1"}
    on.store.close()
    assert sorted(path.name for path in folder.iterdir()) == ["fairpool.db", "fairpool.db-witness"]


def flip(path: Path, at: int, length: int = 64) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        found = file.read(length)
        file.seek(at)
        file.write(bytes(byte ^ 0xFF for byte in found))


def overwrite(path: Path, text: str) -> None:
    path.write_text(text)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "its beginning": lambda path: flip(path, 0, 16),
    "its header's page size": lambda path: flip(path, 16, 2),
    "its list of tables": lambda path: flip(path, 100, 400),
    "the head of a page": lambda path: flip(path, 4096 * 20, 12),
    "all pages but the first": lambda path: flip(path, 4096, path.stat().st_size - 4096),
    "half of it cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "one byte cut off": lambda path: os.truncate(path, path.stat().st_size - 1),
    "most of its header cut off": lambda path: os.truncate(path, 50),
    "a text in its place": lambda path: overwrite(path, "not a database, but longer than a header\n" * 20),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_said_to_be_damaged_and_left_as_it_is(damage: str, filled: Path) -> None:
    DAMAGE[damage](filled)
    contents = filled.read_bytes()
    with pytest.raises(StoreCorrupt, match=r"damaged.*left as it is.*backup"):
        opening.open_store(url(filled))
    with pytest.raises(StoreCorrupt):
        opening.migrate(url(filled))
    report = maintenance.check(url(filled))
    assert not report.is_sound
    assert filled.read_bytes() == contents


def test_damage_that_appears_while_it_is_open_is_said_and_not_written_over(filled: Path) -> None:
    store = opening.open_store(url(filled))
    flip(filled, 4096, filled.stat().st_size - 4096)
    with pytest.raises(StoreError) as said:
        store.reader.requests.page(RequestQuery(), limit=500)
    assert isinstance(said.value, StoreCorrupt)
    store.close()


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "fairpool.db").touch()
    on = trial("sqlite", tmp_path)
    assert on.store.load().declared == ()
    on.store.close()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="nowhere"):
        opening.open_store(url(tmp_path / "nowhere" / "f.db"))
    with pytest.raises(StoreUnavailable):
        opening.open_store(url(tmp_path))  # a folder is no file


@pytest.mark.parametrize("wrong", ["oracle://db/fairpool", "sqlite://", "sqlite:///:memory:", "no url at all"])
def test_a_url_that_names_no_file_says_what_is_possible(wrong: str) -> None:
    with pytest.raises(StoreUnusable, match="possible: sqlite:"):
        opening.open_store(wrong)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_cannot_be_written_is_said_at_opening(filled: Path) -> None:
    filled.chmod(0o400)
    with pytest.raises(StoreReadOnly, match="mend its owner or mode"):
        opening.open_store(url(filled))


WRITER = """
import sys
from tests.conformance.store_samples import change, request, trial_of
on = trial_of(sys.argv[1])
number = 0
while True:
    on.commit(inserted=(request(f"r{number}"),), changes=(change(f"r{number}"),))
    print(number, flush=True)
    number += 1
"""


def acknowledged_before_a_kill(url: str, commits: int) -> int:
    """How many commits a process had said to be durable when it was killed after so many of them."""
    command = [sys.executable, "-c", WRITER, url]
    writer = subprocess.Popen(command, cwd=tree.ROOT, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(commits)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in writer.stdout.read().split()]
    writer.wait()
    writer.stdout.close()
    return len(acknowledged)


def check_that_all_is_there_once(url: str, acknowledged: int) -> None:
    on = trial_of(url)
    stored = on.store.load()
    # The last commit may have been durable before its acknowledgement could be written.
    assert len(stored.live) - acknowledged in (0, 1)
    assert set(stored.live) == {f"r{number}" for number in range(len(stored.live))}
    assert stored.history_seq == len(stored.live)
    on.store.close()


@pytest.mark.parametrize("commits", [1, 7, 60])
def test_what_was_acknowledged_before_a_kill_is_there_exactly_once(commits: int, tmp_path: Path) -> None:
    acknowledged = acknowledged_before_a_kill(url(tmp_path / "fairpool.db"), commits)
    assert maintenance.check(url(tmp_path / "fairpool.db")).found.unclean
    check_that_all_is_there_once(url(tmp_path / "fairpool.db"), acknowledged)


def test_what_was_acknowledged_before_a_kill_is_there_exactly_once_on_postgresql(postgres_url: str) -> None:
    check_that_all_is_there_once(postgres_url, acknowledged_before_a_kill(postgres_url, 60))


def test_a_backup_is_one_moment_of_a_store_that_is_being_written_to(tmp_path: Path) -> None:
    on = trial("sqlite", tmp_path)
    on.commit(inserted=(request("before"),), changes=(change("before"),))
    to = tmp_path / "copies" / "b.db"
    to.parent.mkdir()
    report = backups.backup(url(tmp_path / "fairpool.db"), to)
    on.commit(inserted=(request("after"),))
    assert [path.name for path in to.parent.iterdir()] == ["b.db"]
    assert (report.path, report.size_bytes) == (to, to.stat().st_size)
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    copy = opening.open_store(url(to))
    assert set(copy.load().live) == {"before"}
    copy.close()
    on.store.close()


def test_a_backup_replaces_nothing_unless_told_to(tmp_path: Path) -> None:
    on = trial("sqlite", tmp_path)
    source = url(tmp_path / "fairpool.db")
    there = tmp_path / "there.db"
    there.write_text("precious")
    with pytest.raises(StoreUnusable, match="exists"):
        backups.backup(source, there)
    assert there.read_text() == "precious"
    with pytest.raises(StoreUnusable):
        backups.backup(source, tmp_path / "fairpool.db", overwrite=True)  # onto itself
    backups.backup(source, there, overwrite=True)
    assert maintenance.check(url(there)).is_sound
    with pytest.raises(StoreUnusable, match="nothing to copy"):
        backups.backup(url(tmp_path / "none.db"), tmp_path / "x.db")
    on.store.close()


def test_no_backup_is_made_of_a_damaged_file(filled: Path, tmp_path: Path) -> None:
    flip(filled, 4096 * 20, 12)
    with pytest.raises(StoreCorrupt):
        backups.backup(url(filled), tmp_path / "b.db")
    assert not list(tmp_path.glob("b.db*"))


def test_a_check_of_a_sound_file_counts_and_changes_nothing(filled: Path) -> None:
    contents = filled.read_bytes()
    report = maintenance.check(url(filled))
    assert (report.is_sound, report.needs_migration, report.found.unclean) == (True, False, False)
    assert report.counts["requests"] == report.counts["history"] == 400
    assert filled.read_bytes() == contents
    assert not maintenance.check(url(filled.with_name("none.db"))).found.exists


def test_a_lock_that_another_process_keeps_is_said_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairpool.store.sqlite.BUSY_TIMEOUT_S", 0.05)
    on: Trial = trial("sqlite", tmp_path)
    other = opening.open_store(url(tmp_path / "fairpool.db"))
    with other._writing(), pytest.raises(StoreUnavailable, match="locked"):
        on.commit(inserted=(request("r1"),))
    on.commit(inserted=(request("r1"),))
    assert set(on.store.load().live) == {"r1"}
    other.close()
    on.store.close()
