"""Latency and load of one local server: durable submissions, grants and wake-ups over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure, at_least, at_most
from benchmarks.server.load import BULK, CLIENTS, Measured, measured


def run() -> Iterator[Figure]:
    """All figures of the server."""
    found: Measured = measured()
    yield at_most("a request that can start: call to grant, median", found.grant_ms, "ms", 20, (1.5, 4))
    yield Figure(name="… 99th percentile", value=found.grant_p99_ms, unit="ms", recorded=(2.5, 20))
    yield Figure(
        name="release to the waiting client's knowing, median", value=found.wake_ms, unit="ms", recorded=(3, 9)
    )
    yield at_most("… worst", found.wake_worst_ms, "ms", 50, (4, 30))
    several = f"{CLIENTS} client processes"
    yield at_least(f"single submissions, {several}", found.single_per_s, "per s", 1_000, (900, 1_500))
    yield at_least(f"… in bulk, {BULK} a call, {several}", found.bulk_per_s, "per s", 5_000, (6_000, 8_500))
