"""Draws the pictures of docs/explanation: `python docs/dev/pictures.py` writes them, `--check` compares them.

SVG by hand: every picture paints its own ground, follows the reader's light or dark scheme, and takes whatever sans
serif is there. Text is at least 14 px at 800 px wide. Their numbers are those of tests/scenarios/explained.yaml.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

ASSETS = Path(__file__).parents[1] / "assets"
WIDTH = 800
STYLE = """
  text { font: 15px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .small { font-size: 14px; } .strong { font-weight: 600; } .quiet { fill: #59636e; }
  .ground { fill: #ffffff; } .line { stroke: #59636e; fill: none; stroke-width: 1.5; } .tip { fill: #59636e; }
  .box { fill: #f3f4f6; stroke: #8c959f; } .idle { fill: none; stroke: #8c959f; stroke-dasharray: 4 3; }
  .blue { fill: #cfe3ff; stroke: #2f6fce; } .amber { fill: #ffdfa8; stroke: #a86400; }
  .green { fill: #cdeecf; stroke: #2c7d37; } .stripe { stroke: #1f2328; stroke-opacity: .35; stroke-width: 2; }
  .mark { stroke: #b3261e; stroke-width: 2; fill: none; } .alert { fill: #b3261e; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .quiet { fill: #a3adb8; } .ground { fill: #12161c; }
    .line { stroke: #a3adb8; } .tip { fill: #a3adb8; } .box { fill: #222a33; stroke: #6e7781; }
    .idle { stroke: #8b949e; }
    .blue { fill: #16406f; stroke: #6cb0ff; } .amber { fill: #5e4103; stroke: #f0b64a; }
    .green { fill: #17492a; stroke: #6fd07f; } .stripe { stroke: #e6edf3; stroke-opacity: .4; }
    .mark { stroke: #ff8f87; } .alert { fill: #ff8f87; }
  }
"""

STRIPES = (
    '<defs><pattern id="stripes" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path d="M0 0V8" class="stripe"/></pattern></defs>'
)


class Picture:
    """One picture being drawn; what is drawn later lies on top."""

    def __init__(self, height: int, title: str, told: str) -> None:
        """title, told: what a reader hears who cannot see it."""
        self._height = height
        self._title = title
        self._told = told
        self._shapes: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, look: str, *, striped: bool = False) -> None:
        """A rectangle; striped: what is borrowed, or kept."""
        at = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"'
        self._shapes.append(f'<rect {at} class="{look}"/>')
        if striped:
            self._shapes.append(f'<rect {at} fill="url(#stripes)"/>')

    def text(self, x: float, y: float, words: str, look: str = "", *, anchor: str = "start") -> None:
        """A line of text on its base line; anchor: start, middle or end."""
        looks = f' class="{look}"' if look else ""
        self._shapes.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{looks}>{escape(words)}</text>')

    def labelled(self, x: float, y: float, width: float, height: float, look: str, *lines: str) -> None:
        """A box with lines of text in its middle."""
        self.box(x, y, width, height, look)
        first = y + height / 2 + 5 - 9.5 * (len(lines) - 1)
        for number, line in enumerate(lines):
            self.text(x + width / 2, first + 19 * number, line, "small", anchor="middle")

    def line(self, x1: float, y1: float, x2: float, y2: float, look: str = "line", *, dashed: bool = False) -> None:
        """A straight line."""
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self._shapes.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="{look}"{dashes}/>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A straight line with a tip at its end, upright or level."""
        self.line(x1, y1, x2, y2)
        dx, dy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
        back_x, back_y = x2 - 9 * dx, y2 - 9 * dy
        points = f"{x2:g},{y2:g} {back_x + 5 * dy:g},{back_y + 5 * dx:g} {back_x - 5 * dy:g},{back_y - 5 * dx:g}"
        self._shapes.append(f'<polygon points="{points}" class="tip"/>')

    def svg(self) -> str:
        """The picture as a file's text."""
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self._height}" role="img">',
                f"<title>{escape(self._title)}</title>",
                f"<desc>{escape(self._told)}</desc>",
                f"<style>{STYLE}</style>",
                STRIPES,
                f'<rect width="{WIDTH}" height="{self._height}" rx="8" class="ground"/>',
                *self._shapes,
                "</svg>\n",
            ]
        )


# ---- one round ------------------------------------------------------------------------------------------------------


def one_round() -> Picture:
    """From calls to answers: four rows, time to the right."""
    told = (
        "Calls that arrive while a round is under way are collected. The scheduler's thread runs their commands, "
        "decides, and writes one transaction. Only after the commit are the answers and wake-ups sent."
    )
    picture = Picture(400, "One round of the scheduler", told)
    rows = (("callers", 20), ("event loop", 110), ("scheduler's", 215), ("SQLite", 320))
    for name, y in rows:
        picture.text(16, y + 32, name, "small strong")
        if name != "SQLite":
            picture.line(16, y + 72, 784, y + 72, dashed=True)
    picture.text(16, 266, "thread", "small strong")
    for x, words in ((130, "A submits"), (218, "B submits"), (306, "C releases")):
        picture.labelled(x, 28, 84, 40, "blue", words)
        picture.arrow(x + 42, 68, x + 42, 118)
    picture.labelled(130, 118, 260, 40, "box", "collected for the next round")
    picture.arrow(160, 158, 160, 222)
    picture.labelled(124, 222, 88, 50, "green", "run the", "commands")
    picture.arrow(212, 247, 234, 247)
    picture.labelled(234, 222, 116, 50, "green", "decide: serve", "touched pools")
    picture.arrow(350, 247, 372, 247)
    picture.labelled(372, 222, 88, 50, "green", "carry out", "the plan")
    picture.arrow(412, 272, 412, 328)
    picture.labelled(364, 328, 176, 44, "amber", "one transaction,", "one commit")
    picture.arrow(530, 328, 530, 272)
    picture.labelled(490, 222, 80, 50, "green", "tell")
    picture.arrow(530, 222, 530, 158)
    picture.labelled(464, 118, 132, 40, "box", "who waits wakes")
    for x, width, words in ((412, 98, "A: allocated"), (518, 88, "B: queued"), (614, 120, "D: preempting")):
        picture.labelled(x, 28, width, 40, "blue", words)
    picture.arrow(500, 118, 500, 68)
    picture.arrow(560, 118, 560, 68)
    picture.line(596, 138, 666, 138)
    picture.arrow(666, 138, 666, 68)
    picture.labelled(610, 222, 174, 50, "idle", "the next round, with", "what came meanwhile")
    picture.arrow(570, 247, 610, 247)
    return picture


# ---- classes and lanes ----------------------------------------------------------------------------------------------


def classes_and_lanes() -> Picture:
    """What a pass looks at: the heads of the classes."""
    told = (
        "Waiting requests with the same candidates, demand and preemptibility form a class. A pass compares the heads "
        "of the classes, policy by policy, and so looks at four requests where 12,100 wait."
    )
    picture = Picture(330, "Classes, lanes and the order of a pass", told)
    for x, words in (
        (16, "waiting requests, by class"),
        (400, "lanes: policy and standing"),
        (640, "order of the pass"),
    ):
        picture.text(x, 32, words, "strong")
    classes = (
        (56, "blue", "research", "1 GPU", "9,000 wait"),
        (116, "blue", "research", "8 GPUs", "40 wait"),
        (186, "green", "students", "1 GPU", "3,000 wait"),
        (246, "green", "students", "2 GPUs, firm", "60 wait"),
    )
    for y, look, team, demand, count in classes:
        for number in range(6):
            picture.box(16 + 26 * number, y, 20, 36, look if number == 0 else "box")
        picture.text(176, y + 15, f"{team}, {demand}", "small")
        picture.text(176, y + 33, count, "small quiet")
    for y in (74, 134):
        picture.line(346, y, 400, 100)
    picture.line(346, 204, 400, 204)
    picture.line(346, 264, 400, 264)
    for y, look, first, second in (
        (76, "blue", "research", "borrowing"),
        (180, "green", "students", "borrowing"),
        (240, "green", "students", "entitled, firm"),
    ):
        picture.labelled(400, y, 170, 48, look, first, second)
    picture.arrow(580, 178, 638, 178)
    order = (("1", "green", "students, 2 GPUs"), ("2", "blue", "research, 1 GPU"), ("3", "green", "students, 1 GPU"))
    for number, (place, look, words) in enumerate(order):
        y = 76 + 62 * number
        picture.box(650, y, 22, 36, look)
        picture.text(661, y + 23, place, "small strong", anchor="middle")
        picture.text(680, y + 23, words.split(", ")[0], "small")
        picture.text(680, y + 41, words.split(", ")[1], "small quiet")
    picture.box(650, 262, 22, 36, "blue")
    picture.text(661, 285, "4", "small strong", anchor="middle")
    picture.text(680, 285, "research", "small")
    picture.text(680, 303, "8 GPUs", "small quiet")
    picture.text(16, 316, "One look at each head, however long its line is.", "small quiet")
    return picture


# ---- lending and reclaim --------------------------------------------------------------------------------------------


def lent_and_reclaimed() -> Picture:
    """Eight GPUs at five moments: promised, lent, half given back from idle, reclaimed, handed over."""
    told = (
        "Research has 4 GPUs reserved and a limit of 6, production has 4 reserved. Research borrows 2. Production "
        "takes 2 that are idle, then asks for 2 more: the borrowed ones are reclaimed, what is in share stays."
    )
    picture = Picture(420, "Reserved, limit, borrowed, lent, reclaimed", told)
    left, cell = 236, 62
    picture.text(left + 2 * cell, 28, "reserved for research", "small", anchor="middle")
    picture.text(left + 6 * cell, 28, "reserved for production", "small", anchor="middle")
    for start, look in ((0, "blue"), (4, "amber")):
        picture.box(left + start * cell + 2, 36, 4 * cell - 4, 12, look)
    picture.line(left + 6 * cell, 56, left + 6 * cell, 372, "mark", dashed=True)
    picture.text(left + 6 * cell, 390, "limit of research: 6", "small", anchor="middle")
    research, production = ("blue", False), ("amber", False)
    borrowed, leaving, idle = ("blue", True), ("box", True), ("idle", False)
    moments = (
        (
            "at 0 s",
            "r1, r2, r3 run; r4 waits",
            ["r1", "r1", "r2", "r2", "r3", "r3", "", ""],
            [*[research] * 4] + [borrowed] * 2 + [idle] * 2,
        ),
        (
            "at 60 s",
            "p1 starts on what is idle",
            ["r1", "r1", "r2", "r2", "r3", "r3", "p1", "p1"],
            [*[research] * 4] + [borrowed] * 2 + [production] * 2,
        ),
        (
            "at 120 s",
            "p2 is entitled: r3 is told",
            ["r1", "r1", "r2", "r2", "r3", "r3", "p1", "p1"],
            [*[research] * 4] + [leaving] * 2 + [production] * 2,
        ),
        (
            "at 140 s",
            "r3 lets go, p2 starts",
            ["r1", "r1", "r2", "r2", "p2", "p2", "p1", "p1"],
            [*[research] * 4] + [production] * 4,
        ),
    )
    for row, (at, what, names, looks) in enumerate(moments):
        y = 64 + 78 * row
        picture.text(16, y + 24, at, "strong")
        picture.text(16, y + 46, what, "small quiet")
        for number, (name, (look, striped)) in enumerate(zip(names, looks, strict=True)):
            picture.box(left + number * cell + 2, y, cell - 4, 56, look, striped=striped)
            if name:
                picture.text(left + (number + 0.5) * cell, y + 33, name, "strong", anchor="middle")
    picture.box(16, 398, 18, 14, "blue", striped=True)
    picture.text(40, 410, "borrowed", "small")
    picture.box(120, 398, 18, 14, "box", striped=True)
    picture.text(144, 410, "letting go", "small")
    return picture


# ---- the clock of an eviction ---------------------------------------------------------------------------------------


def eviction_clock() -> Picture:
    """Minimum run time, grace and deadline on one line of time."""
    told = (
        "Work that started at 0 s is spared until its minimum run time of 300 s is over, is told to let go then, and "
        "loses its hold at 360 s, 60 s of grace later. The request it makes room for waits from 100 s to 360 s."
    )
    picture = Picture(250, "The clock of an eviction", told)

    def at(seconds: float) -> float:
        return 120 + seconds * 1.52

    picture.text(16, 62, "r1, research", "small strong")
    picture.text(16, 132, "p1, production", "small strong")
    picture.box(at(0), 36, at(300) - at(0), 44, "blue", striped=True)
    picture.text(at(150), 63, "allocated, borrowed, too young to be evicted", "small", anchor="middle")
    picture.box(at(300), 36, at(360) - at(300), 44, "box", striped=True)
    picture.text(at(330), 63, "preempting", "small", anchor="middle")
    picture.text(at(366), 63, "preempted", "small quiet")
    picture.box(at(100), 106, at(360) - at(100), 44, "idle")
    picture.text(at(215), 133, "queued, entitled", "small", anchor="middle")
    picture.box(at(360), 106, at(440) - at(360), 44, "amber")
    picture.text(at(400), 133, "allocated", "small", anchor="middle")
    picture.line(at(0), 180, at(440), 180)
    for seconds in (0, 100, 300, 360):
        picture.line(at(seconds), 172, at(seconds), 188)
        picture.text(at(seconds), 206, f"{seconds} s", "small", anchor="middle")
    for seconds, words, anchor in (
        (0, "granted", "middle"),
        (100, "p1 asks", "middle"),
        (296, "told, with a deadline", "end"),
        (364, "deadline", "start"),
    ):
        picture.text(at(seconds), 228, words, "small quiet", anchor=anchor)
    picture.line(at(360), 30, at(360), 172, "mark", dashed=True)
    return picture


# ---- being overtaken, and no more -----------------------------------------------------------------------------------


def overtaken_no_more() -> Picture:
    """GPUs over time: backfill until max_bypass_s, then held capacity."""
    told = (
        "A request for 8 GPUs waits behind work on 6. Work for 2 GPUs overtakes it at 300 s. From 660 s on, 600 s "
        "after it was queued, what becomes free is held for it: work that comes at 700 s waits, and it starts at 900 s."
    )
    picture = Picture(366, "Backfill, and capacity held for the oldest", told)

    def at(seconds: float) -> float:
        return 96 + seconds * 0.6

    def gpus(first: int) -> float:
        return 48 + first * 30

    picture.text(16, 34, "8 GPUs", "strong")
    picture.box(at(0), gpus(0), at(900) - at(0), 178, "blue")
    picture.text(at(450), gpus(3) + 5, "six: 6 GPUs, ends at 900 s", anchor="middle")
    picture.box(at(0), gpus(6), at(300) - at(0) - 2, 58, "idle")
    picture.text(at(150), gpus(7) + 4, "idle", "small quiet", anchor="middle")
    picture.box(at(300), gpus(6), at(700) - at(300) - 2, 58, "green")
    picture.text(at(500), gpus(7) + 4, "early: 2 GPUs", anchor="middle")
    picture.box(at(700), gpus(6), at(900) - at(700) - 2, 58, "box", striped=True)
    picture.text(at(800), gpus(7) + 4, "held", "strong", anchor="middle")
    picture.box(at(900) + 2, gpus(0), at(1150) - at(900), 238, "amber")
    picture.text(at(1025), gpus(4) + 5, "big: 8 GPUs", anchor="middle")
    picture.line(at(0), 304, at(1150), 304)
    for seconds, words, anchor in (
        (60, "big asks", "middle"),
        (300, "early starts", "middle"),
        (660, "waited 600 s", "end"),
        (700, "late asks, and waits", "start"),
        (900, "", "middle"),
    ):
        nudge = {"middle": 0, "end": 8, "start": -8}[anchor]
        picture.line(at(seconds), 296, at(seconds), 312)
        picture.text(at(seconds) + nudge, 330, f"{seconds} s", "small", anchor=anchor)
        picture.text(at(seconds) + nudge, 349, words, "small quiet", anchor=anchor)
    picture.line(at(660), 40, at(660), 296, "mark", dashed=True)
    return picture


# ---- two books ------------------------------------------------------------------------------------------------------


def two_books() -> Picture:
    """Four GPUs in the book of now and in the book of after, at four moments."""
    told = (
        "Two guests on 2 GPUs each are told to let go for an owner who needs 4. The book of after has the owner on all "
        "4 at once. When one guest has gone, 2 GPUs are free now and none after, so that nobody else starts on them."
    )
    picture = Picture(400, "Two books: now and after", told)
    left, other, cell = 250, 540, 58
    picture.text(left + 2 * cell, 30, "now", "strong", anchor="middle")
    picture.text(other + 2 * cell, 30, "after", "strong", anchor="middle")
    guest, leaving, owner, idle = ("green", False), ("green", True), ("amber", False), ("idle", False)
    rows = (
        ("at 0 s", "g1 and g2 run", [guest] * 4, "g1 g1 g2 g2", [guest] * 4, "g1 g1 g2 g2"),
        ("at 10 s", "o1 is entitled: both told", [leaving] * 4, "g1 g1 g2 g2", [owner] * 4, "o1 o1 o1 o1"),
        ("at 15 s", "g1 has gone; g3 must wait", [idle] * 2 + [leaving] * 2, "- - g2 g2", [owner] * 4, "o1 o1 o1 o1"),
        ("at 20 s", "g2 has gone: o1 starts", [owner] * 4, "o1 o1 o1 o1", [owner] * 4, "o1 o1 o1 o1"),
    )
    for row, (at, what, now, names_now, after, names_after) in enumerate(rows):
        y = 48 + 82 * row
        picture.text(16, y + 24, at, "strong")
        picture.text(16, y + 46, what, "small quiet")
        for x, looks, names in ((left, now, names_now), (other, after, names_after)):
            for number, ((look, striped), name) in enumerate(zip(looks, names.split(), strict=True)):
                picture.box(x + number * cell + 2, y, cell - 4, 58, look, striped=striped)
                word = "free" if name == "-" else name
                picture.text(x + (number + 0.5) * cell, y + 34, word, "small strong", anchor="middle")
    picture.text(16, 388, "Something starts only where both books have room. Striped: told to let go.", "small quiet")
    return picture


PICTURES = {
    "one-round.svg": one_round,
    "classes-and-lanes.svg": classes_and_lanes,
    "lent-and-reclaimed.svg": lent_and_reclaimed,
    "eviction-clock.svg": eviction_clock,
    "overtaken-no-more.svg": overtaken_no_more,
    "two-books.svg": two_books,
}


def main(arguments: list[str]) -> int:
    """Write the pictures, or with --check say which are not as they would be written."""
    stale = 0
    for name, draw in PICTURES.items():
        path, svg = ASSETS / name, draw().svg()
        if arguments != ["--check"]:
            path.write_text(svg, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != svg:
            sys.stderr.write(f"docs/assets/{name} is not what docs/dev/pictures.py draws: run it\n")
            stale += 1
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
