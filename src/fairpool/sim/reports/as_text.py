"""The report as tables of text; how they are printed is the command line's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairpool.sim.reports.figures import Change, Comparison, Figures, Group, Report
from fairpool.sim.reports.wording import duration, number, percent, shown, told_moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table. name: what it is called in code. title: a line above it. note: lines below.

    numeric: which columns are numbers, by place. rules: which says what rules a row is of; None where none does.
    details: for each row, sentences to stand below it; empty where there are none for any.
    """

    name: str
    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: tuple[str, ...] = ()
    numeric: tuple[int, ...] = ()
    rules: int | None = None
    details: tuple[tuple[str, ...], ...] = ()


def as_tables(report: Report) -> list[Table]:
    """Everything but what is told over time. Rows of the same team stand together, one for each of the rules."""
    named = len(report.replays) > 1
    found = [_waits(report.replays, kind, named=named) for kind in ("team", "pool", "profile")]
    found.append(_pools(report, named=named))
    found.append(_teams(report, named=named))
    found.append(_evictions(report, named=named))
    if any(replay.fairness for replay in report.replays):
        found.append(_fairness(report.replays, named=named))
    if report.comparison is not None:
        found += _comparison(report.comparison, [shown(replay.name) for replay in report.replays])
    return [table for table in found if table.rows]


def _table(
    name: str,
    title: str,
    headings: Sequence[str],
    rows: Iterable[tuple[str, ...]],
    *,
    words: int,
    named: bool,
    more_words: int = 0,
    note: str = "",
) -> Table:
    """words: how many columns at the beginning are words; the next one says the rules, where there are two, and is
    followed by more_words."""
    ordered = sorted(rows, key=lambda row: row[:words])
    if not named:
        headings = (*headings[:words], *headings[words + 1 :])
        ordered = [(*row[:words], *row[words + 1 :]) for row in ordered]
    return Table(
        name=name,
        title=title,
        headings=tuple(headings),
        rows=tuple(ordered),
        note=tuple(note.splitlines()),
        numeric=tuple(range(words + named + more_words, len(headings))),
        rules=words if named else None,
    )


def _waits(replays: Sequence[Figures], kind: str, *, named: bool) -> Table:
    headings = (kind.upper(), "RULES", "JOBS", "MEAN", "MEDIAN", "95TH", "WORST", "AT ONCE", "UNFINISHED", "REFUSED")
    chosen = [(replay, group) for replay in replays for group in replay.groups if group.kind in ("all", kind)]
    if kind != "team" and len({group.name for _, group in chosen if group.kind == kind}) < 2:
        chosen = []  # it would say again what is said of all jobs
    rows = (_wait_row(replay.name, group) for replay, group in chosen)
    return _table(f"waits-{kind}", f"Waits by {kind}", headings, rows, words=1, named=named)


def _called(group: Group) -> str:
    return "(all)" if group.kind == "all" else shown(group.name) or "(none)"


def _wait_row(replay: str, group: Group) -> tuple[str, ...]:
    waits = group.waits
    told: tuple[str, ...] = ("",) * 5
    if waits is not None:
        lengths = (waits.mean_s, waits.median_s, waits.p95_s, waits.worst_s)
        told = (*(duration(length) for length in lengths), percent(waits.at_once))
    return (
        _called(group),
        shown(replay),
        f"{group.jobs:,}",
        *told,
        f"{group.waiting + group.running:,}",
        f"{group.refused:,}",
    )


def _pools(report: Report, *, named: bool) -> Table:
    headings = ("POOL", "RULES", report.unit.upper(), "MEAN IN USE", "SHARE", "PEAK")
    rows = (
        (
            pool.pool,
            shown(replay.name),
            number(pool.capacity),
            number(pool.mean),
            percent(pool.mean / pool.capacity) if pool.capacity else "",
            number(pool.peak),
        )
        for replay in report.replays
        for pool in replay.pools
    )
    return _table("utilisation", "Utilisation", headings, rows, words=1, named=named)


def _teams(report: Report, *, named: bool) -> Table:
    headings = ("TEAM", "RULES", "RESERVED", "USED", "BORROWED", "LENT")
    rows = (
        (
            shown(team.team),
            shown(replay.name),
            number(team.reserved),
            number(team.used_hours),
            number(team.borrowed_hours),
            number(team.lent_hours),
        )
        for replay in report.replays
        for team in replay.teams
    )
    note = f"Used, borrowed and lent in {report.unit}-hours. Borrowed: above the reservation; lent: of what is unused."
    return _table("lending", "Borrowed and lent", headings, rows, words=1, named=named, note=note)


def _evictions(report: Report, *, named: bool) -> Table:
    headings = ("TEAM", "RULES", "EVICTED", f"{report.unit.upper()}-HOURS DONE AGAIN")
    rows = (
        (_called(group), shown(replay.name), f"{group.evictions:,}", number(group.lost_hours))
        for replay in report.replays
        for group in replay.groups
        if group.kind == "all" or (group.kind == "team" and group.evictions)
    )
    note = "\n".join(
        f"{shown(replay.name)}: {replay.evictions.reclaims:,} for what is reserved for others, "
        f"{replay.evictions.by_priority:,} for higher priority, {replay.evictions.by_operator:,} by an operator's wish."
        for replay in report.replays
    )
    return _table("evictions", "Evictions", headings, rows, words=1, named=named, note=note)


def _fairness(replays: Sequence[Figures], *, named: bool) -> Table:
    headings = ("TEAM", "RULES", "ALONE ON", "JOBS", "NOT LATER", "LATER", "MEAN", "95TH", "WORST", "LEFT OUT")
    rows = (
        (
            shown(one.team),
            shown(replay.name),
            one.reservation or "(nothing reserved)",
            f"{one.jobs:,}",
            percent(one.within) if one.within is not None else "",
            f"{one.later_jobs:,}" if one.jobs else "",
            *(number(value) if value is not None else "" for value in (one.mean, one.p95, one.worst)),
            f"{one.left_out:,}" if one.reservation else "",
        )
        for replay in replays
        for one in replay.fairness
    )
    note = "Time from being asked for to the end, divided by the same with the team alone on its reservation."
    return _table("fairness", "Finish-time fairness", headings, rows, words=1, more_words=1, named=named, note=note)


def _comparison(found: Comparison, names: Sequence[str]) -> list[Table]:
    first, second = names
    counts = Table(
        name="change",
        title=f"From {first} to {second}",
        headings=("END LATER", "SOONER", "THE SAME", "UNKNOWN", "ON AVERAGE"),
        rows=((f"{found.later:,}", f"{found.sooner:,}", f"{found.same:,}", f"{found.unknown:,}", _mean(found)),),
        note=tuple(shown(one, most=1_000) for one in found.differences) or ("The rules are the same.",),
        numeric=(0, 1, 2, 3, 4),
    )
    return [counts, _changes("lose", "Who lose most", found.lose), _changes("gain", "Who gain most", found.gain)]


def _mean(found: Comparison) -> str:
    return "" if found.mean_later_s is None else told_change(found.mean_later_s)


def _changes(name: str, title: str, changes: Sequence[Change]) -> Table:
    return Table(
        name=name,
        title=title,
        headings=("JOB", "TEAM", "ASKS", "SUBMITTED", "WAIT BEFORE", "AFTER", "ENDS"),
        rows=tuple(
            (
                shown(change.job),
                shown(change.team),
                change.asks,
                told_moment(change.submitted_at),
                duration(change.first.wait_s),
                duration(change.second.wait_s),
                ends(change),
            )
            for change in changes
        ),
        numeric=(4, 5, 6),
        details=tuple(tuple(change.explanation) for change in changes),
    )


def ends(change: Change) -> str:
    """How much later or sooner a job ends in the second replay."""
    if change.later_s is None:
        return "runs before only" if change.second.fate in ("rejected", "cancelled") else "runs after only"
    return ("at least " if change.at_least else "") + told_change(change.later_s)


def told_change(later_s: float) -> str:
    """``2h5m later``, ``3d sooner``, ``no change``."""
    if not later_s:
        return "no change"
    return f"{duration(abs(later_s))} {'later' if later_s > 0 else 'sooner'}"
