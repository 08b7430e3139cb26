"""A full disk: said, nothing half done, and the store goes on once there is room."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fairpool.app.store_errors import StoreFull
from fairpool.store import maintenance
from tests.conformance.store_samples import Trial, change, request, trial
from tests.tidy import tree


def fill(on: Trial, *, size: int = 20) -> int:
    """Commit until there is no room; how many batches were acknowledged."""
    for number in range(10_000):
        names = [f"r{number:05}-{part}" for part in range(size)]
        try:
            on.commit(inserted=tuple(map(request, names)), changes=tuple(map(change, names)))
        except StoreFull:
            return number
    raise AssertionError("it never became full")


def allow_pages(on: Trial, pages: int) -> None:
    with on.store._writing() as connection:  # type: ignore[attr-defined]  # SQLite's own limit
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")


def test_a_full_database_refuses_the_commit_whole_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    on = trial("sqlite", tmp_path)
    allow_pages(on, 120)
    acknowledged = fill(on)
    assert acknowledged > 0
    stored = on.store.load()  # reading goes on
    assert (len(stored.live), stored.history_seq) == (acknowledged * 20, acknowledged * 20)
    with pytest.raises(StoreFull, match="nothing was changed; make room"):
        on.commit(inserted=tuple(request(f"again-{part}") for part in range(200)))
    allow_pages(on, 100_000)
    on.commit(inserted=(request("after"),))
    assert set(on.reopened().load().live) == {*stored.live, "after"}
    on.store.close()
    assert maintenance.check(f"sqlite:///{tmp_path / 'fairpool.db'}").problems == ()


def run_alone(program: str, argument: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, argument]
    return subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True, timeout=90, check=False)


# A limit on the size of any file that the process writes, as a quota would be: the log cannot grow, whatever SQLite
# believes. It holds for the whole process, so it has one of its own.
UNDER_A_QUOTA = """
import resource, sys
from pathlib import Path
from tests.conformance.store_samples import request, trial
from tests.integration.test_store_full import fill
on = trial("sqlite", Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
acknowledged = fill(on)
stored = on.store.load()
assert 0 < len(stored.live) == stored.history_seq == acknowledged * 20, (len(stored.live), acknowledged)
try:
    on.store.leases.renew(on.token, 10**15, 60)
except Exception as error:
    print(type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
on.store.leases.renew(on.token, 10**15, 60)
on.commit(inserted=(request("after"),))
assert set(on.reopened().load().live) == {*stored.live, "after"}
on.store.close()
print("went on")
"""


def test_a_disk_without_room_refuses_the_commit_whole_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    done = run_alone(UNDER_A_QUOTA, str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[-2] == "went on"
    assert maintenance.check(f"sqlite:///{tmp_path / 'fairpool.db'}").problems == ()


OPENING_UNDER_A_QUOTA = """
import resource, sys
from fairpool.app.store_errors import StoreFull
from fairpool.store.opening import open_store
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
try:
    open_store(sys.argv[1])
except StoreFull as error:
    print(error.message)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
open_store(sys.argv[1]).close()
"""


def test_a_database_that_finds_no_room_when_it_is_made_can_be_made_later(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'fairpool.db'}"
    done = run_alone(OPENING_UNDER_A_QUOTA, url)
    assert (done.returncode, done.stderr) == (0, "")
    assert "make room" in done.stdout
    assert maintenance.check(url).problems == ()
