"""The functions to call: reports made of outcomes, and written down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairpool.core.ids import SECOND, Instant
from fairpool.sim.reports.as_csv import figure_rows, job_rows, write
from fairpool.sim.reports.as_json import as_json
from fairpool.sim.reports.as_text import Table, as_tables
from fairpool.sim.reports.changes import comparison
from fairpool.sim.reports.fairness import Soloists
from fairpool.sim.reports.figures import Axis, Report
from fairpool.sim.reports.outcome import About, Heard, Listening, Outcome
from fairpool.sim.reports.parties import Parties, measured_key, unit_of
from fairpool.sim.reports.replays import figures
from fairpool.sim.reports.usage import Intervals
from fairpool.sim.reports.wording import moment

INTERVALS = 360
"""Intervals of what is told over time: a chart of some hundreds of pixels shows no more."""


def summarise(outcome: Outcome, about: About, *, alone: bool = True, heard: Heard | None = None) -> Report:
    """The figures of one replay.

    alone: also replay each team alone on its reservation, for finish-time fairness. heard: may raise Enough, to have
    the report without what is not known by then.
    """
    return _report([outcome], about, alone=alone, explained=False, heard=heard)


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
    Raises InvalidInput where the replays are not of the same jobs.
    """
    return _report([first, second], about, alone=alone, explained=explained, heard=heard)


def _report(outcomes: Sequence[Outcome], about: About, *, alone: bool, explained: bool, heard: Heard | None) -> Report:
    key = measured_key(outcomes[0].rules)
    intervals = _intervals(outcomes)
    parties = [Parties(outcome.rules) for outcome in outcomes]
    sides = list(zip(outcomes, parties, strict=True))
    listening = Listening(heard)
    soloists = Soloists(listening) if alone else None
    replays = [figures(one, names, key, intervals, soloists=soloists) for one, names in sides]
    changes = comparison(sides[0], sides[1], asked=explained, listening=listening) if len(sides) == 2 else None
    return Report(
        title=about.title,
        trace=about.trace,
        command=about.command,
        version=about.version,
        seed=about.seed,
        options=dict(about.options),
        resource=key,
        unit=unit_of(key),
        begins_at=moment(intervals.begins_at),
        ends_at=moment(intervals.ends_at),
        stopped=about.stopped,
        cut_short=listening.enough,
        axis=Axis(
            begins_at=moment(intervals.begins_at),
            step_s=intervals.length_us / intervals.count / SECOND,
            intervals=intervals.count,
        ),
        replays=replays,
        comparison=changes,
    )


def _intervals(outcomes: Sequence[Outcome]) -> Intervals:
    """From the first replay's beginning to the last one's end; at least a second."""
    begin = min(outcome.ledger.began_at for outcome in outcomes)
    end = max(outcome.ledger.ended_at for outcome in outcomes)
    return Intervals(begins_at=begin, ends_at=Instant(max(end, begin + SECOND)), count=INTERVALS)


def write_json(path: Path, report: Report) -> None:
    """The report as JSON. Raises OSError."""
    path.write_text(as_json(report), encoding="utf-8")


def write_html(path: Path, report: Report) -> None:
    """The report as one page that needs nothing besides. Raises OSError."""
    from fairpool.sim.reports.as_html import as_html

    path.write_text(as_html(report), encoding="utf-8")


def write_csv(path: Path, report: Report, outcomes: Sequence[Outcome]) -> tuple[Path, Path]:
    """Two files beside each other: `path`, a row for each job and replay; and the figures, ``…-figures.csv``.

    Returns both. Raises OSError.
    """
    beside = path.with_name(f"{path.stem}-figures{path.suffix}")
    for file, rows in ((path, job_rows(outcomes, report.resource)), (beside, figure_rows(report))):
        with file.open("w", encoding="utf-8", errors="replace", newline="") as stream:
            write(stream, rows)
    return path, beside


def tables(report: Report) -> list[Table]:
    """The report as tables, for the command line."""
    return as_tables(report)
