"""Numbers as people read them, and units of what the ledger counts."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from fractions import Fraction

from fairpool.core.amounts import WHOLE
from fairpool.core.ids import SECOND, Instant

HOUR_US = 3600 * SECOND
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def hours(held: int | Fraction) -> float:
    """Units times hours, from thousandths times microseconds."""
    return float(Fraction(held) / (WHOLE * HOUR_US))


def units(amount: int | Fraction) -> float:
    """Units, from thousandths."""
    return float(Fraction(amount) / WHOLE)


def moment(at: Instant) -> datetime:
    """The moment as a date, to the microsecond."""
    return datetime.fromtimestamp(at // SECOND, tz=UTC).replace(microsecond=at % SECOND)


def told_moment(at: datetime) -> str:
    """``2017-10-03 14:05 UTC``."""
    return at.strftime("%Y-%m-%d %H:%M UTC")


def duration(length_s: float) -> str:
    """A length of time in its two largest units that say something: ``2h5m``, ``0.4s``."""
    if 0 < abs(length_s) < 1:
        return f"{length_s:.2g}s"
    sign, left = ("-" if length_s < 0 else ""), round(abs(length_s))
    parts: list[str] = []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return sign + "".join(parts[:2])


def number(value: float) -> str:
    """Three figures that say something, whole from a thousand on: ``0.25``, ``12.5``, ``1,234``."""
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def percent(share: float) -> str:
    """``97.5 %``; what is not quite all or nothing never reads as if it were."""
    for digits in (1, 2, 3, 4):
        told = f"{100 * share:.{digits}f}"
        if float(told) not in (0, 100) or share in (0, 1):
            return (told.rstrip("0").rstrip(".") if digits == 1 else told) + " %"
    return "under 0.0001 %" if share < 1 / 2 else "over 99.9999 %"


def many(count: int, one: str, more: str = "") -> str:
    """``1 job``, ``2 jobs``."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def shown(name: str, most: int = 60) -> str:
    """A name of a trace, which may be anything, on one line: nothing in it steers a terminal or turns text around."""
    plain = "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(sign) in _UNSEEN else sign for sign in name)
    return plain if len(plain) <= most else plain[: most - 1] + "…"


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of signs that are not seen: controls, formats, halves of pairs, ends of lines."""
