"""A server that is killed in the middle of applying leaves all of a set of documents or nothing of it."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import urllib3

from tests.integration.serving import Caller, begin, end
from tests.waiting import wait_until

KILLS = 4
POOLS = 5
BASE = 1_000


class Applying(threading.Thread):
    """Applies one generation of the same rules after the other until the server is gone."""

    def __init__(self, caller: Caller, generation: int) -> None:
        super().__init__()
        self._caller = caller
        self.begun = self.answered = generation

    def run(self) -> None:
        """See threading.Thread."""
        while True:
            self.begun += 1
            try:
                self._caller.ok("POST", "/apply", {"set": "rules", "prune": True, "documents": rules(self.begun)})
            except (urllib3.exceptions.HTTPError, OSError):
                return
            self.answered = self.begun


def rules(generation: int) -> list[dict[str, Any]]:
    """Pools, policies and a profile that all say which generation they are of."""
    names = [f"pool{number}" for number in range(POOLS)]
    pools = [{"kind": "pool", "name": name, "capacity": {"gpu": BASE + generation}} for name in names]
    policies = [{"kind": "policy", "pool": name, "subject": "team:a", "priority": generation} for name in names]
    return [*policies, *pools, {"kind": "profile", "name": f"of-{generation}", "demand": {"gpu": 1}, "pools": names}]


def generations(caller: Caller) -> set[int]:
    """Those of everything that there is."""
    pools = caller.ok("GET", "/pools")["items"]
    policies = caller.ok("GET", "/policies")["items"]
    profiles = caller.ok("GET", "/profiles")["items"]
    assert (len(pools), len(policies), len(profiles)) == (POOLS, POOLS, 1)
    found = {pool["capacity"]["gpu"] - BASE for pool in pools} | {policy["priority"] for policy in policies}
    return found | {int(profile["name"].removeprefix("of-")) for profile in profiles}


def test_whenever_it_is_killed_all_rules_are_of_one_generation_and_none_that_was_answered_is_lost(
    tmp_path: Path,
) -> None:
    generation = 0
    for kill in range(KILLS):
        applying = Applying(begin(tmp_path), generation)
        applying.start()
        wait_until(lambda: applying.answered > generation + kill, what="a few generations")  # noqa: B023
        end(tmp_path, signal.SIGKILL)
        applying.join()
        found = generations(begin(tmp_path))
        assert found in ({applying.answered}, {applying.begun}), (found, applying.answered, applying.begun)
        generation = found.pop()
        end(tmp_path)
