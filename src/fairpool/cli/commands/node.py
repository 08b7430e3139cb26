"""``fairpool node``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import connected, dry_run, nearest, note, printed
from fairpool.cli.poolview import COLUMNS, NAMES, Placed, warn
from fairpool.cli.render import Style
from fairpool.cli.watching import show, watch_option

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.pools import NodeView


_LABEL = re.compile(r"(?P<key>[^=]+)(?:=(?P<value>.*)|(?P<gone>-))", re.DOTALL)


@click.group(cls=NounGroup)
def node() -> None:
    """Nodes: the machines that pools are made of. A node belongs to one pool, and answers to its name."""


@node.command("list")
@click.argument("pool", required=False)
@watch_option
@printed
@connected
def list_(client: Client, pool: str | None, style: Style, *, watch: bool) -> None:
    """List the nodes of all pools, or of one."""

    def once() -> None:
        pools = client.pools() if pool is None else [client.pool(pool)]
        found = [Placed(each, one) for each in pools for one in each.nodes]
        if style.format in ("table", "wide", "csv"):
            names = NAMES if pool is None else NAMES[:1]
            render.print_rows(found, (*names, *COLUMNS), style)
        else:
            render.print_list([placed.node for placed in found], [], style)

    show(client, once, watch=watch)


@node.command("describe")
@click.argument("node")
@printed
@connected
def describe(client: Client, node: str, style: Style) -> None:
    """Show one node: what it has, what of it is in use and by which requests, its labels."""
    placed = _find(client, node)
    free = {key: total - placed.node.used.get(key, 0) for key, total in placed.node.capacity.items()}
    lines = [
        ("Name", placed.node.name),
        ("Pool", placed.pool.name),
        ("State", placed.node.state),
        ("GPU type", placed.node.gpu_type),
        ("Used", render.shares(placed.node.used, placed.node.capacity)),
        ("Free", render.amounts(free)),
        ("Labels", "\n".join(f"{key}={value}" for key, value in sorted(placed.node.labels.items()))),
        ("Requests", "\n".join(placed.node.requests)),
    ]
    render.print_one(placed.node, lines, style)


@node.command("cordon")
@click.argument("node", nargs=-1, required=True, metavar="[POOL] NODE")
@connected
def cordon(client: Client, node: tuple[str, ...]) -> None:
    """Give a node no new work; what runs there goes on."""
    _set(client, node, "cordoned")


@node.command("uncordon")
@click.argument("node", nargs=-1, required=True, metavar="[POOL] NODE")
@connected
def uncordon(client: Client, node: tuple[str, ...]) -> None:
    """Give a node new work again."""
    _set(client, node, "ready")


@node.command("label")
@click.argument("node")
@click.argument("labels", nargs=-1, required=True, metavar="KEY=VALUE…|KEY-…")
@click.option("--overwrite", is_flag=True, help="Change also a label that has another value already.")
@dry_run
@printed
@connected
def label(client: Client, node: str, labels: tuple[str, ...], style: Style, *, overwrite: bool, dry_run: bool) -> None:
    """Label a node; KEY- takes a label away. Labels that begin with fairpool/ are the server's and stay as they are."""
    from fairpool.wire.pools import NodeUpdate

    placed = _find(client, node)
    pool, old = placed.pool, placed.node.labels
    new = _changed(placed.node, _said(labels), overwrite=overwrite)
    made = client.update_node(
        pool.name, node, NodeUpdate.model_validate({"labels": new}), version=pool.version, dry_run=dry_run
    )
    if style.format not in ("table", "wide"):
        render.print_one(next(one for one in made.nodes if one.name == node), [], style)
    told = _told(old, new)
    note(
        f"node {node} " + ("would be labelled" if dry_run else "labelled") + f": {told}" if told else "nothing changes"
    )


def _set(client: Client, words: tuple[str, ...], state: str) -> None:
    from fairpool.wire.pools import NodeUpdate

    if len(words) > 2:
        raise click.UsageError(f"{len(words)} names; possible: NODE, or POOL NODE")
    pool = words[0] if len(words) == 2 else _find(client, words[0]).pool.name
    made = client.update_node(pool, words[-1], NodeUpdate.model_validate({"state": state}))
    warn(made)
    note(f"node {words[-1]} of pool {pool} is {state}")


def _find(client: Client, name: str) -> Placed:
    """The node of that name, in whatever pool. Raises ClientError."""
    from fairpool.client.errors import ClientError
    from fairpool.wire.problems import Exit

    placed = [Placed(pool, node) for pool in client.pools() for node in pool.nodes]
    for each in placed:
        if each.node.name == name:
            return each
    known = [each.node.name for each in placed]
    error = ClientError(f"no node {name!r}{nearest(name, known)}", hint="fairpool node list shows what there is")
    error.exit_code = Exit.NOT_FOUND
    raise error


def _said(labels: tuple[str, ...]) -> dict[str, str | None]:
    """Labels by key; None takes one away. Raises UsageError."""
    found: dict[str, str | None] = {}
    for text in labels:
        match = _LABEL.fullmatch(text)
        if match is None:
            raise click.UsageError(f"label {text!r}; possible: KEY=VALUE, or KEY- to take it away")
        if match["key"] in found:
            raise click.UsageError(f"the label {match['key']!r} is there twice")
        found[match["key"]] = None if match["gone"] else match["value"]
    return found


def _changed(node: NodeView, said: Mapping[str, str | None], *, overwrite: bool) -> dict[str, str]:
    """The labels that it will have. Raises UsageError for one that has another value, unless that may be changed."""
    taken = [
        f"{key} is {node.labels[key]!r} already"
        for key, value in said.items()
        if value is not None and node.labels.get(key, value) != value
    ]
    if taken and not overwrite:
        raise click.UsageError(f"node {node.name}: {', '.join(taken)}; --overwrite changes it")
    return {key: value for key, value in {**node.labels, **said}.items() if value is not None}


def _told(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    keys = sorted(key for key in {**old, **new} if old.get(key) != new.get(key))
    return ", ".join(f"{key}={new[key]}" if key in new else f"{key} taken away" for key in keys)
