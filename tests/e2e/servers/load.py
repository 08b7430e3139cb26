"""Clients that know all servers and work as fast as they are answered; and what they were told, to be held against."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from fairpool.client.api import Client
from fairpool.client.transport import Transport
from fairpool.wire.requests import RequestCreate
from tests.e2e.servers.installation import Installation, Server

CLIENTS = 4


@dataclass
class Ledger:
    """What the clients were told. Everything in here must be so at the end. failures: of calls, each one too many."""

    submitted: dict[str, str] = field(default_factory=dict)  # idempotency key -> request id
    cancelled: set[str] = field(default_factory=set)
    failures: list[BaseException] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def answers(self) -> int:
        return len(self.submitted) + len(self.cancelled)

    def has_got_to(self, answers: int) -> Callable[[], bool]:
        """Whether so many calls have been answered, or one has failed."""
        return lambda: self.answers >= answers or bool(self.failures)


@contextmanager
def load(installation: Installation, *, each_knows: int = 2) -> Iterator[Ledger]:
    """Clients at work for the block; each knows the servers in another order."""
    ledger, stopping = Ledger(), threading.Event()
    urls = [server.url for server in installation.servers.values()]

    def work(number: int) -> None:
        turned = urls[number % len(urls) :] + urls[: number % len(urls)]
        client = Client(Transport(",".join(turned[:each_knows]), installation.token))
        try:
            _work(client, ledger, stopping, random.Random(number))
        except BaseException as error:
            ledger.failures.append(error)
            raise
        finally:
            client.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield ledger
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def _work(client: Client, ledger: Ledger, stopping: threading.Event, rng: random.Random) -> None:
    mine: list[str] = []
    while not stopping.is_set():
        key = uuid4().hex
        body = RequestCreate(demand={"gpu": 1}, subjects=[rng.choice(["team:red", "team:blue"])], lease_s=3600)
        made = client.submit(body, key=key)
        with ledger.lock:
            ledger.submitted[key] = made.id
        mine.append(made.id)
        if len(mine) > 3:
            done = mine.pop(0)
            client.cancel(done)
            with ledger.lock:
                ledger.cancelled.add(done)


def hold_against(server: Server, ledger: Ledger) -> None:
    """Nothing that was acknowledged is lost, doubled or revived, and no device is held by two."""
    everything = {request["id"]: request for request in _pages(server, "/requests?view=all")}
    assert not [request for request in ledger.submitted.values() if request not in everything], "acknowledged and lost"
    keys = [request["idempotency_key"] for request in everything.values() if request.get("idempotency_key")]
    assert len(keys) == len(set(keys)), "one idempotency key made two requests"
    alive = ("queued", "allocated", "preempting")
    assert not [request for request in ledger.cancelled if everything[request]["status"] in alive], "withdrawn, alive"
    held = [request for request in everything.values() if request["status"] in alive[1:]]
    devices = [device["index"] for one in held for part in one["allocation"]["parts"] for device in part["devices"]]
    assert len(devices) == len(set(devices)), "a device was granted twice"
    queued = [entry["object"] for entry in _pages(server, "/history?kind=request") if entry["what"] == "queued"]
    assert sorted(queued) == sorted(everything), "the history tells of each request once"


def _pages(server: Server, path: str) -> Iterator[dict[str, Any]]:
    cursor = ""
    while True:
        page = server.call.ok("GET", f"{path}&limit=1000{cursor}")
        yield from page["items"]
        if not page.get("next_cursor"):
            return
        cursor = f"&cursor={page['next_cursor']}"
