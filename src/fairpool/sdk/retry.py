"""How often a step is tried again, and how long to wait before."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from fairpool.sdk.checked import Checked
from fairpool.sdk.settings import unknown
from fairpool.sdk.units import duration_s

LONGEST_DELAY_S = 86_400
"""Backing off further than a day helps nobody."""


class StepRetryConfig(Checked):
    """Tries a step again when it failed, or when it had to let go of its resources (S32).

    max_retries: attempts after the first. delay: seconds (or ``30s``, ``5m``) before the first of them.
    backoff: what the delay is multiplied with each time.
    A preempted step is queued again at once, without the delay, and keeps its place (S24).

    Raises InvalidUse (a ValueError) naming field, value and what is possible.
    """

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            for name in values:
                if name not in cls.model_fields:
                    raise ValueError(unknown("field", str(name), list(cls.model_fields)))
        return values

    max_retries: int = Field(default=0, ge=0)
    delay: Annotated[float | str | timedelta, BeforeValidator(duration_s)] = 0
    backoff: float = Field(default=1, ge=1, allow_inf_nan=False)

    def delay_s(self, retry: int) -> float:
        """Seconds to wait before the given retry, counted from 1."""
        first_s = duration_s(self.delay)
        if not first_s:
            return 0.0
        try:
            return min(first_s * self.backoff ** (retry - 1), LONGEST_DELAY_S)
        except OverflowError:
            return LONGEST_DELAY_S
