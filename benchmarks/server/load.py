"""What a server with a SQLite file does for its callers on this machine.

``python -m benchmarks.server.load [--seconds 5] [--processes 8]`` prints one line per figure. Each call is a whole one:
a real process, a real socket, JSON both ways, and an answer only after the database has it on disk.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import urllib3

from fairpool.admin import processes
from fairpool.wire import local_server
from fairpool.wire.routes import API

BULK = 500


class Caller:
    """One client's connection."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url + API
        self.pool = urllib3.PoolManager(maxsize=4, retries=False, timeout=60)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def __call__(self, method: str, path: str, body: object = None) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        answer = self.pool.request(method, self.url + path, body=sent, headers=self.headers)
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.data.decode()}")
        return json.loads(answer.data) if answer.data else None


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
    context = multiprocessing.get_context("spawn")
    begin, done = context.Barrier(clients + 1), context.Queue()
    arguments = (url, token, seconds, bulk, begin, done)
    workers = [context.Process(target=submit_for, args=arguments) for _ in range(clients)]
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


def measured(seconds: float, clients: int, say: Callable[[str], None]) -> dict[str, float]:
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
            figures: dict[str, float] = {}
            grants = grant_latency_ms(call)
            figures["grant, median ms"] = statistics.median(grants)
            figures["grant, 99th percentile ms"] = statistics.quantiles(grants, n=100)[98]
            wakes = wake_latency_ms(call, other)
            figures["wake after release, median ms"] = statistics.median(wakes)
            figures["wake after release, worst ms"] = max(wakes)
            for bulk, label in ((0, "single"), (BULK, f"bulk of {BULK}")):
                rate = throughput(found.url, token, clients=clients, seconds=seconds, bulk=bulk)
                figures[f"{label} submissions from {clients} processes, per second"] = rate
            for label, value in figures.items():
                say(f"{label}: {value:,.1f}")
            return figures
        finally:
            processes.stop(directory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--processes", type=int, default=8)
    options = parser.parse_args()
    measured(options.seconds, options.processes, print)


if __name__ == "__main__":
    main()
