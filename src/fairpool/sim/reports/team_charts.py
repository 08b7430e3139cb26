"""The charts of a report by team: waits, what is borrowed and lent, finish-time fairness."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import count

from fairpool.sim.reports.drawing import (
    WIDE,
    Frame,
    both,
    box,
    dot,
    duration_ticks,
    label,
    level_ticks,
    line,
    rule,
    steps,
    svg,
    text_of,
)
from fairpool.sim.reports.figures import Fairness, Figures, Group, Report, TeamUse
from fairpool.sim.reports.wording import duration, many, number, percent, shown

SMALL = 320
"""Width of one of many small charts."""
MOST_WAITS = 11
MOST_ROWS = 40
"""Teams that charts show, one small chart or one row each; tables show all."""
HOVERS = 40
RATIOS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1_000.0)


# ---- waits -----------------------------------------------------------------------------------------------------------


def waits(report: Report) -> str:
    """How waits are distributed, for all jobs and for the teams with the most: a small chart each."""
    found = _waiting(report)
    longest = max([10.0, *(group.waits.worst_s for _, groups in found for group in groups if group.waits)])
    charts = [_waits_of(report, name, groups, longest) for name, groups in found]
    return f'<div class="small-charts">{"".join(charts)}</div>'


def teams_left_out(report: Report) -> int:
    """How many teams have no small chart: those that waited least, or not at all."""
    return len(_waited(report)) - len(_charted(report))


def _waited(report: Report) -> dict[str, float]:
    """How long the jobs of each team waited together, under the rules under which that was longer."""
    waited: dict[str, float] = {}
    for group in (group for replay in report.replays for group in replay.groups if group.kind == "team"):
        total = group.waits.mean_s * group.waits.jobs if group.waits is not None else 0.0
        waited[group.name] = max(total, waited.get(group.name, 0.0))
    return waited


def _charted(report: Report) -> list[str]:
    waited = _waited(report)
    most = sorted(waited, key=lambda name: (-waited[name], name))[:MOST_WAITS]
    return sorted(name for name in most if waited[name])


def _waiting(report: Report) -> list[tuple[str, list[Group]]]:
    """All jobs first, then the charted teams by name; of each the group under each of the rules."""
    all_ = ("All jobs", [_group(replay, "all", "") for replay in report.replays])
    teams = [
        (name or "(none)", [_group(replay, "team", name) for replay in report.replays]) for name in _charted(report)
    ]
    return [all_, *teams]


def _group(replay: Figures, kind: str, name: str) -> Group:
    return next((group for group in replay.groups if group.kind == kind and group.name == name), nobody(name))


def nobody(name: str) -> Group:
    """A team without jobs."""
    none = dict.fromkeys(("jobs", "finished", "running", "waiting", "refused", "evictions"), 0)
    return Group(kind="team", name=name, waits=None, lost_hours=0, **none)


def _waits_of(report: Report, name: str, groups: Sequence[Group], longest_s: float) -> str:
    frame = Frame(width=SMALL, height=168, left=40, x_to=math.log10(longest_s))
    shapes = [*_wait_axes(frame, longest_s)]
    for place, group in enumerate(groups):
        if group.waits is not None:
            points = [(frame.x(math.log10(at)), frame.y(share)) for at, share in group.waits.distribution]
            shapes.append(line(steps(points, frame.x(frame.x_to)), f"line s{place}"))
    shapes += _wait_hovers(report, frame, groups)
    title = shown(name)
    told = "".join(_wait_told(place, group, two=len(groups) > 1) for place, group in enumerate(groups))
    chart = svg(frame, f"Share of jobs of {title} that waited no longer than a length of time", shapes, "fluid")
    jobs = many(max(group.jobs for group in groups), "job")
    caption = f'<b>{text_of(title)}</b> <span class="quiet">{jobs}</span>{told}'
    return f"<figure><figcaption>{caption}</figcaption>{chart}</figure>"


def _wait_told(place: int, group: Group, *, two: bool) -> str:
    if group.waits is None:
        return ""
    waits_ = group.waits
    lengths = f"median {duration(waits_.median_s)} · 95th {duration(waits_.p95_s)} · worst {duration(waits_.worst_s)}"
    key = f'<i class="key s{place}"></i>' if two else ""
    return f'<span class="told">{key}{lengths}</span>'


def _wait_axes(frame: Frame, longest_s: float) -> Iterator[str]:
    for share in (0, 0.5, 1):
        yield rule(frame.left, frame.y(share), frame.width - frame.right, frame.y(share))
        yield label(frame.left - 6, frame.y(share) + 4, percent(share), "tick", "end")
    for at, told in duration_ticks(1, longest_s, 6):
        yield rule(frame.x(math.log10(at)), frame.top, frame.x(math.log10(at)), frame.floor + 4)
        yield label(frame.x(math.log10(at)), frame.floor + 18, told, "tick", "middle")


def _wait_hovers(report: Report, frame: Frame, groups: Sequence[Group]) -> Iterator[str]:
    for place in range(HOVERS):
        left, right = (frame.x_to * (place + step) / HOVERS for step in (0, 1))
        at_s = 10**right
        told = [
            f"{replay.name}: {percent(_share(group, at_s))} waited {duration(at_s)} or less"
            for replay, group in zip(report.replays, groups, strict=True)
            if group.waits is not None
        ]
        if told:
            width = frame.x(right) - frame.x(left)
            yield box(frame.x(left), frame.top, width, frame.floor - frame.top, "hover", "\n".join(told))


def _share(group: Group, at_s: float) -> float:
    assert group.waits is not None
    place = bisect_right(group.waits.distribution, (at_s * (1 + 1e-9), 2.0))
    return group.waits.distribution[place - 1][1] if place else group.waits.at_once


# ---- borrowed and lent -----------------------------------------------------------------------------------------------


def lending(report: Report) -> str:
    """What each team borrowed, to the right, and lent, to the left; a bar for each of the rules."""
    teams = _largest({use.team: use.borrowed_hours + use.lent_hours for r in report.replays for use in r.teams})
    uses = [{use.team: use for use in replay.teams} for replay in report.replays]
    most = max([0.0, *(max(use.borrowed_hours, use.lent_hours) for one in uses for use in one.values())])

    def draw(width: int) -> str:
        row = 14 * len(uses) + 10
        left = 150 if width == WIDE else 78
        top = level_ticks(most, 3 if width == WIDE else 2)[-1]
        frame = Frame(width=width, height=row * len(teams) + 44, left=left, right=24, top=22, x_from=-top, x_to=top)
        shapes = [*_lending_axes(frame, most, report.unit, wanted=3 if width == WIDE else 2)]
        for place, team in enumerate(teams):
            y = frame.top + row * place + 5
            shapes.append(label(left - 8, y + row / 2 - 1, shown(team, 20 if width == WIDE else 10), "name", "end"))
            for which, one in enumerate(uses):
                if team in one:
                    told = _lending_told(report.replays[which].name, one[team], report.unit)
                    shapes += _bars(frame, one[team], y + 14 * which, which, told)
        return svg(frame, f"{report.unit}-hours borrowed and lent by team", shapes)

    return both(draw)


def _largest(sizes: dict[str, float]) -> list[str]:
    return sorted(sorted(sizes, key=lambda team: (-sizes[team], team))[:MOST_ROWS])


def _bars(frame: Frame, use: TeamUse, y: float, which: int, told: str) -> Iterator[str]:
    middle = frame.x(0)
    yield box(middle, y, frame.x(use.borrowed_hours) - middle, 12, f"bar s{which}", told)
    yield box(frame.x(-use.lent_hours), y, middle - frame.x(-use.lent_hours), 12, f"bar lent s{which}", told)


def _lending_told(name: str, use: TeamUse, unit: str) -> str:
    return (
        f"{use.team}, {name}: borrowed {number(use.borrowed_hours)} {unit}-hours, lent {number(use.lent_hours)}; "
        f"{number(use.reserved)} {unit} reserved, {number(use.used_hours)} {unit}-hours used"
    )


def _lending_axes(frame: Frame, most: float, unit: str, wanted: int) -> Iterator[str]:
    for level in level_ticks(most, wanted):
        for side in {level, -level}:
            yield rule(frame.x(side), frame.top, frame.x(side), frame.floor, "grid" if level else "mark")
            yield label(frame.x(side), frame.floor + 16, number(level), "tick", "middle")
    yield label(frame.x(0) - 8, 14, "← lent", "tick", "end")
    yield label(frame.x(0) + 8, 14, f"borrowed → ({unit}-hours)", "tick")


# ---- fairness --------------------------------------------------------------------------------------------------------


def fairness(report: Report) -> str:
    """Each team's time to finish against being alone: median, 95th and worst, on a logarithmic axis."""
    found = [{one.team: one for one in replay.fairness if one.jobs} for replay in report.replays]
    teams = _largest({one.team: one.jobs for side in found for one in side.values()})
    if not teams:
        return ""
    values = [value for side in found for one in side.values() for value in (one.median, one.worst) if value]
    least, most = min([0.3, *values]), max([3.0, *values])

    def draw(width: int) -> str:
        row = 16 * len(found) + 10
        left = 150 if width == WIDE else 78
        frame = Frame(
            width=width,
            height=row * len(teams) + 48,
            left=left,
            right=24,
            top=22,
            x_from=math.log10(least) - 0.05,
            x_to=math.log10(most) + 0.05,
        )
        shapes = [*_ratio_axes(frame)]
        for place, team in enumerate(teams):
            y = frame.top + row * place + 5
            shapes.append(label(left - 8, y + row / 2 - 1, shown(team, 20 if width == WIDE else 10), "name", "end"))
            for which, side in zip(count(), found, strict=False):
                if team in side:
                    shapes += _dots(frame, side[team], y + 8 + 16 * which, which, report.replays[which].name)
        return svg(frame, "Time to finish, against the team alone on its reservation", shapes)

    return both(draw)


def _ratio_axes(frame: Frame) -> Iterator[str]:
    for ratio in RATIOS:
        if frame.x_from <= math.log10(ratio) <= frame.x_to:
            x = frame.x(math.log10(ratio))
            yield rule(x, frame.top, x, frame.floor, "one" if ratio == 1 else "grid")
            yield label(x, frame.floor + 16, f"{ratio:g}×", "tick", "middle")
    yield label(frame.x(0) - 8, 14, "← sooner", "tick", "end")
    yield label(frame.x(0) + 8, 14, "later than alone →" if frame.width == WIDE else "later →", "tick")


def _dots(frame: Frame, one: Fairness, y: float, which: int, name: str) -> Iterator[str]:
    assert one.median is not None and one.p95 is not None and one.worst is not None and one.within is not None
    told = (
        f"{one.team}, {name}: median {number(one.median)}, 95th {number(one.p95)}, worst {number(one.worst)}; "
        f"{percent(one.within)} of {many(one.jobs, 'job')} not later than alone on {one.reservation}"
    )
    median, p95, worst = (frame.x(math.log10(value)) for value in (one.median, one.p95, one.worst))
    yield rule(median, y, worst, y, f"span s{which}")
    yield dot(worst, y, 3, f"dot worst s{which}", told)
    yield dot(p95, y, 4, f"dot ring s{which}", told)
    yield dot(median, y, 5, f"dot s{which}", told)
