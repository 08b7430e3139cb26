"""Faulty storage: what was acknowledged is there, or the loss is said; nothing is repaired without a word (S34)."""

from __future__ import annotations

import contextlib
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from fairpool.app.records import HistoryQuery, RequestQuery
from fairpool.app.store_errors import StoreCorrupt, StoreFull, StoreReadOnly
from fairpool.store import backups, maintenance, opening
from tests import postgres
from tests.conformance.store_samples import Trial, change, pool, request, trial, trial_of
from tests.integration.test_store_full import fill

COMMITS = 8
_LOG_HEADER, _FRAME_HEADER = 32, 24
Figure = Callable[[str, object], None]


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def commit(on: Trial, number: int) -> None:
    on.commit(inserted=(request(f"r{number:03}"),), changes=(change(f"r{number:03}"),))


@dataclass(frozen=True, slots=True)
class Left:
    """The files of a server that was killed after so many commits, of which each was acknowledged."""

    folder: Path

    @property
    def frames(self) -> tuple[int, int]:
        """How many frames its log has, and how long each is."""
        log = self.folder / "fairpool.db-wal"
        length = _FRAME_HEADER + struct.unpack(">I", log.read_bytes()[8:12])[0]
        return (log.stat().st_size - _LOG_HEADER) // length, length

    def copied(self, to: Path) -> Path:
        """A copy of them; its main file. The note beside it is about the copy."""
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.folder, to)
        file = to / "fairpool.db"
        note = to / "fairpool.db-witness"
        told = note.read_text().replace(str((self.folder / "fairpool.db").stat().st_ino), str(file.stat().st_ino))
        note.write_text(told)
        return file


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """A killed server's files: all commits are in the log."""
    folder, copy = tmp_path_factory.mktemp("running"), tmp_path_factory.mktemp("killed") / "files"
    on = trial("sqlite", folder)
    on.commit(put=(pool(),))
    for number in range(1, COMMITS + 1):
        commit(on, number)
    left = Left(folder)
    file = left.copied(copy)  # copied in the middle of its life, the files are what a kill leaves
    assert file.exists()
    on.store.close()
    return Left(copy)


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """The file of a server that was stopped in order."""
    on = trial("sqlite", tmp_path)
    on.commit(put=(pool(),))
    for number in range(1, COMMITS + 1):
        commit(on, number)
    on.store.close()
    return tmp_path / "fairpool.db"


def acknowledged(file: Path) -> int:
    """How many of the commits are there; checks that they are the first ones, each whole."""
    store = opening.open_store(url(file))
    with contextlib.closing(store):
        there = sorted(store.load().live)
        assert there == [f"r{number:03}" for number in range(1, len(there) + 1)]
        assert len(store.reader.history.page(HistoryQuery(), limit=500).items) == len(there)
        return len(there)


def contents(file: Path) -> dict[str, bytes]:
    """Of its folder; but for what whoever reads leaves behind: the index of its log, and a log with nothing in it."""
    there = {path.name: path.read_bytes() for path in file.parent.iterdir() if not path.name.endswith("-shm")}
    return {name: held for name, held in there.items() if held}


def is_said(file: Path) -> bool:
    """Whether opening it says what is missing, by the numbers, what to do next, and leaves it as it is."""
    before = contents(file)
    try:
        opening.open_store(url(file)).close()
    except StoreCorrupt as error:
        told = error.message
    else:
        return False
    assert "has lost something" in told or "damaged" in told
    assert "restore" in told
    assert not maintenance.check(url(file)).is_sound
    assert contents(file) == before
    return True


# ---- the write-ahead log ---------------------------------------------------------------------------------------------


def test_what_a_kill_leaves_is_whole(killed: Left, tmp_path: Path) -> None:
    assert acknowledged(killed.copied(tmp_path / "copy")) == COMMITS


def test_a_log_that_was_cut_anywhere_is_said_to_be(killed: Left, tmp_path: Path, record_property: Figure) -> None:
    frames, length = killed.frames
    cuts = [_LOG_HEADER + frame * length + extra for frame in range(frames) for extra in (0, 11, length // 2)]
    for cut in [0, 17, *cuts]:
        file = killed.copied(tmp_path / "copy")
        with (file.parent / "fairpool.db-wal").open("r+b") as log:
            log.truncate(cut)
        assert is_said(file), f"cut at {cut}"
    record_property("figure", f"A write-ahead log cut at {len(cuts) + 2} places: each time the loss is said")


def test_a_log_of_which_the_end_was_overwritten_is_said_to_be(killed: Left, tmp_path: Path) -> None:
    frames, length = killed.frames
    for frame in range(frames):
        for junk in (bytes(length), b"\xa5" * length):
            file = killed.copied(tmp_path / "copy")
            with (file.parent / "fairpool.db-wal").open("r+b") as log:
                log.seek(_LOG_HEADER + frame * length)
                log.write(junk)
            assert is_said(file), f"frame {frame}"


def test_a_byte_that_flipped_anywhere_in_the_log_is_said_or_of_no_account(
    killed: Left, tmp_path: Path, record_property: Figure
) -> None:
    size = (killed.folder / "fairpool.db-wal").stat().st_size
    places = range(5, size, max(1, size // 150))
    for place in places:
        file = killed.copied(tmp_path / "copy")
        flip(file.parent / "fairpool.db-wal", place)
        assert is_said(file) or acknowledged(file) == COMMITS, f"byte {place}"
    record_property("figure", f"A byte flipped at {len(places)} places of a write-ahead log: said, or nothing is lost")


def test_a_log_that_was_taken_away_is_missed(killed: Left, tmp_path: Path) -> None:
    file = killed.copied(tmp_path / "copy")
    (file.parent / "fairpool.db-wal").unlink()
    with pytest.raises(StoreCorrupt, match=rf"entry {COMMITS} had been acknowledged.*'fairpool db accept'"):
        opening.open_store(url(file))


def test_a_loss_can_be_accepted_once_it_has_been_said(killed: Left, tmp_path: Path) -> None:
    file = killed.copied(tmp_path / "copy")
    frames, length = killed.frames
    with (file.parent / "fairpool.db-wal").open("r+b") as log:
        log.truncate(_LOG_HEADER + (frames - 8) * length)
    assert is_said(file)
    report = maintenance.accept(url(file))
    assert f"entry {COMMITS} had been acknowledged" in report.losses[0]
    assert maintenance.check(url(file)).is_sound
    assert 0 < acknowledged(file) < COMMITS
    assert maintenance.accept(url(file)).losses == ()


# ---- the main file ---------------------------------------------------------------------------------------------------


def flip(file: Path, place: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(place)
        (byte,) = opened.read(1)
        opened.seek(place)
        opened.write(bytes([byte ^ 0x10]))


def test_a_byte_that_flipped_anywhere_while_the_server_was_stopped_is_said(
    closed: Path, record_property: Figure
) -> None:
    size = closed.stat().st_size
    places = range(3, size, max(1, size // 150))
    for place in places:
        flip(closed, place)
        with pytest.raises(StoreCorrupt, match="restore"):
            opening.open_store(url(closed))
        flip(closed, place)
    assert acknowledged(closed) == COMMITS
    record_property("figure", f"A byte flipped at {len(places)} places of a closed file: said each time")


def test_what_cannot_have_been_written_is_said_when_it_is_read(closed: Path) -> None:
    """A file without a note beside it, as from another machine: SQLite itself sees no flipped letter of a text."""
    store = opening.open_store(url(closed))
    store.close()
    closed.with_name("fairpool.db-witness").unlink()
    whole = closed.read_bytes()
    assert b'[[1,{"gpu":1000}]]' in whole
    closed.write_bytes(whole.replace(b'[[1,{"gpu":1000}]]', b'[[1,{"gpu"z1000}]]'))
    store = opening.open_store(url(closed))
    for look in (
        store.load,
        lambda: store.reader.requests.page(RequestQuery()),
        lambda: store.reader.requests.get(["r001"]),
    ):
        with pytest.raises(StoreCorrupt, match=r"never wrote.*'fairpool db check'.*'fairpool db restore'"):
            look()
    store.close()


def test_a_file_that_another_program_changed_is_said_to_be(closed: Path) -> None:
    closed.write_bytes(closed.read_bytes() + bytes(4096))
    assert is_said(closed)


def test_a_backup_in_the_place_of_a_damaged_file_is_taken_for_what_it_is(closed: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copies" / "b.db"
    copy.parent.mkdir()
    backups.backup(url(closed), copy)
    on = trial_of(url(closed))
    commit(on, COMMITS + 1)
    on.store.close()
    copy.replace(closed)
    assert acknowledged(closed) == COMMITS
    assert maintenance.check(url(closed)).is_sound


def test_a_note_that_is_lost_or_damaged_is_made_anew(closed: Path) -> None:
    note = closed.with_name("fairpool.db-witness")
    for damage in (note.unlink, lambda: note.write_bytes(b"\xff" * 160), lambda: note.write_text("{}")):
        damage()
        assert acknowledged(closed) == COMMITS
    flip(closed, 5_000)
    assert is_said(closed)


def test_a_note_that_cannot_be_written_keeps_nobody_from_working(tmp_path: Path) -> None:
    (tmp_path / "fairpool.db-witness").mkdir()
    on = trial("sqlite", tmp_path)
    commit(on, 1)
    on.store.close()
    assert acknowledged(tmp_path / "fairpool.db") == 1


# ---- disks -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one and a half megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1536k", "fairpool-test", place], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("a small disk takes the right to mount one")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_said_and_loses_nothing(disk: Path) -> None:
    on = trial("sqlite", disk)
    done = fill(on)
    assert done > 0
    stored = on.store.load()
    assert len(stored.live) == stored.history_seq == done * 20
    with pytest.raises(StoreFull, match=r"nothing was changed; make room"):
        on.commit(inserted=tuple(request(f"again-{part}") for part in range(200)))
    subprocess.run(["mount", "-o", "remount,size=16m", disk], check=True)
    on.commit(inserted=(request("after"),))
    on.store.close()
    after = trial_of(url(disk / "fairpool.db"))
    assert set(after.store.load().live) == {*stored.live, "after"}
    after.store.close()
    assert maintenance.check(url(disk / "fairpool.db")).is_sound


def test_a_disk_that_has_become_read_only_is_said_and_left_alone(disk: Path) -> None:
    on = trial("sqlite", disk)
    commit(on, 1)
    on.store.close()
    before = contents(disk / "fairpool.db")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with pytest.raises(StoreReadOnly, match="mend its owner or mode"):
        opening.open_store(url(disk / "fairpool.db"))
    assert contents(disk / "fairpool.db") == before
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    assert acknowledged(disk / "fairpool.db") == 1


# ---- PostgreSQL ------------------------------------------------------------------------------------------------------


def test_postgresql_with_checksums_says_where_a_byte_has_flipped() -> None:
    with postgres.running(checksums=True) as cluster:
        there = cluster.new_database()
        on = trial_of(there)
        on.commit(put=(pool(),))
        for number in range(1, COMMITS + 1):
            commit(on, number)
        on.store.close()
        with psycopg.connect(there, autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            files = [
                connection.execute("SELECT pg_relation_filepath(%s)", [table]).fetchone()
                for table in ("requests", "history")
            ]
        cluster.control("stop")
        for found in files:
            assert found is not None
            flip(cluster.folder / "data" / found[0], 8_100)  # in a row: they fill a page from its end
        cluster.control("start")
        store = opening.open_store(there)
        with pytest.raises(StoreCorrupt, match=r"is damaged.*restore a backup"):
            store.load()
        with pytest.raises(StoreCorrupt):
            store.reader.history.page(HistoryQuery())
        store.close()
        problems = maintenance.check(there).problems
        assert [problem for problem in problems if "invalid page" in problem]
