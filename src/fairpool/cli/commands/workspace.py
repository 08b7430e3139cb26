"""``fairpool workspace``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click

from fairpool.cli import render
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import body, confirm, connected, note, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.workspace import WorkspaceDeletion

COLUMNS = (
    Column("NAME", lambda workspace: workspace.name),
    Column("STATE", lambda workspace: workspace.state),
    Column("DESCRIPTION", lambda workspace: workspace.description),
    Column("CREATED", lambda workspace: workspace.created_at or "", wide=True),
    Column("ID", lambda workspace: workspace.id, wide=True),
)

_GONE_S: Final = 30.0
_LOOK_S: Final = 0.3
_FIRST: Final = "first"


@click.group(cls=NounGroup)
def workspace() -> None:
    """Workspaces: each has people, rules and work of its own, on the same servers. They are made and deleted with the
    installation's own token, which is in the server's data folder."""


@workspace.command("create")
@click.argument("name")
@click.option("--admin", metavar="USER", help="Make its first admin too, and show their token, this once.")
@click.option("--description", help="A line about it, for people.")
@printed
@connected
def create(client: Client, name: str, admin: str | None, style: Style, **said: str | None) -> None:
    """Create a workspace, empty but for its first admin."""
    from fairpool.client.errors import Problem
    from fairpool.wire.problems import Slug
    from fairpool.wire.workspace import WorkspaceCreate

    try:
        made = client.create_workspace(body(WorkspaceCreate, name=name, **said))
    except Problem as error:
        if error.slug == Slug.EXISTS and admin is not None:
            note(f"if a command that was cut off made it, go on with {_admin_of(name, admin)}")
        raise
    if style.format in ("table", "wide"):
        note(f"workspace {made.name} created")
    else:
        render.print_one(made, [], style)
    if admin is not None:
        _begin_with(client.within(made.name), made.name, admin)
    else:
        note(f"its first admin: fairpool --workspace {made.name} user create NAME --role admin, then token create")


def _admin_of(workspace: str, admin: str) -> str:
    return f"fairpool --workspace {workspace} user create {admin} --role admin"


def _begin_with(client: Client, workspace: str, admin: str) -> None:
    """Its first admin, with a token. The workspace is there by now: what fails here is told how to go on with."""
    from fairpool.client.errors import ClientError
    from fairpool.wire.people import TokenCreate, UserCreate

    go_on = _admin_of(workspace, admin)
    try:
        client.create_user(body(UserCreate, name=admin, role="admin"))
        go_on = f"fairpool --workspace {workspace} token create {_FIRST} --for user:{admin}"
        made = client.create_token(body(TokenCreate, name=_FIRST, owner=f"user:{admin}"))
    except ClientError:
        note(f"the workspace is there, its first admin is not yet: go on with {go_on}")
        raise
    click.echo(made.token)
    until = f" until {made.expires_at:%Y-%m-%d}" if made.expires_at is not None else ""
    note(f"this is the token of user {admin}, admin of {workspace}{until}; it is not shown again")


@workspace.command("list")
@printed
@connected
def list_(client: Client, style: Style) -> None:
    """List workspaces: your own, or all for the installation's own token."""
    render.print_list(client.workspaces(), COLUMNS, style)


@workspace.command("describe")
@click.argument("workspace")
@printed
@connected
def describe(client: Client, workspace: str, style: Style) -> None:
    """Show one workspace."""
    found = client.workspace(workspace)
    render.print_one(found, [(column.name.capitalize(), column.show(found)) for column in COLUMNS], style)


@workspace.command("update")
@click.argument("workspace")
@click.option("--description", required=True, help="A line about it, for people.")
@connected
def update(client: Client, workspace: str, description: str) -> None:
    """Describe a workspace otherwise."""
    from fairpool.wire.workspace import WorkspaceUpdate

    changed = client.update_workspace(workspace, body(WorkspaceUpdate, description=description))
    note(f"workspace {changed.name} changed")


@workspace.command("delete")
@click.argument("workspace")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def delete(client: Client, workspace: str, *, yes: bool) -> None:
    """Delete a workspace with all that it has: people, rules, tokens, history. Refused while anything waits or runs."""
    along = client.delete_workspace(workspace, dry_run=True)
    confirm(f"Delete workspace {along.workspace}? {_told(along)}", yes=yes)
    client.delete_workspace(along.workspace)
    _wait_until_gone(client, along.workspace)


def _wait_until_gone(client: Client, name: str) -> None:
    give_up_at = time.monotonic() + _GONE_S
    while time.monotonic() < give_up_at:
        found = next((each for each in client.workspaces() if each.name == name), None)
        if found is None:
            note(f"workspace {name} deleted")
            return
        if found.state == "open":
            raise click.ClickException(
                f"workspace {name} stays: work has come to it meanwhile; fairpool --workspace {name} top shows it"
            )
        time.sleep(_LOOK_S)
    note(f"workspace {name} is being deleted: its last server has yet to let go of it, or there is much to remove")


def _told(along: WorkspaceDeletion) -> str:
    """What goes along, in a sentence or two."""
    counts = along.model_dump(exclude={"workspace"})
    said = [f"{count} {_counted(noun.replace('_', ' '), count)}" for noun, count in counts.items() if count]
    return (f"It has {', '.join(said)}. " if said else "") + "Its requests, runs, tokens and history go too, for good."


def _counted(nouns: str, count: int) -> str:
    if count != 1:
        return nouns
    return nouns.removesuffix("ies") + "y" if nouns.endswith("ies") else nouns.removesuffix("s")
