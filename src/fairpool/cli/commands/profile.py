"""``fairpool profile``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import body, confirm, connected, data, dry_run, note, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client

COLUMNS = (
    Column("NAME", lambda profile: profile.name),
    Column("DEMAND", lambda profile: profile.demand),
    Column("POOLS", lambda profile: profile.pools),
    Column("DESCRIPTION", lambda profile: profile.description, wide=True),
    Column("ID", lambda profile: profile.id, wide=True),
)


@click.group(cls=NounGroup)
def profile() -> None:
    """Profiles: what can be asked for by name, in which pools, in which order."""


@profile.command("create")
@click.argument("name")
@click.option(
    "--demand", required=True, metavar="KEY=AMOUNT,…", help="What it asks for, such as gpu=0.5; or JSON, or YAML."
)
@click.option("--pool", "pools", multiple=True, required=True, help="Where, the preferred one first; repeatable.")
@click.option("--description", help="A line about it, for people.")
@dry_run
@printed
@connected
def create(
    client: Client,
    name: str,
    demand: str,
    pools: tuple[str, ...],
    description: str | None,
    style: Style,
    *,
    dry_run: bool,
) -> None:
    """Create a profile."""
    from fairpool.wire.policies import ProfileCreate

    said = body(
        ProfileCreate, name=name, demand=data(demand, option="--demand"), pools=list(pools), description=description
    )
    made = client.create_profile(said, dry_run=dry_run)
    if style.format in ("table", "wide"):
        click.echo(f"profile {made.name} created: {render.amounts(made.demand)} in {', then '.join(made.pools)}")
    else:
        render.print_one(made, [], style)


@profile.command("list")
@printed
@connected
def list_(client: Client, style: Style) -> None:
    """List profiles."""
    render.print_list(client.profiles(), COLUMNS, style)


@profile.command("describe")
@click.argument("profile")
@printed
@connected
def describe(client: Client, profile: str, style: Style) -> None:
    """Show one profile."""
    found = client.profile(profile)
    render.print_one(found, [(column.name.capitalize(), column.show(found)) for column in COLUMNS], style)


@profile.command("delete")
@click.argument("profile")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def delete(client: Client, profile: str, *, yes: bool) -> None:
    """Delete a profile; queued requests that ask for it are rejected."""
    found = client.profile(profile)
    confirm(f"Delete profile {found.name}? Queued requests that ask for it are rejected.", yes=yes)
    client.delete_profile(found.id)
    note(f"profile {found.name} deleted")
