"""``fairpool request``."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from fairpool.cli import estimates, render
from fairpool.cli.historyview import print_history
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import confirm, connected, note, past, printed
from fairpool.cli.render import Column, Style
from fairpool.cli.watching import show, watch_option

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.explanations import Explanation
    from fairpool.wire.requests import AllocationView, RequestView

WATCH_S = 30.0
EXPLAIN_EVERY_S = 5.0
MOST_NAMESAKES = 10


def _where(request: RequestView) -> str:
    held = request.allocation
    if held is None:
        return request.pool or ""
    return held.pool or "(ungoverned)"


def _devices(request: RequestView) -> str:
    if request.allocation is None:
        return ""
    told = []
    for part in request.allocation.parts:
        devices = ",".join(
            str(device.index) + ("" if device.share == 1 else f"×{render.number(device.share)}")
            for device in part.devices
        )
        told.append(f"{part.node}:{devices}" if part.node and devices else part.node or devices)
    return " ".join(filter(None, told))


def _time(request: RequestView) -> str:
    """How long it has waited, or has run."""
    if request.allocation is None:
        return render.ago(request.created_at, now=request.ended_at)
    return render.ago(request.allocation.granted_at, now=request.ended_at)


COLUMNS = (
    Column("ID", lambda request: request.id),
    Column("NAME", lambda request: request.name),
    Column("STATUS", lambda request: request.status.value),
    Column("SUBJECTS", lambda request: request.subjects),
    Column("DEMAND", lambda request: {k: v for k, v in request.demand.items() if k != "step_run"}),
    Column("POOL", _where),
    Column("FOR", _time),
    Column("DEVICES", _devices, wide=True),
    Column("PRIORITY", lambda request: request.priority, wide=True),
    Column("PREEMPTIBLE", lambda request: request.preemptible, wide=True),
    Column("CREATED", lambda request: request.created_at, wide=True),
)


@click.group(cls=NounGroup)
def request() -> None:
    """Requests: who asks for what, what they hold, and why they wait."""


@request.command("list")
@click.option(
    "--view",
    type=click.Choice(("queued", "active", "live", "all")),
    default="live",
    show_default=True,
    help="Those that wait, those that hold something, both, or finished ones too.",
)
@click.option("--status", help="Only these, separated by commas.")
@click.option("--pool", help="Only those of this pool.")
@click.option("--subject", help="Only those of this subject, such as team:vision.")
@click.option("--name", help="Only those of exactly this name.")
@click.option("--run", help="Only those of this run.")
@click.option("--label", multiple=True, metavar="KEY=VALUE", help="Only with this label; repeatable.")
@click.option("--order", type=click.Choice(("newest", "oldest")), help="Which come first (newest).")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="How many at most.")
@past
@watch_option
@printed
@connected
def list_(client: Client, view: str, limit: int, style: Style, *, watch: bool, **filters: str | None) -> None:
    """List requests: those that wait or hold something, unless --view says otherwise."""
    query = {"view": "all" if filters["status"] and view == "live" else view, **filters}

    def once() -> None:
        render.print_list(list(client.requests(limit=limit, **query)), COLUMNS, style, name="id")

    show(client, once, watch=watch)


@request.command("describe")
@click.argument("request")
@printed
@connected
def describe(client: Client, request: str, style: Style) -> None:
    """Show one request (by id, unique id prefix, or the name of a live one) with its history."""
    found = _meant(client, request)
    render.print_one(found, _lines(found), style, name="id")
    if found.foreign:
        note("it is another team's: what is told of it is what explains the wait of yours")
    elif style.format in ("table", "wide"):
        if found.status == "queued":
            click.echo()
            _print_explanation(client.explain(found.id))
        print_history(client, "request", found.id)


@request.command("explain")
@click.argument("request")
@printed
@connected
def explain(client: Client, request: str, style: Style) -> None:
    """Say why a request waits, who holds what it needs, what would help, and when it may start."""
    meant = _meant(client, request)
    found = client.explain(meant.id)
    if style.format in ("table", "wide"):
        _print_explanation(found)
        if meant.allocation is not None and meant.allocation.in_share is not None and meant.status == "allocated":
            click.echo(f"It is {_hold(client, meant, meant.allocation)}.")
    else:
        render.print_one(found, [], style, name="request")


@request.command("cancel")
@click.argument("requests", nargs=-1, required=True)
@click.option("--reason", default="", help="Why, for the history.")
@connected
def cancel(client: Client, requests: tuple[str, ...], reason: str) -> None:
    """Withdraw requests; what they hold is let go of."""
    for ref in requests:
        done = client.cancel(_meant(client, ref).id, reason=reason)
        note(f"request {done.id} {done.status.value}")


@request.command("release")
@click.argument("request")
@click.option("--force", is_flag=True, help="As an operator, though its owner still lives.")
@click.option("--reason", default="", help="Why, for the history.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def release(client: Client, request: str, reason: str, *, force: bool, yes: bool) -> None:
    """Let go of what a request holds."""
    found = _meant(client, request)
    if force:
        confirm(f"Release {found.id} ({found.name or found.status.value}) though its owner still uses it?", yes=yes)
    done = client.release(found.id, force=force, reason=reason)
    note(f"request {done.id} {done.status.value}")


@request.command("watch")
@click.argument("request")
@connected
def watch(client: Client, request: str) -> None:
    """Follow a request until it ends: each status, and why it waits as that changes."""
    from fairpool.cli.running.happenings import why

    seen, said = _meant(client, request), ""
    _print_status(seen)
    while not seen.status.is_final:
        waits = seen.status.value == "queued"
        if waits and (reason := why(client, seen.id).text) != said:
            said = reason
            _print_moment(f"waiting: {said}")
        before = seen.version
        seen = client.request(seen.id, wait_s=EXPLAIN_EVERY_S if waits else WATCH_S, after_version=before)
        if seen.version != before:
            _print_status(seen)


def _print_status(seen: RequestView) -> None:
    held = f" in {_where(seen)} {_devices(seen)}".rstrip() if seen.allocation else ""
    reasons = f": {'; '.join(reason.message for reason in seen.reasons)}" if seen.reasons else ""
    _print_moment(f"{seen.status.value}{held}{reasons}")


def _print_moment(text: str) -> None:
    click.echo(f"{datetime.now(UTC).astimezone():%H:%M:%S}  {text}")
    sys.stdout.flush()


def _lines(found: RequestView) -> list[tuple[str, object]]:
    held = found.allocation
    eviction = found.eviction
    lines: list[tuple[str, object]] = [
        ("Id", found.id),
        ("Name", found.name),
        ("Status", found.status.value),
        ("Subjects", found.subjects),
        ("Demand", found.demand),
        ("Parts", "\n".join(render.amounts(part) for part in found.parts)),
        ("Profile", found.profile),
        ("Preemptible", found.preemptible),
        ("Priority", found.priority or ""),
        ("Pool", _where(found)),
        ("Policy", held.subject if held else ""),
        ("Devices", _devices(found)),
        ("In share", held.in_share if held else None),
        ("Run", found.run),
        ("Retry of", found.retry_of),
        ("Labels", ", ".join(f"{key}={value}" for key, value in found.labels.items())),
        ("Queued", found.queued_at),
        ("Granted", held.granted_at if held else None),
        ("Ended", found.ended_at),
        ("Ended by", found.ended_by),
        ("Lease until", found.lease_until),
        ("Reasons", "\n".join(reason.message for reason in found.reasons)),
    ]
    if eviction is not None:
        told = f"{eviction.because}" + (f", for request {eviction.cause}" if eviction.cause else "")
        lines.append(("Evicted", f"{told}, deadline {render.moment(eviction.deadline_at)}"))
    return lines


def _meant(client: Client, ref: str) -> RequestView:
    """The request with that id or unique id prefix, or the only live one of that name."""
    from fairpool.client.errors import Problem
    from fairpool.wire.problems import Slug

    try:
        return client.request(ref)
    except Problem as problem:
        if problem.slug != Slug.NOT_FOUND:
            raise
        named = list(client.requests(view="live", name=ref, limit=MOST_NAMESAKES))
        if not named:
            raise
    if len(named) > 1:
        ids = ", ".join(found.id for found in named)
        raise click.UsageError(f"{len(named)} live requests are called {ref!r}; say which: {ids}")
    return named[0]


def _hold(client: Client, request: RequestView, held: AllocationView) -> str:
    """Whether what it holds may be taken away, and until when it is spared (S27, S30)."""
    from fairpool.client.errors import ClientError

    if held.in_share:
        return "inside the reservation: no other policy may take it"
    if not request.preemptible:
        return "beyond the reservation; it must not be interrupted, so nobody may take it"
    spared_s = 0
    with suppress(ClientError):  # the policy may be gone, and then spares nobody
        spared_s = client.policy(held.policy).min_runtime_s if held.policy else 0
    until = held.granted_at + timedelta(seconds=spared_s)
    if until <= datetime.now(UTC):
        return "borrowed: it may be asked to let go"
    return f"borrowed: spared until {render.moment(until)} (min runtime), from then on it may be asked to let go"


def _print_explanation(found: Explanation) -> None:
    click.echo(f"Request {found.request} {found.summary or found.status.value}.")
    for candidate in found.candidates:
        who = candidate.subject or candidate.policy
        place = f"{candidate.position} in line" if candidate.position else ""
        entitled = ", entitled" if candidate.entitled else ""
        click.echo(click.style(f"\nPool {candidate.pool}, policy of {who}: {place}{entitled}", bold=True))
        for reason in candidate.reasons:
            click.echo(f"  waits: {reason.message}  [{reason.code}]")
        if candidate.holders:
            click.echo("  held by:")
            rows = [
                [
                    f"    {holder.request}",
                    holder.name,
                    holder.subject or "",
                    render.amounts(holder.holds),
                    {True: "in share", False: "borrowed", None: ""}[holder.in_share],
                    holder.status.value,
                ]
                for holder in candidate.holders
            ]
            render.print_table([], rows)
        for hint in candidate.help:
            click.echo(f"  would start once {hint}")
    if found.estimate is not None:
        told = estimates.dated(found.estimate, render.moment)
        click.echo(f"\n{told[0].upper()}{told[1:]}.")
    for reason in found.reasons if not found.candidates else ():
        click.echo(f"  {reason.message}  [{reason.code}]")
