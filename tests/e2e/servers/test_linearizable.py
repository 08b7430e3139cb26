"""Concurrent callers of two servers over one PostgreSQL, whose leader is killed in the middle: all that they saw can be
told as one order of calls."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
import urllib3

from tests.e2e.servers.installation import Installation, Server
from tests.e2e.servers.linearizing import Called, is_linearizable
from tests.waiting import wait_until

POOLS = ("a", "b", "c")
CALLERS = 6
CALLS_AFTER = 15
"""That every caller has to get answered after the leader was killed."""
RETRYABLE = (408, 429, 502, 503, 504)


def read(began: float, ended: float, version: int, value: int) -> Called:
    return Called(began, ended, saw=(version, value))


def change(began: float, ended: float, expected: int, value: int, made: int | None) -> Called:
    return Called(began, ended, expected, value, None if made is None else (made, value))


@pytest.mark.parametrize(
    ("calls", "holds"),
    [
        ([change(0, 1, 1, 7, 2), read(2, 3, 2, 7)], True),
        ([change(0, 1, 1, 7, 2), read(2, 3, 1, 0)], False),  # an old state after the change had ended
        ([change(0, 4, 1, 7, 2), read(2, 3, 1, 0), read(3, 4, 2, 7)], True),  # beside it, both may be seen
        ([change(0, 4, 1, 7, 2), read(1, 2, 2, 7), read(3, 4, 1, 0)], False),  # but never back
        ([change(0, 1, 1, 7, 2), change(0, 1, 1, 8, None)], True),
        ([change(0, 1, 1, 7, 2), change(0, 1, 1, 8, 2)], False),  # two winners
        ([change(0, 1, 1, 7, None), read(2, 3, 1, 0)], False),  # refused, and nobody came first
        ([Called(0, expected=1, value=7), read(2, 3, 1, 0)], True),  # nobody knows, and it has not happened
        ([Called(0, expected=1, value=7), read(2, 3, 1, 0), read(4, 5, 2, 7)], True),  # or late
        ([Called(2, expected=1, value=7), read(0, 1, 2, 7)], False),  # but never before it was called
    ],
)
def test_the_checker_accepts_what_one_order_explains_and_refuses_the_rest(calls: list[Called], holds: bool) -> None:
    assert is_linearizable(calls, (1, 0)) is holds


class Recorder:
    """Callers that read and change registers at any of the servers, and note when and what."""

    def __init__(self, servers: list[Server]) -> None:
        self.servers = servers
        self.calls: dict[str, list[Called]] = {pool: [] for pool in POOLS}
        self.values = count(1)
        self.unknown = 0
        self.answered = [0] * CALLERS
        self.stop = threading.Event()
        self._noting = threading.Lock()

    def run(self, caller: int) -> None:
        draw = random.Random(caller)
        known = dict.fromkeys(POOLS, 1)
        while not self.stop.is_set():
            pool, server = draw.choice(POOLS), draw.choice(self.servers)
            called = self._read(server, pool) if draw.random() < 0.5 else self._change(server, pool, known[pool])
            if called is None:
                continue  # a read that was not answered says nothing
            if called.saw is not None:
                known[pool] = called.saw[0]
            with self._noting:
                self.calls[pool].append(called)
                self.answered[caller] += not called.is_unknown
                self.unknown += called.is_unknown

    def _read(self, server: Server, pool: str) -> Called | None:
        began = time.monotonic()
        try:
            answer = server.call("GET", f"/pools/{pool}")
        except urllib3.exceptions.HTTPError:
            return None
        if answer.status in RETRYABLE:
            return None
        assert answer.status == 200, answer.body
        return Called(began, time.monotonic(), saw=(answer.json["version"], answer.json["capacity"].get("x", 0)))

    def _change(self, server: Server, pool: str, expected: int) -> Called:
        value, began = next(self.values), time.monotonic()
        headers = {"If-Match": f'"{expected}"'}
        try:
            answer = server.call("PATCH", f"/pools/{pool}", {"capacity": {"x": value}}, headers=headers)
        except urllib3.exceptions.HTTPError:
            return Called(began, expected=expected, value=value)
        if answer.status in RETRYABLE:
            return Called(began, expected=expected, value=value)
        ended = time.monotonic()
        if answer.status == 412:
            return Called(began, ended, expected, value)
        assert answer.status == 200, answer.body
        return Called(began, ended, expected, value, (answer.json["version"], answer.json["capacity"]["x"]))


@pytest.mark.timeout(300)
def test_what_callers_saw_through_a_fail_over_is_one_order_of_calls(
    installation: Installation, new_postgres_url: str, record_property: Callable[[str, object], None]
) -> None:
    installation.url = new_postgres_url
    leader, follower = installation.start("one"), installation.start("two")
    for pool in POOLS:
        leader.call.ok("POST", "/pools", {"name": pool, "capacity": {"x": 0}})
    recorder = Recorder([leader, follower])
    with ThreadPoolExecutor(CALLERS) as threads:
        running = [threads.submit(recorder.run, caller) for caller in range(CALLERS)]
        try:
            wait_until(lambda: min(recorder.answered) >= CALLS_AFTER, what="every caller to be answered")
            leader.kill()
            recorder.servers.remove(leader)
            wait_until(lambda: follower.leads, what="the follower to lead")
            so_far = list(recorder.answered)
            wait_until(
                lambda: all(now >= before + CALLS_AFTER for now, before in zip(recorder.answered, so_far, strict=True)),
                what="every caller to be answered again",
            )
        finally:
            recorder.stop.set()
        for one in running:
            one.result(timeout=60)
    for pool, calls in recorder.calls.items():
        assert sum(call.expected is not None and call.saw is not None for call in calls) > 3, pool
        assert is_linearizable(calls, (1, 0)), f"no order explains what was seen of pool {pool}: {calls}"
    counted = sum(map(len, recorder.calls.values()))
    told = f"{counted:,} calls of {CALLERS} callers through a fail-over, {recorder.unknown} of unknown outcome"
    record_property("figure", f"linearizability: {told}")
