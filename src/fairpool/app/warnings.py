"""What whoever changes the rules is warned of, as facts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """A pool has less of a key than it would need. used, reserved: 0 for the one that there is enough for.

    key: "" where what is short is reserved over several pools together, and so lies nowhere in particular.
    """

    pool: str
    key: str = ""
    capacity: int = 0
    used: int = 0
    reserved: int = 0
