"""Two server processes over one PostgreSQL: what they do together, and how soon one takes over from the other."""

from __future__ import annotations

import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, at_most
from benchmarks.postgres import DURABLE
from benchmarks.server.load import BULK, CLIENTS, Caller, grant_latency_ms, request, throughput_of
from tests.e2e.servers.installation import Installation
from tests.postgres import running

QUEUED = int(os.environ.get("FAIRPOOL_QUEUED", "100000"))
FAILOVERS = int(os.environ.get("FAIRPOOL_FAILOVERS", "20"))


def run() -> Iterator[Figure]:
    """All figures of two servers."""
    with running(**DURABLE) as cluster, tempfile.TemporaryDirectory() as folder:
        installation = Installation(Path(folder), cluster.new_database())
        try:
            call = _prepared(installation)
            urls = [server.url for server in installation.servers.values()]
            several = f"{CLIENTS} client processes"
            for name, bulk in ((f"single submissions, {several}", 0), (f"… in bulk, {BULK} a call, {several}", BULK)):
                rate = throughput_of(urls, installation.token, clients=CLIENTS, seconds=5, bulk=bulk)
                yield Figure(name=name, value=rate, unit="per s")
            _queue(call)
            grants = grant_latency_ms(call)
            yield Figure(name=f"call to grant, {QUEUED:,} queued, median", value=statistics.median(grants), unit="ms")
            yield Figure(name="… 99th percentile", value=statistics.quantiles(grants, n=100)[98], unit="ms")
        finally:
            installation.close()
    with running(**DURABLE) as cluster, tempfile.TemporaryDirectory() as folder:
        installation = Installation(Path(folder), cluster.new_database())
        try:
            _prepared(installation)
            took = [_failover_s(installation) for _ in range(FAILOVERS)]
        finally:
            installation.close()
    yield Figure(name=f"SIGKILL to the next grant, {FAILOVERS} times, median", value=statistics.median(took), unit="s")
    yield at_most("… worst", max(took), "s", 5)


def _prepared(installation: Installation) -> Caller:
    call = Caller(installation.start("one").url, installation.token)
    installation.start("two")
    for pool, gpus in (("gpus", 8), ("far", 1000)):
        call("POST", "/pools", {"name": pool, "capacity": {"gpu": gpus}})
        call("POST", "/policies", {"pool": pool, "subject": "team:bench"})
    return call


def _queue(call: Caller) -> None:
    """So many that wait: for a pool of which one holds everything."""
    call("POST", "/requests", request(1000, "far"))
    queued = call("GET", "/server")["queued"]
    for _ in range(max(0, QUEUED - queued) // BULK):
        call("POST", "/requests:bulk", {"requests": [request(1000, "far")] * BULK})


def _failover_s(installation: Installation) -> float:
    """From the death of the leading server until the other has granted something."""
    leader = installation.leader()
    other = installation.other(leader)
    name = next(name for name, server in installation.servers.items() if server is leader)
    began = time.perf_counter()
    leader.send(signal.SIGKILL)
    while (made := other.call("POST", "/requests", request())).status != 201:
        time.sleep(0.02)
    took = time.perf_counter() - began
    other.call.ok("POST", f"/requests/{made.json['id']}/release", {})
    leader.wait_until_gone()
    installation.start(name)
    return took
