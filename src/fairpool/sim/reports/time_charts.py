"""The charts of a report over time: utilisation, what is lent, evictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta

from fairpool.sim.reports.calendar_axis import time_ticks
from fairpool.sim.reports.drawing import (
    NARROW,
    WIDE,
    Frame,
    Point,
    area,
    both,
    box,
    label,
    level_ticks,
    line,
    rule,
    steps,
    svg,
    text_of,
)
from fairpool.sim.reports.figures import Figures, PoolUse, Report
from fairpool.sim.reports.wording import many, number, told_moment

MOST_POOLS = 20
"""Pools that have a chart: the largest; the table has all."""
HOVERED = 120
"""Places along the axis of time at which a chart says its numbers: a pointer hits no narrower ones."""
LABEL = 44
"""About as wide as a mark of the axis of time is told, in pixels."""
BARS = {WIDE: 120, NARROW: 40}
"""Bars of counts over time, by the width of a chart."""


def largest_pools(report: Report) -> list[str]:
    """The pools that charts show, by name."""
    sizes: dict[str, float] = {}
    for pool in (pool for replay in report.replays for pool in replay.pools):
        sizes[pool.pool] = max(pool.capacity, sizes.get(pool.pool, 0.0))
    return sorted(sorted(sizes, key=lambda name: (-sizes[name], name))[:MOST_POOLS])


def utilisation(report: Report, pool: str) -> str:
    """How one pool was used under each of the rules."""
    found = [(replay.name, _pool_of(replay, pool)) for replay in report.replays]
    uses = [(name, use) for name, use in found if use is not None]
    most = max([0.0, *(max([use.capacity, *use.used]) for _, use in uses)])

    def draw(width: int) -> str:
        frame = _frame(report, width, 220, most)
        shapes = [*_axes(report, frame, most), *_there(report, frame, [use for _, use in uses])]
        for place, (_, use) in enumerate(uses):
            shapes += _used(report, frame, use, place)
        if width == WIDE:
            shapes += _hovers(report, frame, lambda here: _use_told(uses, here, report.unit))
        return svg(frame, f"{report.unit}s of pool {pool} in use over time", shapes)

    return both(draw)


def _pool_of(replay: Figures, name: str) -> PoolUse | None:
    return next((pool for pool in replay.pools if pool.pool == name), None)


def _used(report: Report, frame: Frame, use: PoolUse, place: int) -> Iterator[str]:
    points = _stairs(report, frame, use.used)
    if place == 0:
        yield area(points, frame.floor, "fill s0")
    yield line(points, f"line s{place}")


def _there(report: Report, frame: Frame, uses: Sequence[PoolUse]) -> Iterator[str]:
    """What there is, and what of it is reserved; each drawn once where it is the same under all rules."""
    capacities = [use.capacity for use in uses]
    reserved = [use.reserved or [] for use in uses]
    for place, look in _looks(capacities):
        level = frame.y(capacities[place])
        yield rule(frame.x(0), level, frame.x(frame.x_to), level, f"capacity {look}")
    for place, look in _looks(reserved):
        if any(reserved[place]):
            yield line(_stairs(report, frame, reserved[place]), f"reserved {look}")


def _looks(values: Sequence[object]) -> list[tuple[int, str]]:
    """Which of the values to draw, and how."""
    if len(values) > 1 and all(value == values[0] for value in values):
        return [(0, "same")]
    return [(place, f"s{place}") for place in range(len(values))]


def _use_told(uses: Sequence[tuple[str, PoolUse]], here: slice, unit: str) -> str:
    told = []
    for name, use in uses:
        reserved = f", {number(_mean(use.reserved[here]))} reserved" if use.reserved is not None else ""
        told.append(f"{name}: {number(_mean(use.used[here]))} of {number(use.capacity)} {unit} in use{reserved}")
    return "\n".join(told)


def lending(report: Report) -> str:
    """What was borrowed over time under each of the rules: of unused reservations, and of what nobody reserved."""
    all_ = [(replay.name, replay.lending) for replay in report.replays]
    most = max([0.0, *(max(map(sum, zip(one.lent, one.from_unreserved, strict=True))) for _, one in all_)])

    def draw(width: int) -> str:
        frame = _frame(report, width, 180, most)
        shapes = [*_axes(report, frame, most)]
        for place, (_, one) in enumerate(all_):
            points = _stairs(report, frame, one.lent)
            if place == 0:
                shapes.append(area(points, frame.floor, "fill s0"))
            shapes.append(line(points, f"line s{place}"))
        if width == WIDE:
            shapes += _hovers(
                report,
                frame,
                lambda here: "\n".join(
                    f"{name}: {number(_mean(one.lent[here]))} {report.unit} lent, "
                    f"{number(_mean(one.from_unreserved[here]))} borrowed of what nobody reserved"
                    for name, one in all_
                ),
            )
        return svg(frame, f"{report.unit}s lent out of unused reservations over time", shapes)

    return both(draw)


def evictions(report: Report) -> str:
    """How often work was evicted, over time: one chart for each of the rules, with the same axis."""
    return "".join(
        f'<p class="of"><i class="key s{place}"></i>{label_of}</p>{_evictions_of(report, place)}'
        for place, label_of in enumerate(_names(report))
    )


def _names(report: Report) -> list[str]:
    return [f"{text_of(replay.name)}: {many(replay.evictions.count, 'eviction')}" for replay in report.replays]


def _evictions_of(report: Report, place: int) -> str:
    def draw(width: int) -> str:
        count = BARS[width]
        bars = [_grouped(replay.evictions.over_time, count) for replay in report.replays]
        most = max([0, *(max(one, default=0) for one in bars)])
        frame = _frame(report, width, 130, most)
        shapes = [*_axes(report, frame, most, wanted=3)]
        length = frame.x_to / count
        for number_, height in enumerate(bars[place]):
            if height:
                left, right = frame.x(number_ * length), frame.x((number_ + 1) * length)
                told = f"{_moment(report, number_ * length)}\n{many(height, 'eviction')}"
                shapes.append(
                    box(
                        left + 0.5,
                        frame.y(height),
                        right - left - 1,
                        frame.floor - frame.y(height),
                        f"bar s{place}",
                        told,
                    )
                )
        return svg(frame, f"Evictions over time under {report.replays[place].name}", shapes)

    return both(draw)


def _grouped(counts: Sequence[int], groups: int) -> list[int]:
    bounds = [len(counts) * place // groups for place in range(groups + 1)]
    return [sum(counts[bounds[place] : bounds[place + 1]]) for place in range(groups)]


# ---- what they share -------------------------------------------------------------------------------------------------


def _frame(report: Report, width: int, height: int, most: float) -> Frame:
    top = level_ticks(most)[-1]
    return Frame(width=width, height=height, x_to=report.axis.step_s * report.axis.intervals, y_to=top)


def _axes(report: Report, frame: Frame, most: float, wanted: int = 4) -> Iterator[str]:
    for level in level_ticks(most, wanted):
        if level <= frame.y_to:
            yield rule(frame.left, frame.y(level), frame.width - frame.right, frame.y(level))
            yield label(frame.left - 6, frame.y(level) + 4, number(level), "tick", "end")
    for at, told in time_ticks(report.axis.begins_at, frame.x_to, 12 if frame.width == WIDE else 4):
        yield rule(frame.x(at), frame.floor, frame.x(at), frame.floor + 4, "mark")
        near_the_edge = frame.x(at) > frame.width - frame.right - LABEL / 2
        yield label(min(frame.x(at), frame.width), frame.floor + 18, told, "tick", "end" if near_the_edge else "middle")


def _stairs(report: Report, frame: Frame, values: Sequence[float]) -> list[Point]:
    points = [(frame.x(place * report.axis.step_s), frame.y(value)) for place, value in enumerate(values)]
    return steps(points, frame.x(frame.x_to))


def _hovers(report: Report, frame: Frame, tell: Callable[[slice], str]) -> Iterator[str]:
    """Strips across the plot that say the numbers of their time."""
    count = report.axis.intervals
    strips = min(HOVERED, count)
    for place in range(strips):
        here = slice(count * place // strips, count * (place + 1) // strips)
        left, right = frame.x(here.start * report.axis.step_s), frame.x(here.stop * report.axis.step_s)
        told = f"{_moment(report, here.start * report.axis.step_s)}\n{tell(here)}"
        yield box(left, frame.top, right - left, frame.floor - frame.top, "hover", told)


def _moment(report: Report, after_s: float) -> str:
    return told_moment(report.axis.begins_at + timedelta(seconds=after_s))


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0
