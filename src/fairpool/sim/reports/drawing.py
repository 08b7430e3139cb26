"""Charts in SVG, drawn by hand: text, lines and boxes with classes, whose looks the page's style says.

A chart is drawn twice, wide and narrow, so that its text has one size on every screen; the style shows one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from fairpool.sim.reports.wording import shown

WIDE, NARROW = 1040, 380
"""Widths in pixels: of the page, and of a phone."""

Point = tuple[float, float]


def text_of(words: object) -> str:
    """Anything as text of the page: nothing in it is markup, or turns the text around."""
    return escape(shown(str(words), most=2_000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where a chart's plot lies, and what its axes reach from and to; of a logarithmic x axis, the logarithms."""

    width: float
    height: float
    left: float = 44
    right: float = 10
    top: float = 8
    bottom: float = 26
    x_from: float = 0
    x_to: float = 1
    y_from: float = 0
    y_to: float = 1

    def x(self, value: float) -> float:
        """Pixels from the left."""
        share = (value - self.x_from) / ((self.x_to - self.x_from) or 1)
        return self.left + share * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        share = (value - self.y_from) / ((self.y_to - self.y_from) or 1)
        return self.height - self.bottom - share * (self.height - self.top - self.bottom)

    @property
    def floor(self) -> float:
        """The plot's lower edge."""
        return self.height - self.bottom


def svg(frame: Frame, told: str, shapes: Iterable[str], look: str = "") -> str:
    """A chart. told: what a reader hears who cannot see it."""
    size = f'viewBox="0 0 {frame.width:g} {frame.height:g}" width="{frame.width:g}" height="{frame.height:g}"'
    return f'<svg class="{look}" {size} role="img" aria-label="{text_of(told)}">{"".join(shapes)}</svg>'


def both(draw: Callable[[int], str]) -> str:
    """A chart for wide screens and one for narrow ones."""
    return f'<div class="wide">{draw(WIDE)}</div><div class="narrow">{draw(NARROW)}</div>'


def label(x: float, y: float, words: str, look: str = "", anchor: str = "start") -> str:
    """A line of text on its base line; anchor: start, middle or end."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{look}" text-anchor="{anchor}">{text_of(words)}</text>'


def line(points: Iterable[Point], look: str) -> str:
    """A line through the points."""
    return f'<path d="{_path(points)}" class="{look}"/>'


def area(points: Sequence[Point], floor: float, look: str) -> str:
    """What lies between the points and the floor."""
    if not points:
        return ""
    closed = [*points, (points[-1][0], floor), (points[0][0], floor)]
    return f'<path d="{_path(closed)}Z" class="{look}"/>'


def steps(points: Sequence[Point], end: float) -> list[Point]:
    """The corners of a stair: each point's height holds until the next one's place, the last until the end."""
    found: list[Point] = []
    for place, (x, y) in enumerate(points):
        until = points[place + 1][0] if place + 1 < len(points) else end
        found += [(x, y), (until, y)]
    return found


def box(x: float, y: float, width: float, height: float, look: str, told: str = "") -> str:
    """A rectangle. told: what is said where the pointer rests on it."""
    at = f'x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" height="{max(0.0, height):.1f}"'
    return f'<rect {at} class="{look}">{_title(told)}</rect>'


def dot(x: float, y: float, radius: float, look: str, told: str = "") -> str:
    """A dot."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{look}">{_title(told)}</circle>'


def rule(x1: float, y1: float, x2: float, y2: float, look: str = "grid") -> str:
    """A straight line."""
    return line([(x1, y1), (x2, y2)], look)


def _title(told: str) -> str:
    return f"<title>{text_of(told)}</title>" if told else ""


def _path(points: Iterable[Point]) -> str:
    """Points that lie in one line with their neighbours are left out."""
    kept: list[tuple[str, str]] = []
    for x, y in points:
        here = (f"{x:.1f}", f"{y:.1f}")
        if len(kept) > 1 and kept[-1][1] == kept[-2][1] == here[1]:
            kept[-1] = here
        elif not kept or kept[-1] != here:
            kept.append(here)
    return "M" + "L".join(f"{x} {y}" for x, y in kept) if kept else ""


def level_ticks(most: float, wanted: int = 4) -> list[float]:
    """Round numbers from nothing to at least `most`, about as many as wanted."""
    if most <= 0:
        return [0, 1]
    rough = most / wanted
    scale = 10 ** math.floor(math.log10(rough))
    step = next(scale * factor for factor in (1, 2, 2.5, 5, 10) if scale * factor >= rough)
    return [step * count for count in range(math.ceil(most / step - 1e-9) + 1)]


DURATIONS: tuple[tuple[float, str], ...] = (
    (1, "1 s"),
    (10, "10 s"),
    (60, "1 m"),
    (600, "10 m"),
    (3_600, "1 h"),
    (36_000, "10 h"),
    (86_400, "1 d"),
    (864_000, "10 d"),
    (8_640_000, "100 d"),
    (86_400_000, "1,000 d"),
)
"""Where a logarithmic axis of lengths of time has its marks, in seconds."""


def duration_ticks(least_s: float, most_s: float, wanted: int) -> list[tuple[float, str]]:
    """Lengths of time for a logarithmic axis, with how they are told."""
    found = [tick for tick in DURATIONS if least_s <= tick[0] <= most_s]
    while len(found) > max(2, wanted):
        found = found[::2]
    return found
