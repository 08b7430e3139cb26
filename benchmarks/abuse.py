"""What one client that sends 10,000 calls a second does to another's grants."""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.figures import Figure, at_most
from benchmarks.server.load import Caller, request
from fairpool.admin import processes
from fairpool.wire import local_server

OFFERED_PER_S = 10_000
CONNECTIONS = 200
TURNS = 4
ROUNDS = 60
_BUFFER_BYTES = 2**16
PAUSE_S = 0.03
"""Between two rounds of the client that behaves, which stays below the rate that its token has."""


def run() -> Iterator[Figure]:
    """Grant latency alone, beside a client that is as busy and calls nobody, and beside the abuser, by turns.

    The abuser takes its share of the machine's two cores, which are the server's and the other client's too; a real one
    has a machine of its own. So the second is what the server has to answer for.
    """
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        found = processes.start(directory)
        try:
            owner = Caller(found.url, local_server.read_token(directory) or "")
            good, bad = _people(owner)
            call = Caller(found.url, good)
            turns = [_turn(call, owner, found.url, bad) for _ in range(TURNS)]
        finally:
            processes.stop(directory)
    yield from _figures(turns)


@dataclass(frozen=True, slots=True)
class _Turn:
    """Latencies in milliseconds; shares of a core; calls a second of the abuser: tried, served, refused."""

    alone: list[float]
    beside_busy: list[float]
    beside: list[float]
    server_alone: float
    server_beside: float
    abuser: float
    calls: tuple[float, float, float]


def _turn(call: Caller, owner: Caller, url: str, bad: str) -> _Turn:
    alone, server_alone = _measured(call, owner)
    with _Abuser("", bad):
        beside_busy, _ = _measured(call, owner)
    with _Abuser(url, bad) as abuser:
        beside, server_beside = _measured(call, owner)
    *calls, share = abuser.counted()
    return _Turn(alone, beside_busy, beside, server_alone, server_beside, share, (calls[0], calls[1], calls[2]))


def _measured(call: Caller, owner: Caller) -> tuple[list[float], float]:
    """Latencies, and the share of a core that the server took meanwhile."""
    before, began = _cpu_s(owner), time.perf_counter()
    found = _grants_ms(call)
    took_s = time.perf_counter() - began
    return found, (_cpu_s(owner) - before) / took_s


def _cpu_s(owner: Caller) -> float:
    lines = owner.text("/metrics").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("process_cpu_seconds_total "))


def _figures(turns: Sequence[_Turn]) -> Iterator[Figure]:
    alone, busy, beside = (
        [value for turn in turns for value in getattr(turn, name)] for name in ("alone", "beside_busy", "beside")
    )
    for name, values in (("nobody else", alone), ("beside one who calls nobody", busy), ("beside the abuser", beside)):
        yield Figure(name=f"grant, median, {name}", value=statistics.median(values), unit="ms")
        yield Figure(name="… 95th percentile", value=_p95(values), unit="ms")
    for name, without in (("with nobody else", alone), ("beside one who calls nobody", busy)):
        yield at_most(f"times as long as {name}", statistics.median(beside) / statistics.median(without), "times", 2)
    for name, share in (
        ("the server's share of a core, nobody else", [turn.server_alone for turn in turns]),
        ("… beside the abuser", [turn.server_beside for turn in turns]),
        ("the abuser's share of a core", [turn.abuser for turn in turns]),
    ):
        yield Figure(name=name, value=statistics.median(share) * 100, unit="%")
    names = ("calls that the abuser tried to send", "… that were served", "… that were refused")
    for name, values in zip(names, zip(*(turn.calls for turn in turns), strict=True), strict=True):
        yield Figure(name=name, value=statistics.median(values), unit="per s")


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
    """A process that sends calls whether or not they are answered, for as long as the block lasts. url: "" for a
    process that does all that, and sends them to a socket of its own which nobody reads."""

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
        self._found: tuple[float, float, float, float] = self._counts.get()
        self._process.join()

    def counted(self) -> tuple[float, float, float, float]:
        """Calls a second: tried, served, refused; and its share of a core."""
        return self._found


def _abuse(url: str, token: str, begun: Any, over: Any, counts: Any) -> None:
    counts.put(asyncio.run(_flood(url, token, begun, over)))


async def _flood(url: str, token: str, begun: Any, over: Any) -> tuple[float, float, float, float]:
    with socket.create_server(("127.0.0.1", 0), backlog=2 * CONNECTIONS) as nobody:
        parts = urlsplit(url or f"http://127.0.0.1:{nobody.getsockname()[1]}")
        head = f"GET /api/v1/pools HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n"
        flood = _Flood(parts.hostname or "", parts.port or 0, head.encode())
        senders = [asyncio.create_task(flood.send()) for _ in range(CONNECTIONS)]
        begun.set()
        began, spent = time.perf_counter(), time.process_time()
        await asyncio.to_thread(over.wait)
        took_s, spent = time.perf_counter() - began, time.process_time() - spent
        for sender in senders:
            sender.cancel()
    return flood.sent / took_s, flood.served / took_s, flood.refused / took_s, spent / took_s


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
