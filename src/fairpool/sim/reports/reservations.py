"""How much each policy reserves at each time: its own number, or that of the window that counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from fairpool.app.ports import Stored
from fairpool.app.records import Declared, Kind
from fairpool.app.schedules import Scheduled, effective, next_edge, open_at, scheduled, windows_in
from fairpool.core.amounts import get
from fairpool.core.ids import Instant, PolicyId
from fairpool.core.policies import Policy


class Edge(NamedTuple):
    """From `at` on a policy reserves another amount, in thousandths."""

    at: Instant
    policy: PolicyId
    reserved: int


class Reservations:
    """What the policies of given rules reserve of one resource."""

    def __init__(self, rules: Stored, key: str) -> None:
        self._key = key
        self._scheduled: dict[str, Scheduled] = {
            declared.id: scheduled(cast("Declared[Policy]", declared))
            for declared in rules.declared
            if declared.kind is Kind.POLICY and windows_in(declared.note)
        }

    def at(self, policy: Policy, at: Instant) -> int:
        """What is reserved at that moment."""
        found = self._scheduled.get(policy.id)
        if found is None:
            return get(policy.reserved, self._key)
        return self._in_force(found, at)

    def edges(self, begin: Instant, end: Instant) -> list[Edge]:
        """What changes after `begin` and before `end`, in order."""
        return sorted(
            edge for policy, found in self._scheduled.items() for edge in self._turns(policy, found, begin, end)
        )

    def _turns(self, policy: str, found: Scheduled, begin: Instant, end: Instant) -> Iterator[Edge]:
        at, before = next_edge(found.windows, begin), self._in_force(found, begin)
        while at is not None and at < end:
            now = self._in_force(found, at)
            if now != before:
                yield Edge(at, PolicyId(policy), now)
            at, before = next_edge(found.windows, at), now

    def _in_force(self, found: Scheduled, at: Instant) -> int:
        return get(effective(found.policy, found.windows, open_at(found.windows, at)).reserved, self._key)
