"""Scripted owners: what they save, and how fast they let go when they are evicted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fairpool.core.ids import SECOND


class Progress(StrEnum):
    """What of its work an evicted job finds again: all of it but for what no checkpoint holds, or nothing."""

    KEPT = "kept"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """How the owners of jobs behave.

    checkpoint_interval_s: how often a job saves what it has done; 0 where it saves when it is told to let go, so that
    nothing is done twice. release_after_s: how long it takes to let go; what its policy's grace period cuts off.
    """

    progress: Progress = Progress.KEPT
    checkpoint_interval_s: int = 0
    release_after_s: int = 0

    def done_us(self, before_us: int, ran_us: int) -> int:
        """How much of a job's work is done for good when it is evicted after one more attempt of `ran_us`.

        before_us: what it had found when that attempt began. Checkpoints fall on every interval of work, from the
        job's beginning.
        """
        if self.progress is Progress.LOST:
            return 0
        reached = before_us + ran_us
        if not self.checkpoint_interval_s:
            return reached
        return max(before_us, reached - reached % (self.checkpoint_interval_s * SECOND))
