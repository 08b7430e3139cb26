"""What one client that sends 10,000 calls a second does to another's grants."""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.figures import Figure, at_most
from benchmarks.server.load import Caller, request
from fairpool.admin import processes
from fairpool.wire import local_server

OFFERED_PER_S = 10_000
CONNECTIONS = 200
ROUNDS = 150
_BUFFER_BYTES = 2**16
PAUSE_S = 0.03
"""Between two rounds of the client that behaves, which stays below the rate that its token has."""


def run() -> Iterator[Figure]:
    """Grant latency alone and beside the abuser, and what became of the abuser's calls."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        found = processes.start(directory)
        try:
            good, bad = _people(Caller(found.url, local_server.read_token(directory) or ""))
            call = Caller(found.url, good)
            alone = _grants_ms(call)
            with _Abuser(found.url, bad) as abuser:
                beside = _grants_ms(call)
            sent, served, refused = abuser.counted()
        finally:
            processes.stop(directory)
    yield Figure(name="grant, median, nobody else", value=statistics.median(alone), unit="ms")
    yield Figure(name="… 95th percentile", value=_p95(alone), unit="ms")
    yield Figure(name="grant, median, beside the abuser", value=statistics.median(beside), unit="ms")
    yield Figure(name="… 95th percentile", value=_p95(beside), unit="ms")
    times = statistics.median(beside) / statistics.median(alone)
    yield at_most("how many times as long the median is", times, "times", 2)
    yield Figure(name="calls that the abuser tried to send", value=sent, unit="per s")
    yield Figure(name="… that were served", value=served, unit="per s")
    yield Figure(name="… that were refused", value=refused, unit="per s")


def _people(call: Caller) -> tuple[str, str]:
    """Tokens of a client that behaves and of one that does not."""
    call("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 8}})
    call("POST", "/policies", {"pool": "gpus", "subject": "team:bench"})
    tokens = []
    for name in ("good", "bad"):
        call("POST", "/users", {"name": name, "role": "operator"})
        tokens.append(call("POST", "/tokens", {"name": "bench", "owner": f"user:{name}"})["token"])
    return tokens[0], tokens[1]


def _grants_ms(call: Caller) -> list[float]:
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        made = call("POST", "/requests?wait_s=10", request())
        found.append((time.perf_counter() - began) * 1000)
        assert made["status"] == "allocated", made
        call("POST", f"/requests/{made['id']}/release")
        time.sleep(PAUSE_S)
    return found


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[18]


class _Abuser:
    """A process that sends calls whether or not they are answered, for as long as the block lasts."""

    def __init__(self, url: str, token: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._begun, self._over, self._counts = context.Event(), context.Event(), context.Queue()
        arguments = (url, token, self._begun, self._over, self._counts)
        self._process = context.Process(target=_abuse, args=arguments)

    def __enter__(self) -> _Abuser:
        self._process.start()
        self._begun.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._found: tuple[float, float, float] = self._counts.get()
        self._process.join()

    def counted(self) -> tuple[float, float, float]:
        """Calls a second: tried, served, refused."""
        return self._found


def _abuse(url: str, token: str, begun: Any, over: Any, counts: Any) -> None:
    counts.put(asyncio.run(_flood(url, token, begun, over)))


async def _flood(url: str, token: str, begun: Any, over: Any) -> tuple[float, float, float]:
    parts = urlsplit(url)
    call = f"GET /api/v1/pools HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    flood = _Flood(parts.hostname or "", parts.port or 0, call)
    senders = [asyncio.create_task(flood.send()) for _ in range(CONNECTIONS)]
    begun.set()
    began = time.perf_counter()
    await asyncio.to_thread(over.wait)
    took_s = time.perf_counter() - began
    for sender in senders:
        sender.cancel()
    return flood.sent / took_s, flood.served / took_s, flood.refused / took_s


class _Flood:
    """Connections that send at their pace, answered or not, and are opened again when they are closed."""

    def __init__(self, host: str, port: int, call: bytes) -> None:
        self._host = host
        self._port = port
        self._call = call
        self.sent = 0
        self.served = 0
        self.refused = 0

    async def send(self) -> None:
        """One connection after the other."""
        pace_s = CONNECTIONS / OFFERED_PER_S
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(self._host, self._port)
                reading = asyncio.create_task(self._read(reader))
                next_at = time.perf_counter()
                while not reading.done():
                    self.sent += 1
                    # What the server does not read lies in the machine's buffers; what does not fit there is dropped.
                    if writer.transport.get_write_buffer_size() < _BUFFER_BYTES:
                        writer.write(self._call)
                    next_at += pace_s
                    await asyncio.sleep(max(0, next_at - time.perf_counter()))
                writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while chunk := await reader.read(2**16):
                self.served += chunk.count(b"HTTP/1.1 200")
                self.refused += chunk.count(b"HTTP/1.1 429")
