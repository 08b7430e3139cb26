"""``fairpool webhook``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import body, confirm, connected, dry_run, note, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.webhooks import WebhookView

COLUMNS = (
    Column("NAME", lambda hook: hook.name),
    Column("URL", lambda hook: hook.url),
    Column("EVENTS", lambda hook: hook.events),
    Column("STATUS", lambda hook: hook.delivery.status if hook.delivery is not None else ""),
    Column("FAILURES", lambda hook: hook.delivery.failures if hook.delivery is not None else ""),
    Column("POOL", lambda hook: hook.pool, wide=True),
    Column("TEAM", lambda hook: hook.team, wide=True),
    Column("ID", lambda hook: hook.id, wide=True),
)


WAITING = "request.waiting"


@click.group(cls=NounGroup)
def webhook() -> None:
    """Webhooks: programs of yours that are called when something happens to requests."""


@webhook.command("create")
@click.argument("name")
@click.option("--url", required=True, help="What is called: http(s)://HOST[:PORT]/PATH.")
@click.option("--event", "events", multiple=True, metavar="EVENT", help="What it is told, say request.granted.")
@click.option("--waiting-longer-than", "waiting", type=click.IntRange(min=1), metavar="S", help="Tell it who waits so.")
@click.option("--pool", help="Only requests that concern this pool.")
@click.option("--team", help="Only requests of this team.")
@click.option("--description", help="What it is for.")
@dry_run
@printed
@connected
def create(
    client: Client,
    name: str,
    url: str,
    events: tuple[str, ...],
    waiting: int | None,
    pool: str | None,
    team: str | None,
    description: str | None,
    style: Style,
    *,
    dry_run: bool,
) -> None:
    """Declare a webhook, and print the secret that signs what it is told. It is shown this once."""
    from fairpool.wire.webhooks import WebhookCreate

    told = _events(list(events), waiting)
    given = body(
        WebhookCreate,
        name=name,
        url=url,
        events=told,
        waiting_longer_than_s=waiting,
        pool=pool,
        team=team,
        description=description,
    )
    made = client.create_webhook(given, dry_run=dry_run)
    if style.format not in ("table", "wide"):
        render.print_one(made, [], style)
    elif made.secret:
        click.echo(made.secret)
    note(f"webhook {name} " + ("would be told" if dry_run else "is told") + f" {', '.join(made.events)}")


def _events(said: list[str], waiting: int | None) -> list[str]:
    """What it is told: who waits too long, where a time is said for that; not any more, where that is 0."""
    others = [event for event in said if event != WAITING]
    if waiting is None:
        return said
    return [*others, WAITING] if waiting else others


@webhook.command("list")
@printed
@connected
def list_(client: Client, style: Style) -> None:
    """List webhooks, and how telling each goes."""
    found = client.webhooks()
    render.print_list(found, COLUMNS, style)
    for hook in found:
        for warning in hook.warnings:
            note(f"warning: webhook {hook.name}: {warning}")


@webhook.command("describe")
@click.argument("name")
@printed
@connected
def describe(client: Client, name: str, style: Style) -> None:
    """Show one webhook: what it is told, up to which event, and what went wrong last."""
    found = client.webhook(name)
    render.print_one(found, _lines(found), style)


def _lines(found: WebhookView) -> list[tuple[str, object]]:
    going = found.delivery
    longer_s = found.waiting_longer_than_s
    return [
        ("Name", found.name),
        ("Id", found.id),
        ("URL", found.url),
        ("Events", found.events),
        ("Waiting", f"longer than {render.duration(longer_s)}" if longer_s else ""),
        ("Pool", found.pool),
        ("Team", found.team),
        ("Warning", "\n".join(found.warnings)),
        ("Description", found.description),
        ("Status", going.status if going is not None else ""),
        ("Told up to", f"event {going.told_to}" if going is not None else ""),
        ("Failures", f"{going.failures} in a row" if going is not None and going.failures else ""),
        ("Last failure", going.last_error if going is not None else ""),
        ("Next try", going.next_try_at if going is not None else None),
    ]


@webhook.command("update")
@click.argument("name")
@click.option("--url", help="What is called.")
@click.option("--event", "events", multiple=True, metavar="EVENT", help="What it is told, in place of what it was.")
@click.option(
    "--waiting-longer-than", "waiting", type=click.IntRange(min=0), metavar="S", help="Tell it who waits so; 0: nobody."
)
@click.option("--pool", help="Only requests that concern this pool; '' for all.")
@click.option("--team", help="Only requests of this team; '' for all.")
@click.option("--description", help="What it is for.")
@click.option("--enable/--disable", "enabled", default=None, help="Begin again where it stopped; or stop.")
@connected
def update(
    client: Client,
    name: str,
    url: str | None,
    events: tuple[str, ...],
    waiting: int | None,
    pool: str | None,
    team: str | None,
    description: str | None,
    enabled: bool | None,
) -> None:
    """Change a webhook. --enable begins again with one that was given up: nothing has been lost meanwhile."""
    from fairpool.wire.webhooks import WebhookUpdate

    told = list(events)
    if waiting is not None:
        told = _events(told or client.webhook(name).events, waiting)
        if not told:
            raise click.UsageError("it would be told nothing; possible: --event with what it is told instead")
    given = body(
        WebhookUpdate,
        url=url,
        events=told or None,
        waiting_longer_than_s=waiting,
        pool=pool,
        team=team,
        description=description,
        enabled=enabled,
    )
    if not given.model_fields_set:
        raise click.UsageError("nothing to change; possible: --url, --event, --enable, --disable, …")
    client.update_webhook(name, given)
    note(f"webhook {name} is changed")


@webhook.command("delete")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def delete(client: Client, name: str, *, yes: bool) -> None:
    """Delete a webhook; it is told nothing more."""
    found = client.webhook(name)
    confirm(f"Delete webhook {found.name}, which calls {found.url}?", yes=yes)
    client.delete_webhook(found.id)
    note(f"webhook {found.name} is deleted")


@webhook.command("secret")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def secret(client: Client, name: str, *, yes: bool) -> None:
    """Draw a new secret, which signs from now on, and print it. It is shown this once; the old one counts no more."""
    found = client.webhook(name)
    confirm(f"Draw a new secret for webhook {found.name}? Its receiver has to know it.", yes=yes)
    click.echo(client.draw_webhook_secret(found.id).secret)
    note(f"webhook {found.name} signs with it from now on")


@webhook.command("test")
@click.argument("name")
@printed
@connected
def test(client: Client, name: str, style: Style) -> None:
    """Call the receiver now, and say what it answered. Exits 1 where it did not take it."""
    tried = client.try_webhook(name)
    lines = [
        ("Delivered", "yes" if tried.delivered else "no"),
        ("Answer", tried.status),
        ("Why not", tried.detail),
        ("Took", f"{tried.took_ms:g} ms"),
    ]
    if style.format == "name":
        click.echo("delivered" if tried.delivered else "not delivered")
    else:
        render.print_one(tried, lines, style)
    if not tried.delivered:
        raise click.exceptions.Exit(1)
