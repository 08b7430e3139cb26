"""``fairpool stack``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import body, confirm, connected, note, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client

COLUMNS = (
    Column("ACTIVE", lambda stack: "*" if stack.active else ""),
    Column("NAME", lambda stack: stack.name),
    Column("ORCHESTRATOR", lambda stack: stack.orchestrator),
    Column("STEP-OPERATORS", lambda stack: stack.step_operators),
    Column("ARTIFACTS", lambda stack: stack.artifact_store),
    Column("DESCRIPTION", lambda stack: stack.description, wide=True),
    Column("ID", lambda stack: stack.id, wide=True),
)


@click.group(cls=NounGroup)
def stack() -> None:
    """Stacks: where a pipeline's steps run. The same pipeline on another stack meets other rules."""


@stack.command("create")
@click.argument("name")
@click.option("--orchestrator", required=True, help="The component that runs its steps.")
@click.option("--step-operator", "step_operators", multiple=True, help="Where steps that name it run; repeatable.")
@click.option("--artifact-store", help="A folder or fsspec URL for what its steps read and write.")
@click.option("--description", help="A line about it, for people.")
@printed
@connected
def create(client: Client, step_operators: tuple[str, ...], style: Style, **said: str | None) -> None:
    """Create a stack."""
    from fairpool.wire.stacks import StackCreate

    made = client.create_stack(body(StackCreate, step_operators=list(step_operators) or None, **said))
    if style.format in ("table", "wide"):
        click.echo(f"stack {made.name} created: steps run on {made.orchestrator}")
    else:
        render.print_one(made, [], style)


@stack.command("list")
@printed
@connected
def list_(client: Client, style: Style) -> None:
    """List stacks."""
    render.print_list(client.stacks(), COLUMNS, style)


@stack.command("describe")
@click.argument("stack")
@printed
@connected
def describe(client: Client, stack: str, style: Style) -> None:
    """Show one stack."""
    found = client.stack(stack)
    render.print_one(found, [(column.name.capitalize(), column.show(found)) for column in COLUMNS], style)


@stack.command("activate")
@click.argument("stack")
@connected
def activate(client: Client, stack: str) -> None:
    """Use a stack for runs that name none."""
    note(f"stack {client.activate_stack(stack).name} is active")


@stack.command("delete")
@click.argument("stack")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def delete(client: Client, stack: str, *, yes: bool) -> None:
    """Delete a stack that is not the active one."""
    found = client.stack(stack)
    confirm(f"Delete stack {found.name}?", yes=yes)
    client.delete_stack(found.id)
    note(f"stack {found.name} deleted")
