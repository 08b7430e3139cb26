"""Sizes of memory and lengths of time as people write them."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from typing import Final

MEMORY_PATTERN: Final = r"^[0-9]+(KB|KiB|MB|MiB|GB|GiB|TB|TiB|PB|PiB)$"
_MEMORY: Final = re.compile(MEMORY_PATTERN)
_DURATION: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
_SECONDS: Final = (86_400, 3_600, 60, 1)


class ByteUnit(Enum):
    """Units of memory: decimal ones (KB is 10^3 bytes) and binary ones (KiB is 2^10 bytes)."""

    KB = "KB"
    KIB = "KiB"
    MB = "MB"
    MIB = "MiB"
    GB = "GB"
    GIB = "GiB"
    TB = "TB"
    TIB = "TiB"
    PB = "PB"
    PIB = "PiB"

    @property
    def byte_value(self) -> int:
        """How many bytes one of it is."""
        power = "KMGTP".index(self.value[0]) + 1
        return int(1024**power if self.value[1] == "i" else 1000**power)


def memory_bytes(text: str) -> int:
    """The bytes that a text such as ``16GiB`` stands for. Raises ValueError for what is no such text."""
    if not _MEMORY.match(text) or "\n" in text:
        raise ValueError(f"memory {text!r} is not a whole number and a unit; possible: 512MB, 16GB, 16GiB (KB … PiB)")
    digits = re.match(r"[0-9]+", text)
    assert digits is not None
    if len(digits.group()) > 18:
        raise ValueError(f"memory {text[:24]}… is too large; possible: up to 18 digits")
    return int(digits.group()) * ByteUnit(text[digits.end() :]).byte_value


def duration_s(value: object) -> float:
    """Seconds from a number of seconds, a timedelta, or a text such as ``90``, ``30m``, ``2h`` or ``1h30m``.

    Raises ValueError for what is negative, endless or no length of time.
    """
    possible = 'possible: seconds (90), or a text such as "30s", "15m", "2h", "1h30m", "2d"'
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise ValueError(f"{value!r} is no length of time; {possible}")
    elif isinstance(value, str):
        seconds = _read(value.strip(), possible)
    else:
        seconds = float(value)
    if not 0 <= seconds < 10**10:
        raise ValueError(f"{value!r} is no length of time; {possible}")
    return int(seconds) if seconds == int(seconds) else seconds


def _read(text: str, possible: str) -> float:
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    found = _DURATION.fullmatch(text)
    if not text or found is None:
        raise ValueError(f"{text!r} is no length of time; {possible}")
    return sum(float(part) * unit for part, unit in zip(found.groups(), _SECONDS, strict=True) if part)
