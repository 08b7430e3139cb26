"""``fairpool user``."""

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

ROLES = ("admin", "operator", "member", "viewer")
COLUMNS = (
    Column("NAME", lambda user: user.name),
    Column("ROLE", lambda user: user.role),
    Column("TEAMS", lambda user: user.teams),
    Column("DISPLAY-NAME", lambda user: user.display_name),
    Column("EMAIL", lambda user: user.email, wide=True),
    Column("DESCRIPTION", lambda user: user.description, wide=True),
    Column("ID", lambda user: user.id, wide=True),
)


@click.group(cls=NounGroup)
def user() -> None:
    """People, and what they may do."""


@user.command("create")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), help="What they may do (member).")
@click.option("--display-name", help="How they are called in full.")
@click.option("--email", help="Where they read mail.")
@click.option("--description", help="A line about them, for people.")
@printed
@connected
def create(client: Client, style: Style, **said: str | None) -> None:
    """Create a user. 'fairpool token create --for user:NAME' lets them in."""
    from fairpool.wire.people import UserCreate

    made = client.create_user(body(UserCreate, **said))
    if style.format in ("table", "wide"):
        click.echo(f"user {made.name} created: {made.role}")
        note(f"to let them in: fairpool token create --for user:{made.name} NAME, or they sign in with fairpool login")
    else:
        render.print_one(made, [], style)


@user.command("list")
@past
@printed
@connected
def list_(client: Client, at: str | None, style: Style) -> None:
    """List users."""
    render.print_list(client.users(at=at), COLUMNS, style)


@user.command("describe")
@click.argument("user")
@past
@printed
@connected
def describe(client: Client, user: str, at: str | None, style: Style) -> None:
    """Show one user."""
    found = client.user(user, at=at)
    render.print_one(found, [(column.name.capitalize(), column.show(found)) for column in COLUMNS], style)


@user.command("update")
@click.argument("user")
@click.option("--role", type=click.Choice(ROLES), help="What they may do.")
@click.option("--display-name", help="How they are called in full.")
@click.option("--email", help="Where they read mail.")
@click.option("--description", help="A line about them, for people.")
@printed
@connected
def update(client: Client, user: str, style: Style, **said: str | None) -> None:
    """Change a user; what is not said stays."""
    from fairpool.wire.people import UserUpdate

    changed = client.update_user(user, body(UserUpdate, **said))
    if style.format in ("table", "wide"):
        click.echo(f"user {changed.name} changed: {changed.role}")
    else:
        render.print_one(changed, [], style)


@user.command("delete")
@click.argument("user")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def delete(client: Client, user: str, *, yes: bool) -> None:
    """Delete a user: tokens are revoked, queued requests cancelled; what runs goes on."""
    found = client.user(user)
    along = client.delete_user(found.id, dry_run=True)
    confirm(f"Delete user {found.name}? {told(along)}", yes=yes)
    client.delete_user(found.id)
    note(f"user {found.name} deleted")
