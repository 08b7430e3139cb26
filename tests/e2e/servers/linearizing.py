"""Whether what concurrent callers saw can be told as one order of calls, each at a moment between its begin and its end
(Herlihy and Wing). The search is Wing and Gong's, over one register that changes by compare and set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

State = tuple[int, int]
"""A version and a value."""


@dataclass(frozen=True)
class Called:
    """One call: a read, or a change of version `expected` to `value`.

    began, ended: moments; a call that nobody knows the outcome of never ends: it may take effect at any later moment,
    or not at all. saw: what a read found, or what a change made; None for a change that was refused because another
    came first.
    """

    began: float
    ended: float = inf
    expected: int | None = None
    value: int = 0
    saw: State | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether nobody knows what came of it."""
        return self.ended == inf

    def after(self, state: State) -> State | None:
        """The register after it; None where it cannot have happened on this state."""
        if self.expected is None:
            return state if self.saw == state else None
        matches = state[0] == self.expected
        changed = (state[0] + 1, self.value)
        if self.is_unknown:
            return changed if matches else None
        if self.saw is None:
            return None if matches else state
        return changed if matches and self.saw == changed else None


def is_linearizable(calls: Sequence[Called], start: State) -> bool:
    """Whether there is such an order."""
    ordered = sorted(calls, key=lambda call: call.began)
    everything = (1 << len(ordered)) - 1
    unknown = sum(1 << at for at, call in enumerate(ordered) if call.is_unknown)
    seen: set[tuple[int, State]] = set()
    stack: list[tuple[int, State]] = [(0, start)]
    while stack:
        done, state = stack.pop()
        if done | unknown == everything:
            return True
        if (done, state) in seen:
            continue
        seen.add((done, state))
        stack.extend(_next(ordered, done, state))
    return False


def _next(ordered: Sequence[Called], done: int, state: State) -> list[tuple[int, State]]:
    """Every call that may come next: one that began before every other open one ended."""
    found: list[tuple[int, State]] = []
    first_end = inf
    for at, call in enumerate(ordered):
        if done >> at & 1:
            continue
        if call.began > first_end:
            break
        first_end = min(first_end, call.ended)
        after = call.after(state)
        if after is not None:
            found.append((done | 1 << at, after))
    return found
