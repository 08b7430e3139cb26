"""The store on PostgreSQL: what SQLite is measured with, and lists of a million requests, also over HTTP."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from benchmarks import million
from benchmarks import store as one_store
from benchmarks.figures import Figure, at_most, timed_s
from benchmarks.server.load import Caller
from fairpool.app.ports import Reader
from fairpool.app.records import HistoryQuery, Kind, RequestQuery, RunQuery
from fairpool.core.requests import Status
from fairpool.store.opening import open_store
from tests.e2e.servers.installation import Installation
from tests.postgres import running

DURABLE: Final[Mapping[str, object]] = {
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
}
"""As a team runs it, unlike the cluster of the tests."""

PAGE_MS: Final = 50
WARM: Final = 10
_LIVE: Final = frozenset({Status.QUEUED, Status.ALLOCATED, Status.PREEMPTING})

REQUESTS: Final[Mapping[str, RequestQuery]] = {
    "view=all": RequestQuery(),
    "view=live": RequestQuery(statuses=_LIVE),
    "view=queued": RequestQuery(statuses=frozenset({Status.QUEUED})),
    "view=active": RequestQuery(statuses=frozenset({Status.ALLOCATED, Status.PREEMPTING})),
    "view=all&status=rejected": RequestQuery(statuses=frozenset({Status.REJECTED})),
    "view=all&status=rejected,cancelled": RequestQuery(statuses=frozenset({Status.REJECTED, Status.CANCELLED})),
    "view=all&status=expired": RequestQuery(statuses=frozenset({Status.EXPIRED})),
    "view=live&pool=p3": RequestQuery(statuses=_LIVE, pool="pool-3"),
    "view=all&pool=p3": RequestQuery(pool="pool-3"),
    "view=live&subject=team:t3": RequestQuery(statuses=_LIVE, subject="team:t3"),
    "view=all&subject=team:t3": RequestQuery(subject="team:t3"),
    "view=all&subject=user:nobody": RequestQuery(subject="user:nobody"),
    "view=live&profile=half": RequestQuery(statuses=_LIVE, profile="half"),
    "view=all&profile=half": RequestQuery(profile="half"),
    "view=live&name=train-7": RequestQuery(statuses=_LIVE, name="train-7"),
    "view=all&name=train-7": RequestQuery(name="train-7"),
    "view=all&run=n000000500": RequestQuery(run="n000000500"),
    "view=live&label=project=x11": RequestQuery(statuses=_LIVE, labels={"project": "x11"}),
    "view=all&label=project=x11": RequestQuery(labels={"project": "x11"}),
    "view=all&label=project=none": RequestQuery(labels={"project": "none"}),
    "view=live&label=env=prod": RequestQuery(statuses=_LIVE, labels={"env": "prod"}),
    "view=all&label=env=prod": RequestQuery(labels={"env": "prod"}),
    "view=all&label=env=prod&label=project=x11": RequestQuery(labels={"env": "prod", "project": "x11"}),
    "view=all&label=env=prod&subject=team:t3": RequestQuery(labels={"env": "prod"}, subject="team:t3"),
}
"""Each filter that the API has, with and without those that have ended, by how the API spells it."""

HISTORY: Final = (HistoryQuery(), HistoryQuery(kind=Kind.REQUEST), HistoryQuery(actor="user:u3"))


def run() -> Iterator[Figure]:
    """All figures."""
    with running(**DURABLE) as cluster:
        with closing(open_store(cluster.new_database())) as store:
            yield from one_store.figures(store, {})
        url = cluster.new_database()
        yield Figure(name="filling it with a million requests", value=timed_s(lambda: million.fill(url)), unit="s")
        yield from _read(url)
        yield from _over_http(url)


class Timed:
    """How long pages took, in milliseconds: the first of its kind, and those after it."""

    def __init__(self) -> None:
        self.first: dict[str, float] = {}
        self.warm: dict[str, list[float]] = {}

    def take(self, name: str, page: Callable[[], object]) -> None:
        """Ask for one page again and again."""
        self.first[name] = timed_s(page) * 1000
        self.warm[name] = [timed_s(page) * 1000 for _ in range(WARM)]

    def figures(self, what: str) -> Iterator[Figure]:
        """The figures of all of them. Each worst one says which."""
        medians = {name: statistics.median(found) for name, found in self.warm.items()}
        slowest, slowest_first = max(medians, key=medians.__getitem__), max(self.first, key=self.first.__getitem__)
        middle = statistics.median(medians.values())
        yield at_most(f"{what}, median", middle, "ms", PAGE_MS)
        yield at_most(f"… slowest: {slowest}", medians[slowest], "ms", PAGE_MS)
        yield Figure(name="… slowest single call", value=max(map(max, self.warm.values())), unit="ms")
        yield Figure(name="… first calls, median", value=statistics.median(self.first.values()), unit="ms")
        yield at_most(f"… slowest: {slowest_first}", self.first[slowest_first], "ms", PAGE_MS)


def _read(url: str) -> Iterator[Figure]:
    requests, history, runs = Timed(), Timed(), Timed()
    for oldest_first in (False, True):
        for name, query in REQUESTS.items():
            # A store of its own for each: the first call finds neither a connection nor a statement.
            with closing(open_store(url)) as store:
                reader: Reader = store.reader
                requests.take(
                    f"{name}&order={'oldest' if oldest_first else 'newest'}",
                    lambda reader=reader, query=query: reader.requests.page(query, oldest_first=oldest_first),  # type: ignore[misc]  # noqa: B023
                )
    with closing(open_store(url)) as store:
        for number, asked in enumerate(HISTORY):
            history.take(str(number), lambda asked=asked: store.reader.history.page(asked, newest_first=True))  # type: ignore[misc]
        runs.take("all", lambda: store.reader.runs.page(RunQuery()))
        yield from requests.figures("page of 1,000,000 requests")
        yield Figure(name="page of the history, median", value=_median(history), unit="ms")
        yield Figure(name="page of runs, median", value=_median(runs), unit="ms")
        yield Figure(name="a restart, 10,000 live of 1,000,000", value=timed_s(store.load), unit="s")


def _median(timed: Timed) -> float:
    return statistics.median(value for found in timed.warm.values() for value in found)


def _over_http(url: str) -> Iterator[Figure]:
    """A list as a client gets it: from the server that decides, and from the other one, which passes it on."""
    with tempfile.TemporaryDirectory() as folder:
        installation = Installation(Path(folder), url)
        try:
            servers = [installation.start(name) for name in ("one", "two")]
            time.sleep(1)  # those that can start do
            for server, what in zip(servers, ("over HTTP", "… by way of another server"), strict=True):
                call, timed = Caller(server.url, installation.token), Timed()
                for name in REQUESTS:
                    for order in ("newest", "oldest"):
                        path = f"/requests?{name}&order={order}"
                        timed.take(f"{name}&order={order}", lambda path=path: call("GET", path))  # type: ignore[misc]  # noqa: B023
                yield from timed.figures(f"page of 1,000,000 requests {what}")
        finally:
            installation.close()
