"""A window closes on real servers: the one that opened it is gone by then, and what is owed is kept to."""

from __future__ import annotations

import math
import time
from typing import Any

from tests.e2e.servers.installation import Server
from tests.waiting import wait_until

OPEN_S = 25
"""Until the window closes: time enough to fill the pool and for the second server to take over."""


def closing_in(seconds: int, **numbers: Any) -> dict[str, Any]:
    """A window that is open, and closes in so many seconds: windows begin with a minute, and end with any second."""
    begun = math.floor(time.time() / 60) * 60 - 60
    start = time.gmtime(begun)
    length_s = math.ceil(time.time()) + seconds - begun
    return {"start": f"{start.tm_min} {start.tm_hour} * * *", "duration_s": length_s, "timezone": "UTC", **numbers}


def ask(server: Server, team: str, gpus: int, **fields: object) -> str:
    body = {"demand": {"gpu": gpus}, "subjects": [f"team:{team}"], "lease_s": 600, **fields}
    return str(server.call.ok("POST", "/requests", body)["id"])


def test_a_window_closes_after_a_fail_over_and_gives_back_what_was_lent_for_the_night(
    leader: Server, follower: Server
) -> None:
    first, second = leader, follower
    first.call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 3}})
    night = {"pool": "gpus", "subject": "team:night", "grace_s": 1}
    day = {"pool": "gpus", "subject": "team:day", "reserved": {"gpu": 2}}
    ends = closing_in(OPEN_S)
    first.call.ok("POST", "/policies", {**day, "schedule": [{**ends, "reserved": {}}]})
    policy = first.call.ok("POST", "/policies", {**night, "schedule": [{**ends, "reserved": {"gpu": 2}}]})
    assert policy["now"]["reserved"] == {"gpu": 2}, "it is open already"

    firm = ask(first, "night", 1, preemptible=False)
    own, lent = ask(first, "night", 1), ask(first, "night", 1)
    waits = ask(first, "day", 2)

    def statuses() -> list[str]:
        return [second.call.ok("GET", f"/requests/{one}")["status"] for one in (firm, own, lent, waits)]

    assert statuses() == ["allocated", "allocated", "allocated", "queued"]
    first.kill()
    wait_until(lambda: second.leads, what="the other server to lead")
    shown = second.call.ok("GET", f"/policies/{policy['id']}")
    assert shown["now"]["window"] == 0, "inside the window, whoever leads"
    assert statuses() == ["allocated", "allocated", "allocated", "queued"]

    wait_until(
        lambda: second.call.ok("GET", f"/policies/{policy['id']}")["now"]["window"] is None, what="the window to close"
    )
    wait_until(lambda: statuses()[3] == "allocated", what="what the day is owed")
    assert statuses() == ["allocated", "preempted", "preempted", "allocated"]
    told = [entry["cause"] for entry in second.call.ok("GET", f"/requests/{own}/history")["items"]]
    assert any("reclaim" in cause for cause in told), told
    later = ask(second, "night", 1, preemptible=False)
    found = second.call.ok("GET", f"/requests/{later}/explain")
    codes = [reason["code"] for candidate in found["candidates"] for reason in candidate["reasons"]]
    assert "WAITS_FOR_WINDOW" in codes, found
