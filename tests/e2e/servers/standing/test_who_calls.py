"""Whichever of two servers is called: the same people get in, and the history says from where they called."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import urllib3

from tests.e2e.servers.installation import Server, installed
from tests.integration.serving import Caller
from tests.postgres import Cluster
from tests.waiting import wait_until

COUNTS_WITHIN_S = 1.0
"""What is promised of a token that is revoked and of a membership that changes."""


@pytest.fixture(scope="module")
def database_url(postgres_cluster: Cluster) -> str:
    return postgres_cluster.new_database()


def called_from(server: Server, address: str, token: str = "") -> Caller:
    """Calls from another address of this machine."""
    caller = Caller(server.url, token or server.call.token)
    caller.pool = urllib3.PoolManager(retries=False, timeout=30, source_address=(address, 0))
    return caller


def user(server: Server, name: str, **said: object) -> Caller:
    """Somebody new, with a token, at that server."""
    server.call.ok("POST", "/users", {"name": name, "role": "member", **said})
    return Caller(server.url, server.call.ok("POST", "/tokens", {"name": "t", "owner": f"user:{name}"})["token"])


def source_of(server: Server, pool: str) -> str:
    found = server.call.ok("GET", f"/history?kind=pool&named={pool}")["items"]
    return str(found[-1]["source"])


def test_the_history_says_from_where_a_call_came_that_was_passed_on(leader: Server, follower: Server) -> None:
    called_from(follower, "127.0.0.9").ok("POST", "/pools", {"name": "from-nine", "capacity": {"gpu": 1}})
    assert source_of(leader, "from-nine") == "127.0.0.9"


def test_nobody_else_can_say_from_where_they_call(leader: Server) -> None:
    made_up = {"Fairpool-Forwarded": f"http://127.0.0.1:1 192.0.2.1 {'0' * 64}"}
    caller = called_from(leader, "127.0.0.8")
    caller.ok("POST", "/pools", {"name": "made-up", "capacity": {"gpu": 1}}, headers=made_up)
    assert source_of(leader, "made-up") == "127.0.0.8"


def test_a_token_that_was_used_at_the_follower_alone_is_known_to_be_used(leader: Server, follower: Server) -> None:
    alice = user(follower, "alice")
    alice.ok("GET", "/whoami")  # which the follower answers by itself
    wait_until(lambda: leader.call.ok("GET", "/tokens?owner=user:alice")["items"][0]["last_used_at"], what="the note")


@pytest.mark.parametrize("changed_at", ["leader", "follower"])
def test_a_revoked_token_lets_nobody_in_anywhere_a_second_later(
    leader: Server, follower: Server, changed_at: str
) -> None:
    here, there = (leader, follower) if changed_at == "leader" else (follower, leader)
    bob = user(here, f"bob-{changed_at}")
    elsewhere = Caller(there.url, bob.token)
    elsewhere.ok("GET", "/whoami")
    bob.ok("POST", "/sign-out")
    assert _last_began_s(lambda: elsewhere("GET", "/whoami").status == 200) < COUNTS_WITHIN_S
    assert elsewhere("GET", "/pools").status == bob("GET", "/pools").status == 401


@pytest.mark.parametrize("changed_at", ["leader", "follower"])
def test_a_team_and_a_role_that_are_lost_are_lost_everywhere_a_second_later(
    leader: Server, follower: Server, changed_at: str
) -> None:
    here, there = (leader, follower) if changed_at == "leader" else (follower, leader)
    name = f"cleo-{changed_at}"
    cleo = Caller(there.url, user(here, name, role="operator").token)
    here.call.ok("POST", "/teams", {"name": f"team-{changed_at}", "members": [name]})
    wait_until(lambda: cleo.ok("GET", "/whoami")["teams"] == [f"team-{changed_at}"], what="the team")
    here.call.ok("PATCH", f"/teams/team-{changed_at}", {"members": []})
    assert _last_began_s(lambda: cleo.ok("GET", "/whoami")["teams"] != []) < COUNTS_WITHIN_S
    here.call.ok("PATCH", f"/users/{name}", {"role": "viewer"})
    pool = {"name": f"of-{name}", "capacity": {"gpu": 1}}
    assert _last_began_s(lambda: cleo("POST", "/pools?dry_run=true", pool).status == 201) < COUNTS_WITHIN_S
    assert cleo("POST", "/pools", pool).json["type"] == "forbidden"


def _last_began_s(is_as_before: Callable[[], bool]) -> float:
    """Call again and again until it is not as before: how long after now the last call began that still was."""
    began, last = time.monotonic(), 0.0

    def look() -> bool:
        nonlocal last
        at = time.monotonic()
        if is_as_before():
            last = at - began
            return False
        return True

    wait_until(look, what="what was changed to count")
    return last


def test_many_who_call_through_the_follower_are_not_one_caller_for_the_leader(
    tmp_path: Path, new_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody without a token is known by their address: the leader counts them by theirs, not by the follower's."""
    monkeypatch.setenv("FAIRPOOL_RATE_PER_S", "0.1")
    with installed(tmp_path, new_postgres_url) as made:
        made.start("one")
        follower = made.start("two")
        exchange = {"code": "x" * 40, "verifier": "y" * 43}
        callers = [called_from(follower, f"127.0.0.{last}", "none") for last in range(2, 7)]
        answers = [caller("POST", "/sign-in/exchange", exchange) for caller in callers]
        assert [answer.json["type"] for answer in answers] == ["not-found"] * len(callers), answers
        again = called_from(follower, "127.0.0.2", "none")("POST", "/sign-in/exchange", exchange)
        assert again.status == 429
