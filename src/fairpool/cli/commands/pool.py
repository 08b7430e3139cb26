"""``fairpool pool``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.historyview import print_history
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import body, confirm, connected, data, dry_run, note, past, printed, replaced
from fairpool.cli.poolview import COLUMNS as COLUMNS_OF_NODES
from fairpool.cli.poolview import NAMES, Placed, warn
from fairpool.cli.render import Column, Style
from fairpool.cli.watching import show, watch_option

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.pools import PoolView

COLUMNS = (
    Column("NAME", lambda pool: pool.name),
    Column("STATE", lambda pool: pool.state),
    Column("USED", lambda pool: render.shares(pool.used, pool.capacity)),
    Column("RESERVED", lambda pool: pool.reserved),
    Column("BORROWED", lambda pool: pool.borrowed),
    Column("ACTIVE", lambda pool: pool.active),
    Column("QUEUED", lambda pool: pool.queued),
    Column("NODES", lambda pool: len(pool.nodes), wide=True),
    Column("ORDERING", lambda pool: pool.ordering, wide=True),
    Column("ID", lambda pool: pool.id, wide=True),
)

PLACEMENT = click.Choice(("pack", "spread", "defragment"))


@click.group(cls=NounGroup)
def pool() -> None:
    """Pools: named, shared buckets of countable resources."""


@pool.command("create")
@click.argument("name")
@click.option("--capacity", metavar="KEY=AMOUNT,…", help="Units per key, such as gpu=8; or JSON, or YAML.")
@click.option("--nodes", metavar="JSON|YAML", help='Machines: \'{"n1": {"gpu": 8}, "n2": {"gpu": 8}}\'.')
@click.option("--ordering", type=click.Choice(("fair", "fifo")), help="How equals are served (fair).")
@click.option("--placement", type=PLACEMENT, help="Which node is taken first (pack).")
@click.option("--backfill/--no-backfill", default=None, help="May smaller work start before blocked work (yes)?")
@click.option("--max-bypass", "max_bypass_s", type=int, metavar="S", help="How long blocked work is overtaken (600).")
@click.option("--component", "components", multiple=True, help="Only requests that run on this one; repeatable.")
@click.option("--description", help="A line about it, for people.")
@dry_run
@printed
@connected
def create(
    client: Client,
    name: str,
    capacity: str | None,
    nodes: str | None,
    components: tuple[str, ...],
    style: Style,
    *,
    dry_run: bool,
    **settings: object,
) -> None:
    """Create a pool."""
    from fairpool.wire.pools import PoolCreate

    made = client.create_pool(
        body(
            PoolCreate,
            name=name,
            capacity=data(capacity, option="--capacity") if capacity is not None else None,
            nodes=_nodes(nodes) if nodes is not None else None,
            components=list(components) or None,
            **settings,
        ),
        dry_run=dry_run,
    )
    _told(made, "would be created" if dry_run else "created", style)


@pool.command("list")
@past
@watch_option
@printed
@connected
def list_(client: Client, at: str | None, style: Style, *, watch: bool) -> None:
    """List pools with what is used, reserved and borrowed."""

    def once() -> None:
        found = client.pools(at=at)
        if not found and at is None and style.format in ("table", "wide"):
            note("no pools yet: fairpool pool create NAME --capacity '{\"gpu\": 8}'")
        else:
            render.print_list(found, COLUMNS, style)

    show(client, once, watch=watch)


@pool.command("describe")
@click.argument("pool")
@past
@printed
@connected
def describe(client: Client, pool: str, at: str | None, style: Style) -> None:
    """Show one pool: amounts, policies, nodes, history."""
    found = client.pool(pool, at=at)
    render.print_one(found, _lines(found), style)
    if style.format not in ("table", "wide"):
        return
    if found.policies:
        from fairpool.cli.commands.policy import COLUMNS as POLICY_COLUMNS

        click.echo()
        render.print_list(found.policies, POLICY_COLUMNS, Style(), name="id")
    if found.nodes:
        click.echo()
        placed = [Placed(found, each) for each in found.nodes]
        render.print_rows(placed, (NAMES[0], *COLUMNS_OF_NODES), Style())
    if at is None:
        print_history(client, "pool", found.id)


@pool.command("update")
@click.argument("pool")
@click.option("--name", help="Another name.")
@click.option("--capacity", metavar="KEY=AMOUNT,…", help="Keys that change; 0 removes a key.")
@click.option("--nodes", metavar="JSON|YAML", help="The whole new list of machines.")
@click.option("--ordering", type=click.Choice(("fair", "fifo")), help="How equals are served.")
@click.option("--placement", type=PLACEMENT, help="Which node is taken first.")
@click.option("--backfill/--no-backfill", default=None, help="May smaller work start before blocked work?")
@click.option("--max-bypass", "max_bypass_s", type=int, metavar="S", help="How long blocked work is overtaken.")
@click.option(
    "--component", "components", multiple=True, help="Only requests that run on this one, not on those before."
)
@click.option("--no-components", is_flag=True, help="Requests that run on any component.")
@click.option("--description", help="A line about it, for people.")
@click.option("--evict-borrowers", is_flag=True, default=None, help="Tell borrowers to leave until it fits.")
@click.option("--if-version", type=int, help="Refuse if it has changed since that version.")
@dry_run
@printed
@connected
def update(
    client: Client,
    pool: str,
    capacity: str | None,
    nodes: str | None,
    components: tuple[str, ...],
    if_version: int | None,
    style: Style,
    *,
    no_components: bool,
    dry_run: bool,
    **settings: object,
) -> None:
    """Change a pool; what is not said stays."""
    from fairpool.wire.pools import PoolUpdate

    made = client.update_pool(
        pool,
        body(
            PoolUpdate,
            capacity=data(capacity, option="--capacity") if capacity is not None else None,
            nodes=_nodes(nodes) if nodes is not None else None,
            components=replaced(components, none=no_components, option="--component", no="--no-components"),
            **settings,
        ),
        version=if_version,
        dry_run=dry_run,
    )
    _told(made, "would be changed" if dry_run else "changed", style)
    warn(made)


@pool.command("delete")
@click.argument("pool")
@click.option("--drain", "on_work", flag_value="drain", help="Delete it when the last work there has ended.")
@click.option("--let-go", "on_work", flag_value="let-go", help="Reject what waits; let run what runs, unaccounted.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@dry_run
@connected
def delete(client: Client, pool: str, on_work: str | None, *, yes: bool, dry_run: bool) -> None:
    """Delete a pool. No running work is killed."""
    choice = on_work or "refuse"
    goes = client.delete_pool(pool, on_work=on_work or "let-go", dry_run=True)
    subjects = [policy.subject for policy in client.policies(pool=pool) if policy.id in goes.policies]
    with_it = [f"the {_some('policy', subjects)}"] if subjects else []
    with_it += [f"the queued {_some('request', goes.queued)}"] if goes.queued else []
    with_it += [f"the running {_some('request', goes.active)}, which run on"] if goes.active else []
    if dry_run:
        click.echo(f"pool {goes.pool} would be {goes.outcome}" + (f", with {', '.join(with_it)}" if with_it else ""))
        return
    if on_work is None and (goes.queued or goes.active):
        client.delete_pool(pool, on_work=choice, dry_run=True)  # refused, with the reason and what to say
    question = f"Delete pool {goes.pool}" + (f", and with it {', '.join(with_it)}" if with_it else "") + "?"
    confirm(question, yes=yes)
    done = client.delete_pool(pool, on_work=choice)
    note(f"pool {done.pool} {done.outcome}")


@pool.command("requests")
@click.argument("pool")
@click.option(
    "--view",
    type=click.Choice(("queued", "active", "all")),
    default="all",
    show_default=True,
    help="Those that wait, those that hold something, or finished ones too.",
)
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="How many at most.")
@watch_option
@printed
@connected
def requests(client: Client, pool: str, view: str, limit: int, style: Style, *, watch: bool) -> None:
    """List the requests of a pool."""
    from fairpool.cli.commands.request import COLUMNS as REQUEST_COLUMNS

    def once() -> None:
        found = list(client.requests(pool=pool, view=view, limit=limit))
        render.print_list(found, REQUEST_COLUMNS, style, name="id")

    show(client, once, watch=watch)


def _some(noun: str, names: list[str]) -> str:
    """``policies team:a, team:b and 3 more``."""
    nouns = noun if len(names) == 1 else "policies" if noun == "policy" else f"{noun}s"
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{nouns} {', '.join(names[:5])}{more}"


def _nodes(text: str) -> list[dict[str, object]]:
    nodes = []
    for name, said in data(text, option="--nodes").items():
        if not isinstance(said, dict):
            raise click.UsageError(f"--nodes: {name!r} is {said!r}; possible: units per key such as {{gpu: 8}}")
        nodes.append({"name": name, **(said if "capacity" in said else {"capacity": said})})
    return nodes


def _told(made: PoolView, what: str, style: Style) -> None:
    if style.format in ("table", "wide"):
        click.echo(f"pool {made.name} {what}: {render.amounts(made.capacity) or 'nothing in it'}")
    else:
        render.print_one(made, [], style)


def _lines(found: PoolView) -> list[tuple[str, object]]:
    return [
        ("Name", found.name),
        ("Id", found.id),
        ("State", found.state),
        ("Description", found.description),
        ("Used", render.shares(found.used, found.capacity)),
        ("Free", found.free),
        ("Reserved", found.reserved),
        ("Borrowed", found.borrowed),
        ("Too little", "\n".join(found.warnings)),
        ("Requests", f"{found.active} active, {found.queued} queued"),
        ("Order", f"{found.ordering}, {'backfill' if found.backfill else 'strict'}, {found.placement}"),
        ("Max bypass", render.duration(found.max_bypass_s)),
        ("Components", found.components),
        ("Version", found.version),
        ("Created", found.created_at),
    ]
