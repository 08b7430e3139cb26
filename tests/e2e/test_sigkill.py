"""S34, S35: the server is killed at random moments under load, again and again, and forgets nothing."""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest
import urllib3

from fairpool.wire import local_server
from tests.integration.serving import Caller, begin, end
from tests.waiting import wait_until

KILLS = int(os.environ.get("FAIRPOOL_KILLS", "50"))
CLIENTS = 4
GPUS = 6


@dataclass
class Ledger:
    """What the clients were told. Everything in here must still be true after every restart."""

    submitted: dict[str, str] = field(default_factory=dict)  # idempotency key -> request id
    released: set[str] = field(default_factory=set)
    answers: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledge(self, key: str, request: str) -> None:
        with self.lock:
            assert self.submitted.setdefault(key, request) == request, "one key, two requests"
            self.answers += 1

    def acknowledge_release(self, request: str) -> None:
        with self.lock:
            self.released.add(request)
            self.answers += 1


class Load:
    """Clients that submit and release as fast as they are answered, and try the same again when they are not."""

    def __init__(self, directory: Path, ledger: Ledger) -> None:
        self.directory = directory
        self.ledger = ledger
        self.stopping = threading.Event()
        self.failures: list[BaseException] = []
        self.threads = [threading.Thread(target=self._client, args=(number,)) for number in range(CLIENTS)]

    def __enter__(self) -> "Load":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def has_got_to(self, answers: int) -> Callable[[], bool]:
        """Whether so many calls have been answered, or a client has failed."""
        return lambda: self.ledger.answers >= answers or bool(self.failures)

    def _client(self, number: int) -> None:
        rng = random.Random(number)
        mine: list[str] = []
        try:
            while not self.stopping.is_set():
                key = uuid4().hex
                body = {"demand": {"gpu": 1}, "subjects": [rng.choice(["team:red", "team:blue"])], "lease_s": 3600}
                made = self._insist("POST", "/requests", body, {"Idempotency-Key": key})
                if made is None:
                    return
                self.ledger.acknowledge(key, made["id"])
                mine.append(made["id"])
                if len(mine) > 3:
                    done = mine.pop(0)
                    # Whatever it is by now, queued or running, it is withdrawn: twice is the same as once.
                    if self._insist("POST", f"/requests/{done}/cancel", {}, {}) is None:
                        return
                    self.ledger.acknowledge_release(done)
        except BaseException as error:
            self.failures.append(error)
            raise

    def _insist(self, method: str, path: str, body: object, headers: dict[str, str]) -> dict[str, str] | None:
        while not self.stopping.is_set():
            found, token = local_server.find(self.directory), local_server.read_token(self.directory)
            if found is None or token is None:
                self.stopping.wait(0.01)
                continue
            try:
                answer = Caller(found.url, token)(method, path, body, headers=headers)
            except urllib3.exceptions.HTTPError:
                self.stopping.wait(0.01)
                continue
            if answer.status == 503:
                continue
            assert answer.status < 300, (path, answer.status, answer.body)
            told: dict[str, str] = answer.json
            return told
        return None


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "data"
    end(tmp_path / "data", signal.SIGKILL)


@pytest.mark.timeout(400)
def test_whatever_was_acknowledged_survives_fifty_kills_exactly_once(directory: Path) -> None:
    caller = begin(directory)
    caller.ok("POST", "/pools", {"name": "p", "capacity": {"gpu": GPUS}})
    for team in ("red", "blue"):
        caller.ok("POST", "/policies", {"pool": "p", "subject": f"team:{team}", "reserved": {"gpu": 2}, "grace_s": 0})
    firm = {"demand": {"gpu": 1}, "subjects": ["team:red"], "preemptible": False, "lease_s": 3600}
    steady = caller.ok("POST", "/requests", firm)
    assert steady["status"] == "allocated"
    ledger = Ledger()
    rng = random.Random(20261121)
    with Load(directory, ledger) as load:
        for kill in range(KILLS):
            more = ledger.answers + rng.randint(1, 25)
            wait_until(load.has_got_to(more), what="clients to get on")
            assert not load.failures, load.failures
            end(directory, signal.SIGKILL)
            caller = begin(directory)
            _nothing_is_granted_twice(caller)
            held = caller.ok("GET", f"/requests/{steady['id']}")
            assert held["status"] == "allocated", f"kill {kill} disturbed a running step"
            assert held["allocation"]["parts"] == steady["allocation"]["parts"]
        assert not load.failures, load.failures
    _all_is_there(caller, ledger)


def _nothing_is_granted_twice(caller: Caller) -> None:
    """No device is held by two, and no more is held than there is; evictions under way count as held."""
    held = caller.ok("GET", "/requests?view=active&limit=1000")["items"]
    devices = [
        device["index"] for request in held for part in request["allocation"]["parts"] for device in part["devices"]
    ]
    assert len(devices) == len(set(devices)), f"a device was granted twice: {sorted(devices)}"
    assert len(devices) <= GPUS


def _all_is_there(caller: Caller, ledger: Ledger) -> None:
    everything: dict[str, dict[str, str]] = {}
    cursor = ""
    while True:
        page = caller.ok("GET", f"/requests?view=all&limit=1000{cursor}")
        everything |= {request["id"]: request for request in page["items"]}
        if not page.get("next_cursor"):
            break
        cursor = f"&cursor={page['next_cursor']}"
    keys = [request.get("idempotency_key") for request in everything.values() if request.get("idempotency_key")]
    assert len(keys) == len(set(keys)), "one idempotency key made two requests"
    lost = [request for request in ledger.submitted.values() if request not in everything]
    assert not lost, f"{len(lost)} acknowledged requests are gone"
    revived = [r for r in ledger.released if everything[r]["status"] in ("queued", "allocated", "preempting")]
    assert not revived, f"{len(revived)} withdrawn requests are alive again"
    assert len(ledger.submitted) > KILLS
