"""The test kit: a clock that stands still, ids in sequence, and builders of pools, policies, requests and worlds.

Scenarios as test cases are in `fairpool.sim.scenarios.assert_holds`: the simulator plays them.
"""

from __future__ import annotations

from fairpool.testing.builders import policy, pool, request, settled, world
from fairpool.testing.clock import ManualClock
from fairpool.testing.identity import SequentialIds

__all__ = ["ManualClock", "SequentialIds", "policy", "pool", "request", "settled", "world"]
