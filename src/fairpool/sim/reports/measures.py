"""Waits, ends and evictions, for all jobs and for each team, pool and profile. One pass over the ledger."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from fairpool.core.ids import SECOND
from fairpool.sim.ledger import Fate, Ledger
from fairpool.sim.reports.figures import Group, Waits
from fairpool.sim.reports.parties import Parties
from fairpool.sim.reports.quantiles import MEDIAN, P95, distribution, in_order, mean, quantile
from fairpool.sim.reports.wording import hours

KINDS = ("team", "pool", "profile")
REFUSED = (Fate.REJECTED, Fate.CANCELLED)

Kind = Literal["all", "team", "pool", "profile"]


@dataclass(slots=True)
class _Cell:
    """The jobs of one team, pool and profile.

    waits: microseconds, of those that were not refused. lost: thousandths times microseconds.
    """

    waits: array[int] = field(default_factory=lambda: array("q"))
    fates: list[int] = field(default_factory=lambda: [0] * len(Fate))
    evictions: int = 0
    lost: int = 0


def groups(ledger: Ledger, parties: Parties, key: str) -> list[Group]:
    """All jobs, then those of each team, pool and profile, by name."""
    cells = _cells(ledger, parties, parties.amounts(ledger, key))
    found = [_group("all", "", cells.values())] if cells else []
    for place, kind in enumerate(KINDS):
        together: dict[str, list[_Cell]] = {}
        for names, cell in cells.items():
            together.setdefault(names[place], []).append(cell)
        found.extend(_group(cast("Kind", kind), name, together[name]) for name in sorted(together))
    return found


def waits_of(ledger: Ledger) -> list[int]:
    """How long each job waited, in microseconds, by its number."""
    return [ledger.wait_us(number) for number in range(len(ledger.jobs))]


def _cells(ledger: Ledger, parties: Parties, amounts: Sequence[int]) -> dict[tuple[str, str, str], _Cell]:
    cells: dict[tuple[str, str, str], _Cell] = {}
    pools = parties.pool_names(ledger)
    team_of = parties.of_subjects
    own: list[_Cell] = []
    for number, (job, fate, pool, wait_us) in enumerate(
        zip(ledger.jobs, ledger.fate, ledger.pool, waits_of(ledger), strict=True)
    ):
        names = (team_of(job.subjects), pools[pool], job.profile)
        cell = cells.get(names)
        if cell is None:
            cell = cells[names] = _Cell()
        own.append(cell)
        cell.fates[fate] += 1
        if fate not in REFUSED:
            cell.waits.append(wait_us)
        lost_us = ledger.lost_us[number]
        if lost_us:
            cell.lost += lost_us * amounts[number]
    for evicted in ledger.evictions:
        own[evicted.job].evictions += 1
    return cells


def _group(kind: Kind, name: str, cells: Iterable[_Cell]) -> Group:
    cells = list(cells)
    fates = [sum(cell.fates[fate] for cell in cells) for fate in Fate]
    return Group(
        kind=kind,
        name=name,
        jobs=sum(fates),
        finished=fates[Fate.DONE] + fates[Fate.EXPIRED],
        running=fates[Fate.RUNNING],
        waiting=fates[Fate.WAITING],
        refused=sum(fates[fate] for fate in REFUSED),
        waits=waits([cell.waits for cell in cells], drawn=kind in ("all", "team")),
        evictions=sum(cell.evictions for cell in cells),
        lost_hours=hours(sum(cell.lost for cell in cells)),
    )


def waits(parts: Sequence[array[int]], *, drawn: bool) -> Waits | None:
    """The figures of waits in microseconds. drawn: with their distribution."""
    ordered = in_order(parts)
    if not ordered:
        return None
    return Waits(
        jobs=len(ordered),
        mean_s=float(mean(ordered) / SECOND),
        median_s=float(quantile(ordered, MEDIAN) / SECOND),
        p95_s=float(quantile(ordered, P95) / SECOND),
        worst_s=ordered[-1] / SECOND,
        at_once=_at_once(ordered) / len(ordered),
        distribution=[(us / SECOND, float(share)) for us, share in distribution(ordered)] if drawn else [],
    )


def _at_once(ordered: Sequence[int]) -> int:
    return next((place for place, wait_us in enumerate(ordered) if wait_us > 0), len(ordered))
