"""The axis of time: where its marks stand and what they say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

MINUTE, HOUR, DAY = 60, 3_600, 86_400
_STEPS = (1, 5, 15, 30, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR)
_DAYS = (1, 2, 3, 7, 14, 28, 91, 182, 364, 1820, 3640)


def time_ticks(begin: datetime, length_s: float, wanted: int) -> list[tuple[float, str]]:
    """Round moments in UTC: seconds from the beginning, and how each is told. Not more than wanted."""
    steps = [*_STEPS, *(DAY * days for days in _DAYS)]
    step = next((one for one in steps if length_s / one <= wanted), steps[-1])
    midnight = begin.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    passed = (begin - midnight).total_seconds()
    first = -(-passed // step) * step - passed
    found = []
    at = first
    while at <= length_s:
        found.append((at, _told(begin + timedelta(seconds=at), step, length_s)))
        at += step
    return found


def _told(moment: datetime, step: int, length_s: float) -> str:
    if step >= DAY:
        day = f"{moment.day} {moment:%b}"
        return f"{day} {moment.year}" if length_s > 400 * DAY else day
    if step >= MINUTE:
        return f"{moment.day} {moment:%b}" if (moment.hour, moment.minute) == (0, 0) else f"{moment:%H:%M}"
    return f"{moment:%H:%M:%S}"
