"""``fairpool queue``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import connected, note, printed
from fairpool.cli.render import Column, Style
from fairpool.cli.watching import show, watch_option

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.queues import LineView, QueueDescription, QueuePoolView


def _note(place: QueuePoolView) -> str:
    told = [place.reason.message] if place.reason is not None else []
    if place.dedicated:
        told.append("dedicated")
    if place.components:
        told.append(f"only for work on {', '.join(place.components)}")
    return "; ".join(told)


def _positions(line: LineView) -> str:
    return ", ".join(f"{position} in {pool}" for pool, position in line.positions.items())


COLUMNS = (
    Column("QUEUE", lambda queue: queue.name),
    Column("DEMAND", lambda queue: queue.demand),
    Column("POOLS", lambda queue: [place.pool for place in queue.pools]),
    Column("RUNNING", lambda queue: queue.running),
    Column("PENDING", lambda queue: queue.pending),
    Column("OLDEST", lambda queue: render.ago(queue.waiting_since)),
    Column("SUBJECT", lambda queue: queue.subject, wide=True),
    Column("PROFILE", lambda queue: queue.profile, wide=True),
    Column("MEMBERS", lambda queue: queue.members, wide=True),
)
POOL_COLUMNS = (
    Column("POOL", lambda place: place.pool),
    Column("PRIORITY", lambda place: place.priority),
    Column("RESERVED", lambda place: place.reserved),
    Column("LIMIT", lambda place: place.limit),
    Column("USED", lambda place: place.used),
    Column("NOTE", _note),
)
LINE_COLUMNS = (
    Column("REQUEST", lambda line: line.request),
    Column("NAME", lambda line: line.name),
    Column("WAITED", lambda line: render.ago(line.queued_at)),
    Column("POSITION", _positions),
)


@click.group(cls=NounGroup)
def queue() -> None:
    """Queues: what a team sees of a profile. They follow from policies and profiles; nobody creates them."""


@queue.command("list")
@click.option("--subject", help="Only queues of this team (team:NAME), user or other subject.")
@click.option("--profile", help="Only queues for this profile.")
@watch_option
@printed
@connected
def list_(client: Client, subject: str | None, profile: str | None, style: Style, *, watch: bool) -> None:
    """List the queues that you see: those of your teams and your own; all of them for who runs things."""

    def once() -> None:
        found = client.queues(subject=subject, profile=profile)
        if not found and style.format in ("table", "wide"):
            note("no queues that you see: one follows from each profile and each policy that offers it")
        else:
            render.print_list(found, COLUMNS, style)

    show(client, once, watch=watch)


@queue.command("describe")
@click.argument("queue")
@watch_option
@printed
@connected
def describe(client: Client, queue: str, style: Style, *, watch: bool) -> None:
    """Show one queue: who may use it, what its pools give, and where your requests stand. QUEUE: TEAM/PROFILE."""
    owner, slash, profile = queue.rpartition("/")
    if not slash:
        raise click.UsageError(f"{queue!r} is no queue; possible: TEAM/PROFILE, as fairpool queue list shows them")

    def once() -> None:
        _print(client.queue(owner, profile), style)

    show(client, once, watch=watch)


def _print(found: QueueDescription, style: Style) -> None:
    lines = (
        ("Queue", found.name),
        ("Members", found.members),
        ("Demand", found.demand),
        ("Running", found.running),
        (
            "Pending",
            f"{found.pending}" + (f", the oldest for {render.ago(found.waiting_since)}" if found.pending else ""),
        ),
        ("Next", found.summary),
    )
    render.print_one(found, lines, style)
    if style.format in ("table", "wide"):
        click.echo("\n" + click.style("Pools, in the order in which they are tried:", bold=True))
        render.print_list(found.pools, POOL_COLUMNS, Style(headers=style.headers))
        if found.requests:
            click.echo("\n" + click.style("Requests:", bold=True))
            render.print_list(found.requests, LINE_COLUMNS, Style(headers=style.headers))
