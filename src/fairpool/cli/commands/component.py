"""``fairpool component``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import body, confirm, connected, data, note, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client

KINDS = ("orchestrator", "step_operator", "artifact_store")
COLUMNS = (
    Column("NAME", lambda component: component.name),
    Column("KIND", lambda component: component.kind),
    Column("FLAVOR", lambda component: component.flavor),
    Column("SUBJECT", lambda component: component.subject),
    Column("DESCRIPTION", lambda component: component.description),
    Column("ID", lambda component: component.id, wide=True),
)


@click.group(cls=NounGroup)
def component() -> None:
    """Components: orchestrators, step operators and artifact stores. Policies may speak of them."""


@component.command("create")
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), default="orchestrator", show_default=True, help="What it is.")
@click.option("--flavor", default="local", show_default=True, help="What it is made of, or a class's import path.")
@click.option("--config", metavar="JSON|YAML", help="What the flavor wants to know.")
@click.option("--description", help="A line about it, for people.")
@printed
@connected
def create(client: Client, config: str | None, style: Style, **said: str | None) -> None:
    """Register a component."""
    from fairpool.wire.stacks import ComponentCreate

    given = data(config, option="--config") if config is not None else None
    made = client.create_component(body(ComponentCreate, config=given, **said))
    if style.format in ("table", "wide"):
        click.echo(f"component {made.name} created: {made.kind}, {made.flavor}")
    else:
        render.print_one(made, [], style)


@component.command("list")
@printed
@connected
def list_(client: Client, style: Style) -> None:
    """List components."""
    render.print_list(client.components(), COLUMNS, style)


@component.command("describe")
@click.argument("component")
@printed
@connected
def describe(client: Client, component: str, style: Style) -> None:
    """Show one component."""
    found = client.component(component)
    render.print_one(found, [(column.name.capitalize(), column.show(found)) for column in COLUMNS], style)


@component.command("delete")
@click.argument("component")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def delete(client: Client, component: str, *, yes: bool) -> None:
    """Delete a component that no stack and no policy names."""
    found = client.component(component)
    confirm(f"Delete component {found.name}?", yes=yes)
    client.delete_component(found.id)
    note(f"component {found.name} deleted")
