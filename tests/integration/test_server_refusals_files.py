"""Files and disks that a server cannot work with: it says which and what to do, and leaves them as they are."""

from __future__ import annotations

import resource
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from fairpool.store.migrating import HEAD
from fairpool.wire import local_server
from fairpool.wire.local_server import DATABASE_FILE, LOG_FILE, SERVER_FILE, TOKEN_FILE, NotStarted
from tests.integration.serving import Caller, serving

POOLS = 40


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a server that ended in good order."""
    directory = tmp_path_factory.mktemp("used") / "data"
    with serving(directory) as call:
        for number in range(POOLS):
            call.ok("POST", "/pools", {"name": f"pool-{number}", "capacity": {"gpu": 1}, "description": "x" * 900})
    return directory


# ---- a start --------------------------------------------------------------------------------------------------------


def newer(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()


def of_another_program(database: Path) -> None:
    database.unlink()
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE songs (name)")
    connection.commit()
    connection.close()


def overwritten(begin: float, length: int) -> Callable[[Path], None]:
    def spoil(database: Path) -> None:
        data = bytearray(database.read_bytes())
        at = max(int(len(data) * begin), 100)
        data[at : at + length] = b"\x55" * length
        database.write_bytes(data)

    return spoil


def cut(database: Path) -> None:
    database.write_bytes(database.read_bytes()[: database.stat().st_size // 2])


# fmt: off
DATABASES: list[tuple[str, Callable[[Path], object], tuple[str, ...]]] = [
    ("of a newer version", newer, ("a newer version of", "schema 9999", f"up to {HEAD}", "install that version")),
    ("of another program", of_another_program, ("other tables (songs)", "name another file")),
    ("overwritten at its beginning", overwritten(0, 3000), ("is damaged", "put a backup in its place", "db restore")),
    ("overwritten in its middle", overwritten(0.4, 9000), ("is damaged", "put a backup in its place", "db restore")),
    ("cut off", cut, ("is damaged", "bytes of", "put a backup in its place")),
    ("text", lambda path: path.write_text("no database\n" * 999), ("does not begin as a database does", "a backup")),
    ("a few bytes", lambda path: path.write_bytes(b"SQLite format 3\0"), ("ends after 16 bytes", "a backup")),
]
# fmt: on


@pytest.mark.parametrize(("spoil", "told"), [row[1:] for row in DATABASES], ids=[row[0] for row in DATABASES])
def test_a_database_that_cannot_be_used_is_said_and_left_byte_by_byte(
    used: Path, tmp_path: Path, spoil: Callable[[Path], object], told: tuple[str, ...]
) -> None:
    directory = shutil.copytree(used, tmp_path / "data")
    database = directory / DATABASE_FILE
    spoil(database)
    before = database.read_bytes()
    with pytest.raises(NotStarted) as caught:
        local_server.start(directory)
    for words in (str(database), "left as it is", *told):
        assert words in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert database.read_bytes() == before


@pytest.mark.parametrize("name", [DATABASE_FILE, TOKEN_FILE, LOG_FILE, SERVER_FILE, "server.lock"])
def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(NotStarted, match=f"{tmp_path / name}.*[Dd]irectory"):
        local_server.start(tmp_path)
    assert (tmp_path / name).is_dir()


def test_a_place_where_nothing_can_be_written_is_named() -> None:
    with pytest.raises(
        NotStarted, match=r"the data folder cannot be used: /proc/data: .*FAIRPOOL_DATA_DIR names another"
    ):
        local_server.start(Path("/proc/data"))


def test_a_token_file_that_holds_no_text_is_replaced(tmp_path: Path) -> None:
    (tmp_path / TOKEN_FILE).write_bytes(b"\xff\xfe")
    with serving(tmp_path) as call:
        assert call("GET", "/pools").status == 200


# ---- a full disk ----------------------------------------------------------------------------------------------------


def limit_files(directory: Path, size: int) -> None:
    """No file of the folder's server can grow beyond so many bytes, as if its disk were full or its quota used up."""
    found = local_server.find(directory)
    assert found is not None
    resource.prlimit(found.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


ASK = {"demand": {"gpu": 1}, "subjects": ["team:red"], "labels": {"why": "x" * 190}}


def submitted_until_full(call: Caller) -> list[str]:
    """The ids of the requests that were accepted before the first that was refused for want of room."""
    accepted: list[str] = []
    while len(accepted) < 10_000:
        answer = call("POST", "/requests", ASK)
        if answer.status != 201:
            assert (answer.status, answer.json["type"], answer.headers["retry-after"]) == (507, "disk-full", "5")
            assert "nothing is changed until there is room" in answer.json["detail"]
            assert "the server goes on by itself" in answer.json["help"]
            return accepted
        accepted.append(answer.json["id"])
    raise AssertionError("it never became full")


def known(call: Caller) -> list[str]:
    found: list[str] = []
    cursor = ""
    while True:
        page = call.ok("GET", f"/requests?view=all&limit=1000{cursor}")
        found += [request["id"] for request in page["items"]]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


def test_a_full_disk_refuses_writes_keeps_reading_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with serving(tmp_path) as call:
        call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 1000}})
        call.ok("POST", "/policies", {"pool": "gpus", "subject": "team:red"})
        written = max(path.stat().st_size for path in tmp_path.iterdir())
        limit_files(tmp_path, written + 200_000)
        accepted = submitted_until_full(call)
        assert accepted
        assert sorted(known(call)) == sorted(accepted)  # neither one less than was acknowledged nor one more
        limit_files(tmp_path, 0)  # a small change could find room somewhere; now none does
        writes: list[tuple[str, str, object]] = [
            ("POST", "/pools", {"name": "more", "capacity": {"gpu": 1}}),
            ("PATCH", "/pools/gpus", {"backfill": False}),
            ("POST", "/requests:bulk", {"requests": [ASK] * 50}),
            ("POST", f"/requests/{accepted[0]}/release", None),
            ("DELETE", "/pools/gpus?on_work=let-go", None),
        ]
        assert [call(*write).status for write in writes] == [507] * len(writes)
        reads = ("//healthz", "//readyz", "//metrics", "/pools/gpus", "/policies", f"/requests/{accepted[0]}/explain")
        assert [call("GET", path).status for path in reads] == [200] * len(reads)
        assert call.ok("GET", "/pools/gpus")["version"] == 1
        assert sorted(known(call)) == sorted(accepted)
        limit_files(tmp_path, resource.RLIM_INFINITY)
        after = call.ok("POST", "/requests", ASK)["id"]
        assert call.ok("POST", f"/requests/{accepted[0]}/release")["status"] == "released"
    with serving(tmp_path) as call:
        assert sorted(known(call)) == sorted([*accepted, after])
