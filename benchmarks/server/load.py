"""What a server with a SQLite file does for its callers on this machine.

Each call is a whole one: a real process, a real socket, JSON both ways, and an answer only after the database has it on
disk.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fairpool.admin import processes
from fairpool.wire import local_server
from fairpool.wire.routes import API

BULK = 500
CLIENTS = 8


class Caller:
    """One client's connection. As light as a client can be: what is measured is the server, on the same two cores."""

    def __init__(self, url: str, token: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        data = self._data(method, API + path, body)
        return json.loads(data) if data else None

    def text(self, path: str) -> str:
        """What a path outside of the API answers."""
        return self._data("GET", path).decode()

    def _data(self, method: str, path: str, body: object = None) -> bytes:
        sent = None if body is None else json.dumps(body).encode()
        self.connection.request(method, path, body=sent, headers=self.headers)
        answer = self.connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {data.decode()}")
        return data


def request(gpus: float = 1, pool: str = "gpus") -> dict[str, object]:
    return {"demand": {"gpu": gpus}, "subjects": ["team:bench"], "pool": pool, "lease_s": 3600}


def submit_for(url: str, token: str, seconds: float, bulk: int, begin: Any, done: Any) -> None:
    """One client process: submit as fast as answers come, and say how many requests were acknowledged."""
    call = Caller(url, token)
    call("GET", "/pools")
    begin.wait()
    count, until = 0, time.perf_counter() + seconds
    body = {"requests": [request(1000, "far")] * bulk}
    while time.perf_counter() < until:
        if bulk:
            call("POST", "/requests:bulk", body)
            count += bulk
        else:
            call("POST", "/requests", request(1000, "far"))
            count += 1
    done.put(count)


def throughput(url: str, token: str, *, clients: int, seconds: float, bulk: int) -> float:
    """Acknowledged requests per second from `clients` processes."""
    return throughput_of([url], token, clients=clients, seconds=seconds, bulk=bulk)


def throughput_of(urls: Sequence[str], token: str, *, clients: int, seconds: float, bulk: int) -> float:
    """As `throughput`, of several servers: each client calls one of them."""
    context = multiprocessing.get_context("spawn")
    begin, done = context.Barrier(clients + 1), context.Queue()
    workers = [
        context.Process(target=submit_for, args=(urls[number % len(urls)], token, seconds, bulk, begin, done))
        for number in range(clients)
    ]
    for worker in workers:
        worker.start()
    begin.wait()
    began = time.perf_counter()
    counts = [done.get() for _ in workers]
    took = time.perf_counter() - began
    for worker in workers:
        worker.join()
    return float(sum(counts) / took)


def grant_latency_ms(call: Caller, rounds: int = 300) -> list[float]:
    """From the call to the answer that carries the allocation."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        made = call("POST", "/requests?wait_s=10", request())
        found.append((time.perf_counter() - began) * 1000)
        assert made["status"] == "allocated", made
        call("POST", f"/requests/{made['id']}/release")
    return found


def wake_latency_ms(call: Caller, other: Caller, rounds: int = 100) -> list[float]:
    """From the call that releases to the moment at which a waiting client has read that it was granted."""
    found = []
    holder = call("POST", "/requests?wait_s=10", request(8))
    for _ in range(rounds):
        waiting = call("POST", "/requests", request(8))
        heard: list[float] = []

        def wait(waiting: Any = waiting, heard: list[float] = heard) -> None:
            path = f"/requests/{waiting['id']}?wait_s=30&after_version={waiting['version']}"
            assert other("GET", path)["status"] == "allocated"
            heard.append(time.perf_counter())

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.02)
        began = time.perf_counter()
        call("POST", f"/requests/{holder['id']}/release")
        thread.join()
        found.append((heard[0] - began) * 1000)
        holder = waiting
    call("POST", f"/requests/{holder['id']}/release")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Latencies in milliseconds; submissions that were acknowledged per second."""

    grant_ms: float
    grant_p99_ms: float
    wake_ms: float
    wake_worst_ms: float
    single_per_s: float
    bulk_per_s: float


def measured(*, seconds: float = 5, clients: int = CLIENTS) -> Measured:
    """All figures, from a fresh server in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        found = processes.start(directory)
        token = local_server.read_token(directory) or ""
        call, other = Caller(found.url, token), Caller(found.url, token)
        try:
            call("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 8}})
            call("POST", "/pools", {"name": "far", "capacity": {"gpu": 1000}})
            call("POST", "/policies", {"pool": "gpus", "subject": "team:bench"})
            call("POST", "/policies", {"pool": "far", "subject": "team:bench"})
            grants = grant_latency_ms(call)
            wakes = wake_latency_ms(call, other)
            single, bulk = (
                throughput(found.url, token, clients=clients, seconds=seconds, bulk=size) for size in (0, BULK)
            )
        finally:
            processes.stop(directory)
    return Measured(
        grant_ms=statistics.median(grants),
        grant_p99_ms=statistics.quantiles(grants, n=100)[98],
        wake_ms=statistics.median(wakes),
        wake_worst_ms=max(wakes),
        single_per_s=single,
        bulk_per_s=bulk,
    )
