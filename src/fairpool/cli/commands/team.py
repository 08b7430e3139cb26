"""``fairpool team``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.consequences import told
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import body, confirm, connected, note, past, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client

COLUMNS = (
    Column("NAME", lambda team: team.name),
    Column("MEMBERS", lambda team: team.members),
    Column("SERVICE-ACCOUNTS", lambda team: team.service_accounts),
    Column("GROUP", lambda team: team.group, wide=True),
    Column("DESCRIPTION", lambda team: team.description),
    Column("ID", lambda team: team.id, wide=True),
)


@click.group(cls=NounGroup)
def team() -> None:
    """Teams: who belongs together. Being in one is all that it takes to have what it has."""


@team.command("create")
@click.argument("name")
@click.option("--member", "members", multiple=True, metavar="USER", help="Who is in it; repeatable.")
@click.option("--group", help="Instead of members: the identity provider's group that decides who is in it.")
@click.option("--description", help="A line about it, for people.")
@printed
@connected
def create(client: Client, members: tuple[str, ...], style: Style, **said: str | None) -> None:
    """Create a team."""
    from fairpool.wire.people import TeamCreate

    made = client.create_team(body(TeamCreate, members=list(members) or None, **said))
    if style.format in ("table", "wide"):
        click.echo(f"team {made.name} created" + (f": {', '.join(made.members)}" if made.members else ""))
    else:
        render.print_one(made, [], style)


@team.command("list")
@past
@printed
@connected
def list_(client: Client, at: str | None, style: Style) -> None:
    """List teams."""
    render.print_list(client.teams(at=at), COLUMNS, style)


@team.command("describe")
@click.argument("team")
@past
@printed
@connected
def describe(client: Client, team: str, at: str | None, style: Style) -> None:
    """Show one team."""
    found = client.team(team, at=at)
    render.print_one(found, [(column.name.capitalize(), column.show(found)) for column in COLUMNS], style)


@team.command("update")
@click.argument("team")
@click.option("--name", help="Its new name: policies, service accounts and live requests follow.")
@click.option("--group", help="The identity provider's group that decides who is in it ('' for by hand again).")
@click.option("--description", help="A line about it, for people.")
@printed
@connected
def update(client: Client, team: str, style: Style, **said: str | None) -> None:
    """Rename a team, bind it to a group, or describe it otherwise."""
    from fairpool.wire.people import TeamUpdate

    changed = client.update_team(team, body(TeamUpdate, **said))
    if style.format in ("table", "wide"):
        click.echo(f"team {changed.name} changed")
    else:
        render.print_one(changed, [], style)


@team.command("add")
@click.argument("team")
@click.argument("users", nargs=-1, required=True, metavar="USER…")
@connected
def add(client: Client, team: str, users: tuple[str, ...]) -> None:
    """Add people to a team: from their next request on they have what it has."""
    for user in users:
        changed = client.add_to_team(team, user)
        note(f"{user} is in team {changed.name}")


@team.command("remove")
@click.argument("team")
@click.argument("users", nargs=-1, required=True, metavar="USER…")
@connected
def remove(client: Client, team: str, users: tuple[str, ...]) -> None:
    """Take people out of a team. What they have queued through it alone is cancelled; what runs goes on."""
    for user in users:
        changed = client.remove_from_team(team, user)
        note(f"{user} is not in team {changed.name} any more")


@team.command("delete")
@click.argument("team")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def delete(client: Client, team: str, *, yes: bool) -> None:
    """Delete a team with its policies. What is queued through it alone is cancelled; what runs goes on."""
    found = client.team(team)
    along = client.delete_team(found.id, dry_run=True)
    confirm(f"Delete team {found.name}? {told(along)}", yes=yes)
    client.delete_team(found.id)
    note(f"team {found.name} deleted")
