"""What a report starts from: rules, and the ledger of a replay under them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from fairpool.app.ports import Stored
from fairpool.sim.ledger import Ledger
from fairpool.sim.owners import Owners

Heard = Callable[[str, Ledger], None]
"""Hears how far a report is that replays again: what is being done, and the ledger as it is. May raise Enough."""


class Enough(Exception):
    """Whoever hears of progress has heard enough: the report is made of what is known by then."""


class Listening:
    """Who hears of progress, if anybody does. enough: they wanted no more."""

    def __init__(self, heard: Heard | None = None) -> None:
        self._heard = heard
        self.enough = False

    def hears_of(self, what: str) -> Callable[[Ledger], None] | None:
        """What a replay tells of its progress when it is that which is being done."""
        return None if self._heard is None else partial(self._heard, what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One replay, ended or stopped.

    name: what its rules are called, for people: the folder that they came from.
    rules, owners: what the replay was given; with the ledger's jobs they repeat it exactly.
    """

    name: str
    rules: Stored
    ledger: Ledger
    owners: Owners = field(default_factory=Owners)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a reader wants to know of a report before its figures.

    trace: where the jobs came from. options: what was asked for besides, by name, as people write it.
    command: what repeats the report. stopped: the replay was ended before the jobs were.
    """

    title: str = "Simulation"
    trace: str = ""
    command: str = ""
    version: str = ""
    seed: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    stopped: bool = False
