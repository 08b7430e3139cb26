"""Under load, with connections cut at random points and a server that restarts, a reader hears everything once."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairpool.client.api import Client
from fairpool.client.transport import Transport
from fairpool.wire.events import Event
from tests.integration.proxy import Proxy
from tests.integration.serving import Caller, begin, end
from tests.waiting import wait_until

CUTS = 40


class Cutting(Proxy):
    """Passes connections on, and cuts each after some bytes, wherever in an event that is."""

    def __init__(self, server: str, seed: int) -> None:
        self.cuts = 0
        self.patient = False  # cut no more
        self._random = random.Random(seed)
        super().__init__(server)

    def line(self) -> CuttingLine:
        return CuttingLine(self, self._random.randrange(1, 6_000))


class CuttingLine:
    """One connection. left: bytes until it is cut."""

    def __init__(self, proxy: Cutting, left: int) -> None:
        self._proxy = proxy
        self._left = left

    def asked(self, data: bytes) -> None:
        """Goes through."""

    def answered(self, data: bytes) -> tuple[bytes, bool]:
        if not self._proxy.patient and len(data) >= self._left:
            self._proxy.cuts += 1
            return data[: self._left], False
        self._left -= len(data)
        return data, True


@contextmanager
def cutting(server: str, seed: int) -> Iterator[Cutting]:
    proxy = Cutting(server, seed)
    try:
        yield proxy
    finally:
        proxy.close()


def load(call: Caller, requests: int) -> None:
    for _ in range(requests):
        body = {"demand": {"gpu": 1}, "subjects": ["team:red"], "pool": "gpus", "lease_s": 600}
        made = call.ok("POST", "/requests", body)
        call.ok("POST", f"/requests/{made['id']}/release")


def listen(url: str, token: str, heard: list[Event], until: threading.Event) -> None:
    for event in Client(Transport(url, token)).events(after=0):
        heard.append(event)
        if until.is_set() and event.name == "the-end":
            return


@pytest.mark.parametrize("seed", [1, 2])
def test_every_event_is_heard_once_and_in_order_however_often_the_connection_breaks(tmp_path: Path, seed: int) -> None:
    call = begin(tmp_path)
    heard: list[Event] = []
    over = threading.Event()
    with cutting(call.url, seed) as proxy:
        try:
            call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 4}})
            call.ok("POST", "/policies", {"pool": "gpus", "subject": "team:red"})
            reader = threading.Thread(target=listen, args=(proxy.url, call.token, heard, over), daemon=True)
            reader.start()
            while proxy.cuts < CUTS / 2:
                load(call, 20)
            end(tmp_path)
            call = begin(tmp_path)
            proxy.lead_to(call.url)
            while proxy.cuts < CUTS:
                load(call, 20)
            proxy.patient = True
            over.set()
            call.ok("POST", "/pools", {"name": "the-end", "capacity": {"gpu": 1}})
            wait_until(lambda: not reader.is_alive(), what="the reader to have heard everything")
            remembered = history(call)
        finally:
            end(tmp_path)
    assert [event.id for event in heard] == [entry["id"] for entry in remembered]
    assert [event.what for event in heard] == [entry["what"] for entry in remembered]
    assert len(heard) > 200


def history(call: Caller) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    after = 0
    while True:
        page = call.ok("GET", f"/history?after={after}&limit=1000")["items"]
        if not page:
            return found
        found += page
        after = page[-1]["id"]
