"""The picture that ``fairpool top`` shows, from what the server says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairpool.cli import render
from fairpool.client.errors import ClientError
from fairpool.wire.values import RequestStatus

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.policies import PolicyView
    from fairpool.wire.pools import PoolView
    from fairpool.wire.requests import RequestView

MOST_ROWS = 12  # of running and of waiting requests each: more than a person takes in at a glance
MOST_EXPLAINED = 6
MOST_LOOKED_AT = 100

IN_SHARE, BORROWED, FREE, RESERVED = "green", "yellow", "bright_black", "cyan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is shown. policies: by pool name. why: of the first waiting requests, in a sentence."""

    url: str
    pools: Sequence[PoolView]
    policies: dict[str, list[PolicyView]]
    running: Sequence[RequestView]
    waiting: Sequence[RequestView]
    why: dict[str, str]


def gather(client: Client) -> Sight:
    """Ask the server."""
    # What was preempted stands in its old place, though its new request is younger: look further than is shown.
    longest = client.requests(view="queued", order="oldest", limit=MOST_LOOKED_AT)
    waiting = sorted(longest, key=lambda request: request.queued_at)[:MOST_ROWS]
    why = {}
    for request in [request for request in waiting if not request.foreign][:MOST_EXPLAINED]:
        try:
            why[request.id] = client.explain(request.id).summary
        except ClientError:
            why[request.id] = ""  # it may have started in between
    policies: dict[str, list[PolicyView]] = {}
    for policy in client.policies():
        for pool in (policy.pool, *policy.also):
            policies.setdefault(pool, []).append(policy)
    return Sight(
        url=client.url,
        policies=policies,
        pools=client.pools(),
        running=list(client.requests(view="active", limit=MOST_ROWS)),
        waiting=waiting,
        why=why,
    )


def frame(sight: Sight, width: int) -> RenderableType:
    """One frame for a terminal of that width."""
    active = sum(pool.active for pool in sight.pools)
    queued = sum(pool.queued for pool in sight.pools)
    clock = datetime.now(UTC).astimezone().strftime("%H:%M:%S")
    title = Text.assemble(("fairpool top", "bold"), f"  {clock}  {active} running  {queued} waiting  {sight.url}")
    parts: list[RenderableType] = [title, _legend()]
    if not sight.pools:
        parts.append(Text("no pools yet: fairpool pool create NAME --capacity '{\"gpu\": 8}'", style="dim"))
    for pool in sight.pools:
        parts += [Text(), _pool(pool, sight.policies.get(pool.name, []), width)]
    if sight.running:
        parts += [Text(), _running(sight.running)]
    if sight.waiting:
        parts += [Text(), _waiting(sight)]
    return Group(*parts)


def _legend() -> Text:
    return Text.assemble(
        ("█", IN_SHARE), " in share  ", ("▓", BORROWED), " borrowed  ", ("░", RESERVED), " reserved, unused  ",
        ("·", FREE), " free",
    )  # fmt: skip


def _pool(pool: PoolView, policies: Sequence[PolicyView], width: int) -> RenderableType:
    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True)
    bar_width = max(10, min(60, width - 46))
    for key in _keys(pool):
        total = Decimal(pool.capacity[key])
        borrowed = Decimal(pool.borrowed.get(key, 0))
        used = Decimal(pool.used.get(key, 0))
        alone = (policy for policy in policies if not policy.also)  # over several it is nowhere in particular
        unused = max(Decimal(0), sum((_unused(policy, key) for policy in alone), Decimal(0)))
        bar = _bar(total, used - borrowed, borrowed, min(unused, max(total - used, Decimal(0))), bar_width)
        table.add_row(Text(f"{pool.name} {key}", style="bold"), f"{render.number(used)}/{render.number(total)}", bar)
        for policy in policies:
            theirs = Decimal(policy.used.get(key, 0))
            beyond = Decimal(policy.borrowed.get(key, 0))
            row = _bar(total, theirs - beyond, beyond, _unused(policy, key), bar_width)
            told = f"{render.number(theirs)}/{render.number(policy.reserved.get(key, 0))}"
            whose = f"  {policy.subject}" + (f" ({', '.join((policy.pool, *policy.also))})" if policy.also else "")
            table.add_row(Text(whose, style="dim"), Text(told, style="dim"), row)
    state = "" if pool.state == "active" else f"  {pool.state.upper()}"
    return Group(Text(state, style="bold red"), table) if state else table


def _keys(pool: PoolView) -> list[str]:
    """GPUs first; keys that nobody could run out of are left to `pool describe`."""
    return sorted((key for key, total in pool.capacity.items() if total), key=lambda key: (key != "gpu", key))


def _unused(policy: PolicyView, key: str) -> Decimal:
    return max(Decimal(0), Decimal(policy.reserved.get(key, 0)) - Decimal(policy.used.get(key, 0)))


def _bar(total: Decimal, in_share: Decimal, borrowed: Decimal, reserved: Decimal, width: int) -> Text:
    if total <= 0:
        return Text()
    text = Text()
    filled, sum_so_far = 0, Decimal(0)
    for amount, mark, colour in ((in_share, "█", IN_SHARE), (borrowed, "▓", BORROWED), (reserved, "░", RESERVED)):
        sum_so_far += max(amount, Decimal(0))
        upto = min(width, int((sum_so_far / total * width).to_integral_value()))
        text.append(mark * (upto - filled), style=colour)
        filled = max(filled, upto)
    return text.append("·" * (width - filled), style=FREE)


def _running(requests: Sequence[RequestView]) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for heading in ("RUNNING", "WHO", "WHAT", "WHERE", "FOR"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    for request in requests:
        held = request.allocation
        leaving = request.status is RequestStatus.PREEMPTING
        borrows = held is not None and held.in_share is False
        name = Text(request.name or request.id, style="red" if leaving else BORROWED if borrows else IN_SHARE)
        where = (held.pool or "ungoverned") if held is not None else ""
        devices = [str(device.index) for part in held.parts for device in part.devices] if held is not None else []
        since = render.ago(held.granted_at) if held is not None else ""
        table.add_row(
            name,
            (held.subject or "") if held is not None else "",
            render.amounts({key: value for key, value in request.demand.items() if key != "step_run"}),
            f"{where} {','.join(devices)}".strip(),
            f"{since} letting go" if leaving else since,
        )
    return table


def _waiting(sight: Sight) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    table.add_column("WAITING", no_wrap=True, overflow="ellipsis", min_width=12)
    table.add_column("WHAT", no_wrap=True, min_width=8)
    table.add_column("FOR", no_wrap=True, min_width=6)
    table.add_column("WHY", overflow="fold")
    for request in sight.waiting:
        table.add_row(
            request.name or request.id,
            render.amounts({key: value for key, value in request.demand.items() if key != "step_run"}),
            render.ago(request.created_at),
            Text(sight.why.get(request.id, "").removeprefix("waits, "), style="dim"),
        )
    return table
