"""``fairpool service-account``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.commands.user import ROLES
from fairpool.cli.consequences import told
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import body, confirm, connected, note, past, printed, replaced
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client

COLUMNS = (
    Column("NAME", lambda account: account.name),
    Column("ROLE", lambda account: account.role),
    Column("TEAMS", lambda account: account.teams),
    Column("DESCRIPTION", lambda account: account.description),
    Column("ID", lambda account: account.id, wide=True),
)


@click.group("service-account", cls=NounGroup)
def service_account() -> None:
    """Service accounts: who programs are."""


@service_account.command("create")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), help="What it may do (member).")
@click.option("--team", "teams", multiple=True, help="A team that it is in; repeatable.")
@click.option("--description", help="A line about it, for people.")
@printed
@connected
def create(client: Client, teams: tuple[str, ...], style: Style, **said: str | None) -> None:
    """Create a service account. 'fairpool token create --for service-account:NAME' lets it in."""
    from fairpool.wire.people import ServiceAccountCreate

    made = client.create_service_account(body(ServiceAccountCreate, teams=list(teams) or None, **said))
    if style.format in ("table", "wide"):
        click.echo(f"service account {made.name} created: {made.role}")
        note(f"to let it in: fairpool token create --for service-account:{made.name} NAME")
    else:
        render.print_one(made, [], style)


@service_account.command("list")
@past
@printed
@connected
def list_(client: Client, at: str | None, style: Style) -> None:
    """List service accounts."""
    render.print_list(client.service_accounts(at=at), COLUMNS, style)


@service_account.command("describe")
@click.argument("account")
@past
@printed
@connected
def describe(client: Client, account: str, at: str | None, style: Style) -> None:
    """Show one service account."""
    found = client.service_account(account, at=at)
    render.print_one(found, [(column.name.capitalize(), column.show(found)) for column in COLUMNS], style)


@service_account.command("update")
@click.argument("account")
@click.option("--role", type=click.Choice(ROLES), help="What it may do.")
@click.option("--team", "teams", multiple=True, help="A team that it is in, in place of those before; repeatable.")
@click.option("--no-teams", is_flag=True, help="It is in no team any more.")
@click.option("--description", help="A line about it, for people.")
@printed
@connected
def update(
    client: Client, account: str, teams: tuple[str, ...], style: Style, *, no_teams: bool, **said: str | None
) -> None:
    """Change a service account; what is not said stays."""
    from fairpool.wire.people import ServiceAccountUpdate

    chosen = replaced(teams, none=no_teams, option="--team", no="--no-teams")
    changed = client.update_service_account(account, body(ServiceAccountUpdate, teams=chosen, **said))
    if style.format in ("table", "wide"):
        click.echo(
            f"service account {changed.name} changed: {changed.role}, in {', '.join(changed.teams) or 'no team'}"
        )
    else:
        render.print_one(changed, [], style)


@service_account.command("delete")
@click.argument("account")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def delete(client: Client, account: str, *, yes: bool) -> None:
    """Delete a service account: tokens are revoked, queued requests cancelled; what runs goes on."""
    found = client.service_account(account)
    along = client.delete_service_account(found.id, dry_run=True)
    confirm(f"Delete service account {found.name}? {told(along)}", yes=yes)
    client.delete_service_account(found.id)
    note(f"service account {found.name} deleted")
