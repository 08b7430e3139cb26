"""``fairpool report``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import Moment, connected, note, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.cli.usage import Used
    from fairpool.client.api import Client

DAYS = 30
"""The period where nothing is said of it."""

SLOT = "step_run"
"""Every request asks for one; its hours say how long things ran, whatever they held."""


@click.group(cls=NounGroup)
def report() -> None:
    """Reports on what was recorded."""


@report.command("usage")
@click.option("--since", type=Moment(), metavar="TIME", help=f"From then on: 7d ago, or a date; {DAYS}d.")
@click.option("--until", type=Moment(), metavar="TIME", help="Until before then; now.")
@click.option("--by", default="team,pool,profile", show_default=True, help="What to tell apart, by commas.")
@printed
@connected
def usage(client: Client, since: str | None, until: str | None, by: str, style: Style) -> None:
    """Who held how much for how long: amounts times hours, by team, pool and profile.

    A request counts with the part of the period in which it held something. WAITED is the mean wait of those that
    started in the period, EVICTED how many had to let go.
    """
    from fairpool.cli.usage import GROUPINGS, Period, recorded, used

    grouping = [name.strip() for name in by.split(",") if name.strip()]
    for name in grouping:
        if name not in GROUPINGS:
            raise click.UsageError(f"--by {name!r}; possible: {', '.join(GROUPINGS)}, separated by commas")
    ends_at = datetime.fromisoformat(until) if until else datetime.now(UTC)
    period = Period(since=datetime.fromisoformat(since) if since else ends_at - timedelta(days=DAYS), until=ends_at)
    if period.since >= period.until:
        raise click.UsageError("--since is not before --until")
    found = used(recorded(client, period), period, grouping)
    if style.format in ("json", "yaml"):
        render.print_data([group.as_data() for group in found], style.format)
    elif style.format == "name":
        for group in found:
            click.echo("/".join(group.by.values()))
    elif not found and style.format != "csv":
        note("nothing was held in that time")
    else:
        render.print_rows(found, _columns(found, grouping), style)


def _columns(found: list[Used], grouping: list[str]) -> list[Column]:
    keys = sorted({key for group in found for key in group.amount_us} - {SLOT}, key=lambda key: (key != "gpu", key))
    return [
        *(Column(name.upper(), lambda group, name=name: group.by[name]) for name in grouping),  # type: ignore[misc]
        Column("REQUESTS", lambda group: group.requests),
        *(Column(f"{key.upper()}-HOURS", lambda group, key=key: render.number(group.hours(key))) for key in keys),  # type: ignore[misc]
        Column("RUN-HOURS", lambda group: render.number(group.hours(SLOT))),
        Column("WAITED", _waited),
        Column("EVICTED", lambda group: group.evicted),
    ]


def _waited(group: Used) -> str:
    seconds = group.mean_wait_s
    return "" if seconds is None else str(timedelta(seconds=round(seconds)))
