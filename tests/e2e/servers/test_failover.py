"""The server that decides dies, stops or is paused: another takes over, and nothing is lost or written twice."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor

from fairpool.app.leading import LEADER_TTL_S
from tests.e2e.servers.installation import ASK, Server
from tests.waiting import wait_until


def test_the_follower_takes_over_when_the_leader_is_killed(leader: Server, follower: Server, pool: None) -> None:
    made = follower.call.ok("POST", "/requests", ASK)
    leader.kill()
    wait_until(lambda: follower.leads, what="the follower to lead", timeout_s=LEADER_TTL_S + 2)
    assert follower.call.ok("GET", f"/requests/{made['id']}")["status"] == "allocated"


def test_a_leader_that_stops_hands_over_at_once(leader: Server, follower: Server, pool: None) -> None:
    leader.stop()
    wait_until(lambda: follower.leads, what="the follower to lead", timeout_s=LEADER_TTL_S / 2)


def test_while_nobody_leads_the_caller_is_told_to_ask_again(leader: Server, follower: Server, pool: None) -> None:
    leader.kill()
    refused = follower.call("POST", "/requests", ASK)
    assert (refused.status, refused.json["type"], refused.headers["retry-after"]) == (503, "not-leading", "1")
    assert follower.call("GET", "/history").status == 200, "what needs the database alone is answered"


def test_a_call_to_a_leader_that_hangs_is_given_up_when_another_leads(
    leader: Server, follower: Server, pool: None
) -> None:
    leader.send(signal.SIGSTOP)
    try:
        refused = follower.call("POST", "/requests", ASK)
        assert (refused.status, refused.json["type"]) == (503, "not-leading")
        wait_until(lambda: follower.leads, what="the follower to lead")
        assert follower.call.ok("POST", "/requests", ASK)["status"] == "allocated"
    finally:
        leader.send(signal.SIGCONT)


def test_a_leader_that_was_paused_writes_nothing_when_it_goes_on(leader: Server, follower: Server, pool: None) -> None:
    leader.send(signal.SIGSTOP)
    wait_until(lambda: follower.leads, what="the follower to lead")
    with ThreadPoolExecutor(1) as threads:
        sent = threads.submit(leader.call, "POST", "/requests", ASK)  # it lies in the socket of the stopped process
        leader.send(signal.SIGCONT)
        answer = sent.result(timeout=90)
    # The one that was paused passes it on, or says that it does not lead: it does not decide it.
    assert answer.status in (201, 503), answer.body
    wait_until(lambda: not leader.leads, what="the paused one to follow")
    assert "leadership 1 is over" in leader.log
    events = follower.call.ok("GET", "/history?kind=request")["items"]
    assert len([event for event in events if event["what"] == "queued"]) == (1 if answer.status == 201 else 0)
