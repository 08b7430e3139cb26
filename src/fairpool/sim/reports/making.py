"""The functions to call: reports made of outcomes, and written down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairpool.sim.reports.as_text import Table
from fairpool.sim.reports.figures import Report
from fairpool.sim.reports.outcome import About, Heard, Outcome


def summarise(outcome: Outcome, about: About, *, alone: bool = True, heard: Heard | None = None) -> Report:
    """The figures of one replay.

    alone: also replay each team alone on its reservation, for finish-time fairness.
    """
    raise NotImplementedError


def compare(
    first: Outcome,
    second: Outcome,
    about: About,
    *,
    alone: bool = True,
    explained: bool = True,
    heard: Heard | None = None,
) -> Report:
    """The figures of two replays of the same jobs, and who loses and gains by going from the first to the second.

    explained: also replay both once more, to hear why the jobs of that list waited.
    """
    raise NotImplementedError


def write_json(path: Path, report: Report) -> None:
    """The report as JSON. Raises OSError."""
    raise NotImplementedError


def write_html(path: Path, report: Report) -> None:
    """The report as one page that needs nothing besides. Raises OSError."""
    raise NotImplementedError


def write_csv(path: Path, report: Report, outcomes: Sequence[Outcome]) -> tuple[Path, Path]:
    """Two files beside each other: `path`, a row for each job and replay; and the figures, ``…-figures.csv``.

    Returns both. Raises OSError.
    """
    raise NotImplementedError


def tables(report: Report) -> list[Table]:
    """The report as tables, for the command line."""
    raise NotImplementedError
