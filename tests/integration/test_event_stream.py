"""Under load, with connections cut at random points and a server that restarts, a reader hears everything once."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import urllib3

from fairpool.client.api import Client
from fairpool.client.transport import Transport
from fairpool.wire.events import Event
from tests.integration.serving import Caller, begin, end
from tests.waiting import wait_until

CUTS = 40


class Cutting:
    """Passes connections on, and cuts each after some bytes, wherever in an event that is."""

    def __init__(self, seed: int) -> None:
        self.upstream = 0
        self.cuts = 0
        self.patient = False  # cut no more
        self._random = random.Random(seed)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listening.accept()
                threading.Thread(target=self._pass_on, args=(caller,), daemon=True).start()

    def _pass_on(self, caller: socket.socket) -> None:
        left = self._random.randrange(1, 6_000)
        with caller, suppress(OSError), socket.create_connection(("127.0.0.1", self.upstream), timeout=90) as server:
            threading.Thread(target=_copy, args=(caller, server), daemon=True).start()
            while data := server.recv(4096):
                if not self.patient and len(data) >= left:
                    caller.sendall(data[:left])
                    self.cuts += 1
                    break
                left -= len(data)
                caller.sendall(data)
            caller.shutdown(socket.SHUT_RDWR)
            server.shutdown(socket.SHUT_RDWR)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(4096):
            sink.sendall(data)


@contextmanager
def cutting(seed: int) -> Iterator[Cutting]:
    proxy = Cutting(seed)
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
    with cutting(seed) as proxy:
        try:
            proxy.upstream = urllib3.util.parse_url(call.url).port or 0
            call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 4}})
            call.ok("POST", "/policies", {"pool": "gpus", "subject": "team:red"})
            url = f"http://127.0.0.1:{proxy.port}"
            reader = threading.Thread(target=listen, args=(url, call.token, heard, over), daemon=True)
            reader.start()
            while proxy.cuts < CUTS / 2:
                load(call, 20)
            end(tmp_path)
            call = begin(tmp_path)
            proxy.upstream = urllib3.util.parse_url(call.url).port or 0
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
