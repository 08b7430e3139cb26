"""The report as tables of text; how they are printed is the command line's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairpool.sim.reports.figures import Change, Comparison, Figures, Group, Report
from fairpool.sim.reports.wording import duration, number, percent, told_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table. title: a line above it. note: lines below. numeric: which columns are numbers, by place."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: tuple[str, ...] = ()
    numeric: tuple[int, ...] = ()


def as_tables(report: Report) -> list[Table]:
    """Everything but what is told over time."""
    named = len(report.replays) > 1
    found = [_waits(report.replays, kind, named=named) for kind in ("team", "pool", "profile")]
    found.append(_pools(report, named=named))
    found.append(_teams(report, named=named))
    found.append(_evictions(report, named=named))
    if any(replay.fairness for replay in report.replays):
        found.append(_fairness(report.replays, named=named))
    if report.comparison is not None:
        found += _comparison(report.comparison, [replay.name for replay in report.replays])
    return [table for table in found if table.rows]


def _table(
    title: str, headings: Sequence[str], rows: Iterator[tuple[str, ...]], *, words: int, named: bool, note: str = ""
) -> Table:
    """words: how many columns at the beginning are words; named: whether rows begin with the replay's name."""
    if not named:
        headings, shown = headings[1:], tuple(row[1:] for row in rows)
    else:
        shown = tuple(rows)
    first = words + named
    return Table(
        title=title,
        headings=tuple(headings),
        rows=shown,
        note=(note,) if note else (),
        numeric=tuple(range(first, len(headings))),
    )


def _waits(replays: Sequence[Figures], kind: str, *, named: bool) -> Table:
    headings = ("RULES", kind.upper(), "JOBS", "MEAN", "MEDIAN", "95TH", "WORST", "AT ONCE", "UNFINISHED", "REFUSED")
    chosen = [(replay, group) for replay in replays for group in replay.groups if group.kind in ("all", kind)]
    if kind == "profile" and not any(group.name for _, group in chosen):
        chosen = []
    rows = (_wait_row(replay.name, group) for replay, group in chosen)
    return _table(f"Waits by {kind}", headings, rows, words=1, named=named)


def _wait_row(replay: str, group: Group) -> tuple[str, ...]:
    name = "(all)" if group.kind == "all" else group.name or "(none)"
    waits = group.waits
    told: tuple[str, ...] = ("",) * 5
    if waits is not None:
        lengths = (waits.mean_s, waits.median_s, waits.p95_s, waits.worst_s)
        told = (*(duration(length) for length in lengths), percent(waits.at_once))
    return (replay, name, f"{group.jobs:,}", *told, f"{group.waiting + group.running:,}", f"{group.refused:,}")


def _pools(report: Report, *, named: bool) -> Table:
    headings = ("RULES", "POOL", report.unit.upper(), "MEAN IN USE", "SHARE", "PEAK")
    rows = (
        (
            replay.name,
            pool.pool,
            number(pool.capacity),
            number(pool.mean),
            percent(pool.mean / pool.capacity) if pool.capacity else "",
            number(pool.peak),
        )
        for replay in report.replays
        for pool in replay.pools
    )
    return _table("Utilisation", headings, rows, words=1, named=named)


def _teams(report: Report, *, named: bool) -> Table:
    headings = ("RULES", "TEAM", "RESERVED", "USED", "BORROWED", "LENT")
    rows = (
        (
            replay.name,
            team.team,
            number(team.reserved),
            number(team.used_hours),
            number(team.borrowed_hours),
            number(team.lent_hours),
        )
        for replay in report.replays
        for team in replay.teams
    )
    note = f"Used, borrowed and lent in {report.unit}-hours. Borrowed: above the reservation; lent: of what is unused."
    return _table("Borrowed and lent", headings, rows, words=1, named=named, note=note)


def _evictions(report: Report, *, named: bool) -> Table:
    headings = ("RULES", "EVICTIONS", "RECLAIMED", "BY PRIORITY", f"{report.unit.upper()}-HOURS DONE AGAIN")
    rows = (
        (
            replay.name,
            f"{replay.evictions.count:,}",
            f"{replay.evictions.reclaims:,}",
            f"{replay.evictions.by_priority:,}",
            number(replay.evictions.lost_hours),
        )
        for replay in report.replays
    )
    return _table("Evictions", headings, rows, words=0, named=named)


def _fairness(replays: Sequence[Figures], *, named: bool) -> Table:
    headings = ("RULES", "TEAM", "ALONE ON", "JOBS", "NOT LATER", "LATER", "MEAN", "95TH", "WORST")
    rows = (
        (
            replay.name,
            one.team,
            one.reservation or "(nothing reserved)",
            f"{one.jobs:,}",
            percent(one.within) if one.within is not None else "",
            f"{one.later_jobs:,}" if one.jobs else "",
            *(number(value) if value is not None else "" for value in (one.mean, one.p95, one.worst)),
        )
        for replay in replays
        for one in replay.fairness
    )
    note = "Time from being asked for to the end, divided by the same with the team alone on its reservation."
    return _table("Finish-time fairness", headings, rows, words=2, named=named, note=note)


def _comparison(found: Comparison, names: Sequence[str]) -> list[Table]:
    first, second = names
    what = f"from {first} to {second}"
    counts = Table(
        title=f"The change {what}",
        headings=("LATER", "SOONER", "SAME", "UNKNOWN", "MEAN CHANGE"),
        rows=((f"{found.later:,}", f"{found.sooner:,}", f"{found.same:,}", f"{found.unknown:,}", _mean(found)),),
        note=tuple(found.differences) or ("The rules are the same.",),
        numeric=(0, 1, 2, 3, 4),
    )
    lists = (("lose", found.lose), ("gain", found.gain))
    return [counts, *(_changes(f"Who {verb} most {what}", changes) for verb, changes in lists)]


def _mean(found: Comparison) -> str:
    return "" if found.mean_later_s is None else told_change(found.mean_later_s, at_least=False)


def _changes(title: str, changes: Sequence[Change]) -> Table:
    return Table(
        title=title,
        headings=("JOB", "TEAM", "ASKS", "SUBMITTED", "WAIT BEFORE", "AFTER", "ENDS", "WHY"),
        rows=tuple(
            (
                change.job,
                change.team,
                change.asks,
                told_moment(change.submitted_at),
                duration(change.first.wait_s),
                duration(change.second.wait_s),
                told_change(change.later_s, at_least=change.at_least) if change.later_s is not None else _only(change),
                change.explanation,
            )
            for change in changes
        ),
        numeric=(4, 5, 6),
    )


def told_change(later_s: float, *, at_least: bool) -> str:
    """``2h5m later``, ``at least 3d sooner``, ``no change``."""
    if not later_s:
        return "no change"
    least = "at least " if at_least else ""
    return f"{least}{duration(abs(later_s))} {'later' if later_s > 0 else 'sooner'}"


def _only(change: Change) -> str:
    return "runs before only" if change.second.fate in ("rejected", "cancelled") else "runs after only"
