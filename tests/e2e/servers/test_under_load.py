"""Servers are killed, paused and replaced while clients work: nobody's call fails, nothing is lost or done twice."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e.servers.installation import ASK, Installation, Server, add_pool
from tests.e2e.servers.load import hold_against, load
from tests.waiting import wait_until

TRIES = int(os.environ.get("FAIRPOOL_FAILOVERS", "3"))
TAKEN_OVER_S = 5.0
"""What is promised: within so long after the death of the leading server another one decides."""

FIRM = {**ASK, "preemptible": False}


@pytest.fixture
def database_url(new_postgres_url: str) -> str:
    return new_postgres_url


@pytest.fixture
def installation(installation: Installation) -> Installation:
    """Two servers over a PostgreSQL, with a pool."""
    add_pool(installation.start("one"), gpus=6)
    installation.start("two")
    return installation


@pytest.fixture
def steady(installation: Installation) -> Iterator[None]:
    """Something that holds a device all the while: the same one at the end as at the beginning."""
    call = installation.servers["one"].call
    held = call.ok("POST", "/requests", FIRM)
    assert held["status"] == "allocated"
    yield
    now = installation.leader().call.ok("GET", f"/requests/{held['id']}")
    assert (now["status"], now["allocation"]["parts"]) == ("allocated", held["allocation"]["parts"])


@pytest.mark.timeout(300)
def test_the_leader_is_killed_again_and_again_under_load(installation: Installation, steady: None) -> None:
    with load(installation) as ledger:
        for _ in range(TRIES):
            wait_until(ledger.has_got_to(ledger.answers + 20), what="clients to get on")
            leader = installation.leader()
            other = installation.other(leader)
            began = time.monotonic()
            leader.send(signal.SIGKILL)
            wait_until(partial(_leads, other), what="another to lead", timeout_s=TAKEN_OVER_S)
            assert time.monotonic() - began < TAKEN_OVER_S
            leader.wait_until_gone()
            installation.start(_name(installation, leader))
        wait_until(ledger.has_got_to(ledger.answers + 20), what="clients to get on")
    assert ledger.failures == []
    hold_against(installation.leader(), ledger)


@pytest.mark.timeout(300)
def test_servers_are_replaced_one_after_the_other_and_no_call_fails(installation: Installation, steady: None) -> None:
    """SIGTERM: what is under way is finished, the leadership handed over, and clients go to the other server."""
    with load(installation) as ledger:
        for _ in range(2):
            for name in ("one", "two"):
                wait_until(ledger.has_got_to(ledger.answers + 20), what="clients to get on")
                installation.servers[name].stop()
                installation.start(name)
    assert ledger.failures == []
    hold_against(installation.leader(), ledger)


@pytest.mark.timeout(300)
def test_a_paused_leader_is_overtaken_and_what_it_was_about_to_write_is_refused(
    installation: Installation, steady: None
) -> None:
    with load(installation) as ledger:
        wait_until(ledger.has_got_to(20), what="clients to get on")
        leader = installation.leader()
        other = installation.other(leader)
        leader.send(signal.SIGSTOP)
        wait_until(lambda: other.leads, what="another to lead")
        leader.send(signal.SIGCONT)
        wait_until(lambda: not leader.leads, what="the paused one to follow")
        assert "leadership 1 is over: the store's is 2; nothing was changed" in leader.log
        wait_until(ledger.has_got_to(ledger.answers + 20), what="clients to get on")
    assert ledger.failures == []
    hold_against(other, ledger)


def _leads(server: Server) -> bool:
    return server.leads


def _name(installation: Installation, server: Server) -> str:
    return next(name for name, one in installation.servers.items() if one is server)
