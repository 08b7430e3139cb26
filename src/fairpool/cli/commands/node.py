"""``fairpool node``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import connected, note, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client

COLUMNS = (
    Column("NODE", lambda node: node.name),
    Column("STATE", lambda node: node.state),
    Column("USED", lambda node: render.shares(node.used, node.capacity)),
    Column("GPU-TYPE", lambda node: node.gpu_type),
    Column("REQUESTS", lambda node: len(node.requests)),
)


@click.group(cls=NounGroup)
def node() -> None:
    """Nodes: the machines that a pool is made of."""


@node.command("list")
@click.argument("pool")
@printed
@connected
def list_(client: Client, pool: str, style: Style) -> None:
    """List the nodes of a pool."""
    render.print_list(client.pool(pool).nodes, COLUMNS, style)


def _set(client: Client, pool: str, node: str, state: str) -> None:
    from fairpool.wire.pools import NodeUpdate

    client.update_node(pool, node, NodeUpdate.model_validate({"state": state}))
    note(f"node {node} of pool {pool} is {state}")


@node.command("cordon")
@click.argument("pool")
@click.argument("node")
@connected
def cordon(client: Client, pool: str, node: str) -> None:
    """Give a node no new work; what runs there goes on."""
    _set(client, pool, node, "cordoned")


@node.command("uncordon")
@click.argument("pool")
@click.argument("node")
@connected
def uncordon(client: Client, pool: str, node: str) -> None:
    """Give a node new work again."""
    _set(client, pool, node, "ready")
