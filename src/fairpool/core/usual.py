"""How long work of one kind usually runs, and so how much longer what runs already: what estimates draw from (S37)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from fairpool.core.requests import Request

FEW_LONGER = 3
"""Where fewer have ever run longer than this one has already, what is known of others says little of it."""


class Basis(StrEnum):
    """What an estimate rests on."""

    GRACE_PERIOD = "grace period"  # an eviction is under way: not later than its deadline
    MAX_RUNTIME = "declared run times"  # running work ends when it said it would at the latest
    STEP = "run times of a step"
    PROFILE = "run times of a profile"
    OWNER = "run times of an owner"  # of a team; of a user, service account or component that has none
    WINDOW = "window"  # not before the policy allows more


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual:
    """Run times that were seen. basis, name: of what. lengths_us: ascending, at least one.

    cumulated: beside each length, how much it and all shorter ones count for together.
    """

    basis: Basis
    name: str
    lengths_us: tuple[int, ...]
    cumulated: tuple[int, ...]

    @property
    def finished(self) -> int:
        """How many were seen."""
        return len(self.lengths_us)

    @property
    def varies(self) -> bool:
        """Whether there is anything to draw."""
        return self.lengths_us[0] != self.lengths_us[-1]

    def length_us(self, permille: int, ran_us: int = 0) -> int:
        """How long work that has run for `ran_us` runs in all, so that so many of a thousand are done by then.

        permille: 1 to 999. Longer than nearly everything that was seen: of what has lasted so long, half lasts
        as long again.
        """
        shorter = bisect_right(self.lengths_us, ran_us)
        if ran_us and self.finished - shorter < FEW_LONGER:
            return max(ran_us + 1, ran_us * 1_000 // (1_000 - permille))
        before = self.cumulated[shorter - 1] if shorter else 0
        wanted = before - permille * (before - self.cumulated[-1]) // 1_000
        at = min(bisect_left(self.cumulated, wanted, shorter), self.finished - 1)
        return max(ran_us + 1, self.lengths_us[at])


Usually = Callable[[Request], Usual | None]
"""How long work like this request usually runs; None where nothing is known."""


def nothing_usual(request: Request) -> Usual | None:
    """Nobody has seen any work end."""
    del request
    return None
