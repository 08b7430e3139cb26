"""``fairpool policy``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fairpool.cli import render
from fairpool.cli.historyview import changed_fields, print_history
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import body, confirm, connected, data, dry_run, listed, note, past, printed, replaced
from fairpool.cli.render import Column, Style
from fairpool.cli.watching import show, watch_option

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.policies import PolicyView

COLUMNS = (
    Column("POOL", lambda policy: [policy.pool, *policy.also]),
    Column("SUBJECT", lambda policy: policy.subject),
    Column("PRIORITY", lambda policy: policy.priority),
    Column("RESERVED", lambda policy: policy.reserved),
    Column("LIMIT", lambda policy: policy.limit),
    Column("USED", lambda policy: policy.used),
    Column("BORROWED", lambda policy: policy.borrowed),
    Column("QUEUED", lambda policy: policy.queued),
    Column("ID", lambda policy: policy.id),
    Column("WEIGHT", lambda policy: render.number(policy.weight), wide=True),
    Column("DEDICATED", lambda policy: policy.dedicated, wide=True),
    Column("GRACE", lambda policy: render.duration(policy.grace_s), wide=True),
    Column("MIN-RUNTIME", lambda policy: render.duration(policy.min_runtime_s), wide=True),
    Column("PROFILES", lambda policy: "all" if policy.profiles is None else policy.profiles, wide=True),
)


@click.group(cls=NounGroup)
def policy() -> None:
    """Policies: what a team, user or component may use of a pool, and what is reserved for it."""


def _rights(function: click.decorators.FC) -> click.decorators.FC:
    for option in reversed(
        (
            click.option("--priority", type=int, help="Higher goes first, and may take what lower ones borrow."),
            click.option("--reserved", metavar="KEY=AMOUNT,…", help="What is theirs whenever they want it."),
            click.option("--limit", metavar="KEY=AMOUNT,…", help="The most they may use (the pool's capacity)."),
            click.option("--also", multiple=True, metavar="POOL", help="A further pool that it spans; repeatable."),
            click.option("--weight", metavar="N", help="Their part of the surplus beside their equals (1)."),
            click.option("--dedicated/--shared", default=None, help="Keep what is reserved idle for them."),
            click.option("--grace", "grace_s", type=int, metavar="S", help="How long evicted work has (30)."),
            click.option("--min-runtime", "min_runtime_s", type=int, metavar="S", help="How long it is spared (0)."),
            click.option(
                "--schedule",
                metavar="JSON|YAML",
                help="Windows of time with other numbers: '[{start: 0 20 * * 1-5, duration_s: 36000, timezone: "
                "Europe/Berlin, reserved: {gpu: 8}}]'; [] for none.",
            ),
            click.option("--profile", "profiles", multiple=True, help="Only offer this profile; repeatable."),
        )
    ):
        function = option(function)
    return function


@policy.command("attach")
@click.argument("pool", metavar="POOL[,POOL…]")
@click.argument("subject")
@_rights
@dry_run
@printed
@connected
def attach(client: Client, pool: str, subject: str, style: Style, *, dry_run: bool, **rights: Any) -> None:
    """Let SUBJECT use POOL. SUBJECT: team:NAME, user:NAME, service-account:NAME or a component's name.

    With several pools (onprem,cloud) what is reserved and allowed counts over them together; the first is preferred.
    """
    from fairpool.wire.policies import PolicyCreate

    said = _said(rights)
    first, *further = [name for each in pool.split(",") if (name := each.strip())] or [pool]
    if further:
        said["also"] = [*further, *(said["also"] or ())]
    made = client.attach_policy(body(PolicyCreate, pool=first, subject=subject, **said), dry_run=dry_run)
    _told(made, "would be attached" if dry_run else "attached", style)


@policy.command("list")
@click.argument("pool", required=False)
@click.option("--subject", help="Only policies of this subject.")
@past
@watch_option
@printed
@connected
def list_(client: Client, pool: str | None, subject: str | None, at: str | None, style: Style, *, watch: bool) -> None:
    """List policies: all, those of a pool, or those of a subject."""

    def once() -> None:
        render.print_list(client.policies(pool=pool, subject=subject, at=at), COLUMNS, style, name="id")

    show(client, once, watch=watch)


@policy.command("describe")
@click.argument("policy")
@click.argument("subject", required=False)
@printed
@connected
def describe(client: Client, policy: str, subject: str | None, style: Style) -> None:
    """Show one policy. POLICY: its id or a unique prefix, POOL/SUBJECT, or POOL with SUBJECT after it."""
    found = _find(client, policy, subject)
    lines = [(column.name.capitalize(), column.show(found)) for column in COLUMNS]
    render.print_one(found, [*lines, *_schedule(found)], style, name="id")
    if style.format in ("table", "wide"):
        print_history(client, "policy", found.id)


@policy.command("update")
@click.argument("policy")
@click.argument("subject", required=False)
@_rights
@click.option("--no-also", is_flag=True, help="It spans no further pools any more.")
@click.option("--no-profiles", is_flag=True, help="It offers no profile.")
@click.option("--all-profiles", is_flag=True, help="It offers all profiles.")
@click.option("--subject", "new_subject", help="Whose it is from now on; who was meant before loses its right.")
@click.option("--if-version", type=int, help="Refuse if it has changed since that version.")
@dry_run
@printed
@connected
def update(
    client: Client,
    policy: str,
    subject: str | None,
    new_subject: str | None,
    if_version: int | None,
    style: Style,
    *,
    no_also: bool,
    no_profiles: bool,
    all_profiles: bool,
    dry_run: bool,
    **rights: Any,
) -> None:
    """Change a policy; what is not said stays. POLICY: its id or a unique prefix, POOL/SUBJECT, or POOL with SUBJECT
    after it."""
    from fairpool.wire.policies import PolicyUpdate

    found = _find(client, policy, subject)
    given = _said(rights, no_also=no_also, no_profiles=no_profiles)
    said = body(PolicyUpdate, subject=new_subject, **given)
    if all_profiles:
        if given["profiles"] is not None:
            raise click.UsageError("--all-profiles and --profile say different things; possible: one of the two")
        said = said.model_copy(update={"profiles": None})  # said, and null
    made = client.update_policy(found.id, said, version=if_version, dry_run=dry_run)
    if style.format in ("table", "wide"):
        what = "would be changed" if dry_run else "changed"
        before, after = (view.model_dump(mode="json", include=set(PolicyUpdate.model_fields)) for view in (found, made))
        told = changed_fields(before, after)
        click.echo(
            f"policy {made.pool}/{made.subject} " + (f"{what}: {told}" if told else "is so already: nothing to change")
        )
    else:
        render.print_one(made, [], style, name="id")


@policy.command("detach")
@click.argument("policy")
@click.argument("subject", required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def detach(client: Client, policy: str, subject: str | None, *, yes: bool) -> None:
    """Take a policy away. What runs through it goes on; requests left without any are rejected.

    POLICY: its id or a unique prefix, POOL/SUBJECT, or POOL with SUBJECT after it.
    """
    found = _find(client, policy, subject)
    confirm(f"Detach {found.subject} from pool {found.pool} ({found.active} running, {found.queued} queued)?", yes=yes)
    client.detach_policy(found.id)
    note(f"policy {found.pool}/{found.subject} detached")


@policy.command("test")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--rules", multiple=True, metavar="PATH", help="Pools and policies, as for 'fairpool apply'; repeatable.")
@click.pass_context
def test(ctx: click.Context, files: tuple[str, ...], rules: tuple[str, ...]) -> None:
    """Run scenario files against the rules. Exits 0 when all hold, 1 when one does not, 2 for a wrong file."""
    from fairpool.cli.serverside import load

    outcome = load("fairpool.admin.policy_test", "run")(list(files), list(rules))
    ctx.exit(int(outcome))


def _find(client: Client, policy: str, subject: str | None) -> PolicyView:
    """A policy by id, unique id prefix, POOL/SUBJECT, or POOL and SUBJECT."""
    if subject is None:
        policy, slash, subject = policy.partition("/")
        if not slash:
            return client.policy(policy)
    pool = policy
    found = client.policies(pool=pool, subject=subject)
    if not found:
        raise click.exceptions.Exit(_missing(client, pool, subject))
    return found[0]


def _missing(client: Client, pool: str, subject: str) -> int:
    from fairpool.wire.problems import Exit

    known = ", ".join(policy.subject for policy in client.policies(pool=pool)) or "none"
    note(f"fairpool: pool {pool!r} has no policy for {subject!r}; it has: {known}")
    return int(Exit.NOT_FOUND)


def _said(rights: dict[str, Any], *, no_also: bool = False, no_profiles: bool = False) -> dict[str, Any]:
    said = dict(rights)
    for name in ("reserved", "limit"):
        if said[name] is not None:
            said[name] = data(str(said[name]), option=f"--{name}")
    if said["schedule"] is not None:
        said["schedule"] = listed(str(said["schedule"]), option="--schedule")
    said["also"] = replaced(said["also"], none=no_also, option="--also", no="--no-also")
    said["profiles"] = replaced(said["profiles"], none=no_profiles, option="--profile", no="--no-profiles")
    return said


def _schedule(found: PolicyView) -> list[tuple[str, object]]:
    """The windows, one a line, and what is in force."""
    if found.now is None:
        return []
    told = [f"{window.start} for {render.duration(window.duration_s)}, {window.timezone}" for window in found.schedule]
    now = "no window is open" if found.now.window is None else f"window {found.now.window + 1} is open"
    reserved, limit = render.amounts(found.now.reserved), render.amounts(found.now.limit)
    numbers = [f"priority {found.now.priority}", reserved and f"{reserved} reserved", limit and f"limit {limit}"]
    return [
        ("Schedule", "\n".join(told)),
        ("Now", f"{now}: {', '.join(each for each in numbers if each)}"),
        ("Next change", found.next_change_at),
    ]


def _told(made: PolicyView, what: str, style: Style) -> None:
    if style.format in ("table", "wide"):
        reserved = f", {render.amounts(made.reserved)} reserved" if made.reserved else ""
        limit = f", limit {render.amounts(made.limit)}" if made.limit else ""
        click.echo(f"policy {made.pool}/{made.subject} {what}: priority {made.priority}{reserved}{limit}")
    else:
        render.print_one(made, [], style, name="id")
