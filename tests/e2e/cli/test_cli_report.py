"""`fairpool report usage`, as somebody types it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from fairpool.wire.requests import RequestCreate
from tests.e2e.cli.conftest import Machine
from tests.waiting import wait_until


def test_usage_is_told_of_what_ran_before_the_period_began_as_of_what_came_in_it(pooled: Machine) -> None:
    client = pooled.client
    older = client.submit(RequestCreate(demand={"gpu": 1}, subjects=["component:research"], lease_s=600), wait_s=30)
    since = datetime.now(UTC)
    assert older.allocation is not None
    assert older.allocation.granted_at < since
    newer = client.submit(RequestCreate(demand={"gpu": 1}, subjects=["component:prod"], lease_s=600), wait_s=30)
    wait_until(lambda: client.release(newer.id).status.value == "released", what="the second to end")
    told = json.loads(pooled.ok("report", "usage", "--since", since.isoformat(), "--by", "team,pool", "-o", "json"))
    counts = [(row["team"], row["pool"], row["requests"], row["started"], row["evicted"]) for row in told]
    assert counts == [("component:prod", "gpus", 1, 1, 0), ("component:research", "gpus", 1, 0, 0)]
    assert all(row["hours"].keys() == {"gpu", "step_run"} for row in told)
    table = pooled.ok("report", "usage", "-o", "csv", "--by", "pool", "--columns", "pool,requests,evicted")
    assert table == "POOL,REQUESTS,EVICTED\ngpus,2,0\n"
    assert pooled.ok("report", "usage", "--by", "team,pool", "-o", "name") == (
        "component:prod/gpus\ncomponent:research/gpus\n"
    )


def test_a_period_in_which_nothing_was_held_says_so_and_one_that_cannot_be_is_refused(pooled: Machine) -> None:
    nothing = pooled("report", "usage", "--since", "2001-01-01", "--until", "2001-02-01")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err.endswith("nothing was held in that time\n")
    backwards = pooled("report", "usage", "--since", "2001-02-01", "--until", "2001-01-01")
    assert (backwards.code, "--since is not before --until" in backwards.err) == (2, True)
    mistyped = pooled("report", "usage", "--by", "teem")
    assert (mistyped.code, "possible: team, pool, profile" in mistyped.err) == (2, True)
