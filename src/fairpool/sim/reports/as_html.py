"""The report as one page of HTML that needs nothing besides: no script, no font, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from fairpool.sim.reports import team_charts, time_charts
from fairpool.sim.reports.as_text import Table, as_tables, ends, told_change
from fairpool.sim.reports.drawing import text_of
from fairpool.sim.reports.figures import Change, Comparison, Group, Report
from fairpool.sim.reports.page_style import STYLE
from fairpool.sim.reports.wording import duration, many, number, percent, shown, told_moment

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""What a browser lets the page do: nothing but look as its own style says, whatever a name in it may hold."""


MOST_GROUPS = 300
"""Rows of a table, those of one team counted once: where each user is a party of their own, there are many."""


def as_html(report: Report) -> str:
    """The whole page."""
    body = "".join(
        (
            _header(report),
            _cards(report),
            _change(report),
            _waits(report),
            _utilisation(report),
            _lending(report),
            _evictions(report),
            _fairness(report),
            _changes(report),
            _footer(report),
        )
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text_of(report.title)}</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>\n"
    )


def _header(report: Report) -> str:
    span_s = report.axis.step_s * report.axis.intervals
    what = " against ".join(f"<b>{text_of(replay.name)}</b>" for replay in report.replays)
    rules = f"Rules {what}. " if len(report.replays) == 1 else f"The same jobs under two sets of rules: {what}. "
    told = (
        f"{rules}{many(_all(report, 0).jobs, 'job')} of <b>{text_of(report.trace)}</b>, "
        f"{told_moment(report.begins_at)} to {told_moment(report.ends_at)} ({duration(span_s)})."
    )
    stopped = "".join(f'<p class="stopped">{sentence}</p>' for sentence in _lacks(report))
    return f"<header><h1>{text_of(report.title)}</h1><p>{told}</p>{stopped}{_legend(report)}</header>"


def _lacks(report: Report) -> Iterator[str]:
    if report.stopped:
        yield "The replay was stopped before its jobs were done. Figures are of what was reached."
    if report.cut_short:
        yield "The report was stopped: of some teams it lacks finish-time fairness, or of some jobs why they waited."


def _legend(report: Report, *more: str) -> str:
    """Which colour is which of the rules."""
    if len(report.replays) == 1 and not more:
        return ""
    names = [f'<span><i class="key s{n}"></i>{text_of(replay.name)}</span>' for n, replay in enumerate(report.replays)]
    return f'<div class="legend">{"".join([*names, *more])}</div>'


def _all(report: Report, place: int) -> Group:
    groups = report.replays[place].groups
    return groups[0] if groups else team_charts.nobody("")


def _cards(report: Report) -> str:
    """The figures that a reader wants first."""
    all_ = [_all(report, place) for place in range(len(report.replays))]
    waits = [group.waits for group in all_]
    found = [
        ("Mean wait", [duration(one.mean_s) if one else "–" for one in waits], ""),
        ("95 of 100 waited at most", [duration(one.p95_s) if one else "–" for one in waits], ""),
        ("Started at once", [percent(one.at_once) if one else "–" for one in waits], ""),
        (f"{report.unit}s in use", [_in_use(report, place) for place in range(len(all_))], "on average over the span"),
        ("Lent", [number(replay.lending.lent_hours) for replay in report.replays], f"{report.unit}-hours"),
        ("Evictions", [f"{replay.evictions.count:,}" for replay in report.replays], _done_again(report)),
    ]
    return f'<div class="cards">{"".join(_card(*one) for one in found)}</div>'


def _in_use(report: Report, place: int) -> str:
    pools = report.replays[place].pools
    capacity = sum(pool.capacity for pool in pools)
    return percent(sum(pool.mean for pool in pools) / capacity) if capacity else "–"


def _done_again(report: Report) -> str:
    again = " / ".join(number(replay.evictions.lost_hours) for replay in report.replays)
    return f"{again} {report.unit}-hours done again"


def _card(title: str, values: Sequence[str], note: str) -> str:
    keys = [f'<i class="key s{place}"></i>' if len(values) > 1 else "" for place in range(len(values))]
    told = "".join(f"<span>{key}{text_of(value)}</span>" for key, value in zip(keys, values, strict=True))
    small = f'<p class="small">{text_of(note)}</p>' if note else ""
    return f'<div class="card"><h3>{text_of(title)}</h3><p class="values">{told}</p>{small}</div>'


# ---- sections --------------------------------------------------------------------------------------------------------


def _change(report: Report) -> str:
    found = report.comparison
    if found is None:
        return ""
    first, second = (text_of(replay.name) for replay in report.replays)
    mean = told_change(found.mean_later_s) if found.mean_later_s is not None else "unknown"
    unknown = f" Of {many(found.unknown, 'job')} nothing can be said: they did not end." if found.unknown else ""
    differences = "".join(f"<li>{text_of(one)}</li>" for one in found.differences)
    rules = f"<ul>{differences}</ul>" if differences else "<p>The rules are the same.</p>"
    return (
        f"<section><h2>From {first} to {second}</h2>"
        f"<p><b>{found.later:,}</b> {_jobs(found.later)} end later, <b>{found.sooner:,}</b> sooner, "
        f"<b>{found.same:,}</b> at the same time. On average a job ends {mean}.{unknown}</p>"
        f"<h3>What differs between the rules</h3>{rules}</section>"
    )


def _jobs(count: int) -> str:
    return "job" if count == 1 else "jobs"


def _waits(report: Report) -> str:
    left_out = team_charts.teams_left_out(report)
    more = f" Charts are of the teams that waited most; {many(left_out, 'team')} more in the table." if left_out else ""
    note = (
        "How long jobs waited altogether: from being asked for to the end, less the time in which they ran; the wait "
        "after an eviction counts. Each chart shows which share of jobs waited no longer than a length of time, on a "
        f"logarithmic axis: the higher a line, the better.{more}"
    )
    kinds = "".join(_table(report, f"waits-{kind}", titled=True) for kind in ("team", "pool", "profile"))
    charts = f"{_legend(report)}{team_charts.waits(report)}"
    return f'<section><h2>Waits</h2><p class="note">{note}</p>{charts}{kinds}</section>'


def _utilisation(report: Report) -> str:
    charts = "".join(
        f'<h3>Pool {text_of(pool)}</h3><div class="panel">{time_charts.utilisation(report, pool)}</div>'
        for pool in time_charts.largest_pools(report)
    )
    more = (
        '<span><i class="key dashed"></i>reserved</span>',
        '<span><i class="key solid"></i>capacity</span>',
    )
    note = (
        f"{text_of(report.unit)}s in use, on average over each of {report.axis.intervals} intervals of {_step(report)}."
    )
    return (
        f'<section><h2>Utilisation</h2><p class="note">{note}</p>{_legend(report, *more)}{charts}'
        f"{_table(report, 'utilisation')}</section>"
    )


def _step(report: Report) -> str:
    return duration(report.axis.step_s)


def _lending(report: Report) -> str:
    unit = text_of(report.unit)
    note = (
        f"What a team uses above its reservation is borrowed: first of what nobody has reserved, then of the unused "
        f"reservations of others, who lend it in proportion to what of their own is unused. In {unit}-hours."
    )
    totals = "".join(
        f"<li><b>{text_of(replay.name)}</b>: {number(replay.lending.borrowed_hours)} {unit}-hours borrowed, "
        f"{number(replay.lending.lent_hours)} of them lent out of reservations, "
        f"{number(replay.lending.from_unreserved_hours)} reserved by nobody.</li>"
        for replay in report.replays
    )
    return (
        f'<section><h2>Borrowed and lent</h2><p class="note">{note}</p><ul>{totals}</ul>{_legend(report)}'
        f'<div class="panel">{team_charts.lending(report)}</div>'
        f'<h3>Lent over time, in {unit}s</h3><div class="panel">{time_charts.lending(report)}</div>'
        f"{_table(report, 'lending')}</section>"
    )


def _evictions(report: Report) -> str:
    if not any(replay.evictions.count for replay in report.replays):
        return "<section><h2>Evictions</h2><p>Nothing was evicted.</p></section>"
    chart = f'<div class="panel">{time_charts.evictions(report)}</div>'
    return f"<section><h2>Evictions</h2>{chart}{_table(report, 'evictions')}</section>"


def _fairness(report: Report) -> str:
    if not any(replay.fairness for replay in report.replays):
        return ""
    note = (
        "The time from a job's being asked for to its end, divided by what it would be were its team alone on a pool "
        "of exactly its reservation, first come, first served. Left of the line, or on it, sharing did not hurt. "
        "A full dot is the median, a ring the 95th of 100, a small dot the worst."
    )
    chart = team_charts.fairness(report)
    panel = f'{_legend(report)}<div class="panel">{chart}</div>' if chart else "<p>No team has a reservation.</p>"
    return (
        f'<section><h2>Finish-time fairness</h2><p class="note">{note}</p>{panel}{_table(report, "fairness")}</section>'
    )


def _changes(report: Report) -> str:
    found = report.comparison
    if found is None or not (found.lose or found.gain):
        return ""
    return (
        f"<section><h2>Who loses and gains most</h2>{_legend(report)}"
        f'<div class="sides">{_side(found, "lose")}{_side(found, "gain")}</div></section>'
    )


def _side(found: Comparison, which: str) -> str:
    changes, look = (found.lose, "bad") if which == "lose" else (found.gain, "good")
    if not changes:
        return f"<div><h3>{which.capitalize()}s most</h3><p>Nobody.</p></div>"
    all_ = found.later if which == "lose" else found.sooner
    items = "".join(_item(change, look) for change in changes)
    return (
        f"<div><h3>The {len(changes)} that {which} most <span class=quiet>of {all_:,}</span></h3>"
        f'<ol class="changes">{items}</ol></div>'
    )


def _item(change: Change, look: str) -> str:
    looks = ("s0", "s1", "")
    why = "".join(
        f'<p class="why {looks[min(place, 2)]}">{text_of(sentence)}</p>'
        for place, sentence in enumerate(change.explanation)
    )
    return (
        f'<li><p class="head"><span><b>{text_of(shown(change.job))}</b> of {text_of(shown(change.team))}</span>'
        f'<span class="{look}">{text_of(ends(change))}</span></p>'
        f'<p class="meta">{text_of(change.asks)} for {duration(change.run_s)}, asked for '
        f"{told_moment(change.submitted_at)}; waits {duration(change.first.wait_s)} → "
        f"{duration(change.second.wait_s)}</p>{why}</li>"
    )


def _footer(report: Report) -> str:
    said = [
        ("Trace", report.trace),
        *zip(("Rules", "Compared with"), (replay.name for replay in report.replays), strict=False),
        ("Span", f"{told_moment(report.begins_at)} to {told_moment(report.ends_at)}"),
        *(("Option " + name, value) for name, value in report.options.items()),
        ("Seed", "" if report.seed is None else str(report.seed)),
        ("Decisions", " / ".join(f"{replay.decisions:,}" for replay in report.replays)),
        ("Fairpool", report.version),
    ]
    rows = "".join(f"<dt>{text_of(name)}</dt><dd>{text_of(value)}</dd>" for name, value in said if value)
    command = f"<h3>To repeat this</h3><pre><code>{text_of(report.command)}</code></pre>" if report.command else ""
    return f"<footer><h2>About this report</h2><dl>{rows}</dl>{command}</footer>"


# ---- tables ----------------------------------------------------------------------------------------------------------


def _table(report: Report, name: str, *, titled: bool = False) -> str:
    """A table; rows that begin alike share their first cell."""
    table = next((table for table in as_tables(report) if table.name == name), None)
    if table is None:
        return ""
    names = [shown(replay.name) for replay in report.replays]
    heads = "".join(
        f'<th{_look(table, place)} scope="col">{text_of(_heading(head))}</th>'
        for place, head in enumerate(table.headings)
    )
    grouped = groupby(table.rows, key=lambda row: row[: table.rules] if table.rules else row)
    together = [list(rows) for _, rows in grouped]
    bodies = "".join(f"<tbody>{''.join(_rows(table, rows, names))}</tbody>" for rows in together[:MOST_GROUPS])
    left_out = len(together) - MOST_GROUPS
    more = f'<p class="note">{many(left_out, "row")} more in JSON and CSV.</p>' if left_out > 0 else ""
    caption = f"<h3>{text_of(table.title)}</h3>" if titled else ""
    return f'{caption}<div class="scroll"><table><thead><tr>{heads}</tr></thead>{bodies}</table></div>{more}'


def _heading(head: str) -> str:
    """``MEAN IN USE`` as ``Mean in use``; units keep their letters."""
    words = head.capitalize()
    return words.replace("Gpu", "GPU").replace("gpu", "GPU")


def _rows(table: Table, rows: Sequence[Sequence[str]], names: Sequence[str]) -> Iterator[str]:
    together = table.rules or 0
    for number_, row in enumerate(rows):
        cells = []
        for place, cell in enumerate(row):
            if place < together:
                if number_ == 0:
                    cells.append(f'<td class="first wrap" rowspan="{len(rows)}">{text_of(cell)}</td>')
                continue
            key = f'<i class="key s{names.index(cell)}"></i>' if table.rules == place and cell in names else ""
            look = ' class="first wrap"' if place == 0 and not key else _look(table, place)
            cells.append(f"<td{look}>{key}{text_of(cell)}</td>")
        yield f"<tr>{''.join(cells)}</tr>"


def _look(table: Table, place: int) -> str:
    return ' class="number"' if place in table.numeric else ""
