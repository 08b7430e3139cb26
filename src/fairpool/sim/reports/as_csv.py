"""The report as two tables of comma-separated values: one row per job and replay, and one per figure."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from fairpool.core.ids import SECOND, Instant
from fairpool.sim.ledger import NEVER
from fairpool.sim.reports.figures import FATES, Figures, Report
from fairpool.sim.reports.outcome import Outcome
from fairpool.sim.reports.parties import Parties
from fairpool.sim.reports.wording import moment

JOBS = (
    "replay",
    "job",
    "team",
    "profile",
    "pool",
    "asked",
    "submitted_at",
    "first_start_at",
    "ended_at",
    "fate",
    "run_s",
    "wait_s",
    "held_s",
    "evictions",
    "done_again_s",
)
FIGURES = ("replay", "about", "name", "figure", "value")


def job_rows(outcomes: Sequence[Outcome], key: str) -> Iterator[Sequence[object]]:
    """The heading, then a row for each job of each replay. Amounts are of the report's resource."""
    yield JOBS
    for outcome in outcomes:
        yield from _rows_of(outcome, key)


def _rows_of(outcome: Outcome, key: str) -> Iterator[Sequence[object]]:
    ledger, parties = outcome.ledger, Parties(outcome.rules)
    pools, amounts = parties.pool_names(ledger), parties.amounts(ledger, key)
    evictions = [0] * len(ledger.jobs)
    for evicted in ledger.evictions:
        evictions[evicted.job] += 1
    for number, job in enumerate(ledger.jobs):
        yield (
            _plain(outcome.name),
            _plain(job.name),
            _plain(parties.of(job)),
            _plain(job.profile),
            pools[ledger.pool[number]],
            amounts[number] / 1000,
            _moment(job.submitted_at),
            _moment(ledger.first_start[number]),
            _moment(ledger.ended[number]),
            FATES[ledger.fate[number]],
            job.run_us / SECOND,
            ledger.wait_us(number) / SECOND,
            ledger.held_us[number] / SECOND,
            evictions[number],
            ledger.lost_us[number] / SECOND,
        )


def figure_rows(report: Report) -> Iterator[Sequence[object]]:
    """The heading, then a row for each figure of each replay; what is told over time is only in JSON."""
    yield FIGURES
    for replay in report.replays:
        for about, name, found in _tables(replay):
            for figure, value in found.items():
                if isinstance(value, str | int | float):
                    yield replay.name, about, _plain(name), figure, value


def _tables(replay: Figures) -> Iterator[tuple[str, str, dict[str, object]]]:
    for group in replay.groups:
        waits = group.waits.model_dump(exclude={"jobs"}) if group.waits is not None else {}
        counts = group.model_dump(exclude={"kind", "name", "waits"})
        yield group.kind, group.name, {**counts, **{f"wait_{name}": value for name, value in waits.items()}}
    for pool in replay.pools:
        yield "utilisation", pool.pool, pool.model_dump(exclude={"pool"})
    for team in replay.teams:
        yield "usage", team.team, team.model_dump(exclude={"team"})
    yield "lending", "", replay.lending.model_dump()
    yield "evictions", "", replay.evictions.model_dump()
    for one in replay.fairness:
        yield "fairness", one.team, one.model_dump(exclude={"team"})


def write(stream: TextIO, rows: Iterable[Sequence[object]]) -> None:
    """Write the rows as lines of CSV."""
    csv.writer(stream, lineterminator="\n").writerows(rows)


def _plain(name: str) -> str:
    """A name of the trace that no spreadsheet takes for a formula."""
    return f"'{name}" if name[:1] in ("=", "+", "-", "@", "\t", "\r") else name


def _moment(at: int) -> str:
    return "" if at == NEVER else moment(Instant(at)).isoformat()
