"""``fairpool run``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from fairpool.cli.options import Duration, body, connected, pairs

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.requests import RequestCreate

_MEMORY = re.compile(r"(\d+)(KB|KiB|MB|MiB|GB|GiB|TB|TiB|PB|PiB)")


@click.command("run", context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.option("--gpus", metavar="N", help="Whole GPUs, or a fraction of one such as 0.5.")
@click.option("--cpus", metavar="N", help="CPU cores.")
@click.option("--memory", metavar="SIZE", help="Such as 8GB or 16GiB.")
@click.option("--key", "keys", multiple=True, metavar="KEY=N", help="Any other resource key; repeatable.")
@click.option("--nodes", "node_count", type=click.IntRange(1), help="So many equal parts, each on one node.")
@click.option("--pool", help="Only this pool.")
@click.option("--profile", help="A profile, instead of amounts.")
@click.option("--team", "teams", multiple=True, help="Of your teams only this (FAIRPOOL_TEAM); repeatable.")
@click.option("--as", "subjects", multiple=True, metavar="SUBJECT", help="On behalf of user:NAME or another subject.")
@click.option("--component", help="The component that it runs on (the active stack's orchestrator).")
@click.option("--priority", type=int, help="Among the requests of the same policy (0).")
@click.option(
    "--preemptible/--non-preemptible",
    default=None,
    help="Whether it may be interrupted (as its profile says; yes). Non-preemptible work waits for its reservation.",
)
@click.option("--max-runtime", "max_runtime_s", type=Duration(), help="Stopped after that; short work starts sooner.")
@click.option("--wait-timeout", "wait_timeout_s", type=Duration(), help="Give up waiting after that (exit 7).")
@click.option("--lease", "lease_s", type=Duration(), hidden=True)
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label of the request; repeatable.")
@click.option("--name", help="What to call it (the program's name).")
@click.option("--on-abort", metavar="COMMAND", help="Run when it is preempted, before SIGTERM: save a checkpoint.")
@click.option("--requeue", is_flag=True, help="When preempted, wait in the old place and start again.")
@click.option("--check", is_flag=True, help="Only say whether it would start now, at about when, or never, and why.")
@click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@connected
@click.pass_context
def run(
    ctx: click.Context,
    /,
    client: Client,
    command: tuple[str, ...],
    name: str | None,
    on_abort: str | None,
    *,
    check: bool,
    requeue: bool,
    quiet: bool,
    **asked: object,
) -> None:
    """Run COMMAND with resources: wait until they are granted, run with only the granted GPUs visible, let go.

    Exits with the command's own code; 6 where it can never run, 7 where it waited too long.
    """
    from fairpool.cli.running.session import Order, Session, name_of, shown
    from fairpool.cli.running.voice import Voice
    from fairpool.sdk import granting
    from fairpool.wire.requests import RequestCreate

    _must_exist(command[0])
    _must_be_there(on_abort)
    stack, component = _where(client, asked["component"])
    around = granting.subjects_around(*_texts(asked["teams"]))
    subjects = [f"component:{component}", *around, *_texts(asked["subjects"])]
    profile = asked["profile"]
    request: RequestCreate = body(
        RequestCreate,
        demand=_demand(asked) if profile is None or _says_amounts(asked) else None,
        node_count=asked["node_count"],
        subjects=subjects,
        pool=asked["pool"],
        profile=profile,
        priority=asked["priority"],
        preemptible=asked["preemptible"],
        max_runtime_s=asked["max_runtime_s"],
        wait_timeout_s=asked["wait_timeout_s"],
        lease_s=asked["lease_s"] or granting.lease_s(),
        labels={"command": shown(command)[:200], **pairs(_texts(asked["labels"]), option="--label")},
    )
    if check:
        ctx.exit(_check(client, request))
    order = Order(
        command=command,
        request=request,
        name=(name or name_of(command))[:200],
        component=component,
        stack=stack,
        on_abort=on_abort or "",
        requeue=requeue,
    )
    ctx.exit(Session(client, order, Voice(quiet=quiet)).run())


def _check(client: Client, request: RequestCreate) -> int:
    """Tell what would become of it, and submit nothing."""
    from fairpool.cli import estimates, render
    from fairpool.wire.problems import Exit
    from fairpool.wire.values import Verdict

    found = client.check(request)
    told = found.explanation
    match found.verdict:
        case Verdict.NOW:
            pool = told.allocation.pool if told.allocation is not None else ""
            click.echo(f"now: it would start at once{f' in pool {pool}' if pool else ''}")
        case Verdict.LATER:
            click.echo(f"later: {told.summary}")
            if told.estimate is not None:
                click.echo(estimates.dated(told.estimate, render.moment))
        case Verdict.NEVER:
            click.echo(f"never: {told.summary}")
            return Exit.REJECTED
    return Exit.DONE


def _must_exist(program: str) -> None:
    """Nobody should wait in a queue for a typing error; as a shell would say it."""
    import os
    import shutil

    if shutil.which(program) is None:
        found = "/" in program and os.path.exists(program)  # noqa: PTH110 (a text that may be no path)
        click.echo(f"fairpool: {program}: {'not executable' if found else 'command not found'}", err=True)
        raise click.exceptions.Exit(126 if found else 127)


def _must_be_there(on_abort: str | None) -> None:
    """A typing error here would show only when the command is preempted, and its work is lost."""
    import shlex
    import shutil

    try:
        words = shlex.split(on_abort or "")
    except ValueError as error:
        raise click.BadParameter(f"{on_abort!r}: {str(error).lower()}", param_hint="--on-abort") from None
    if words and "/" in words[0] and shutil.which(words[0]) is None:
        raise click.BadParameter(f"{words[0]} is no program; possible: a command of the shell", param_hint="--on-abort")


def _where(client: Client, component: object) -> tuple[str | None, str]:
    """The stack and the component that the command runs on: what was said, or the orchestrator of the stack."""
    from fairpool.client.settings import resolve

    settings = resolve()
    chosen = component or (settings["component"].value if "component" in settings else None)
    if chosen:
        return None, str(chosen).removeprefix("component:")
    if "stack" in settings:
        found = client.stack(settings["stack"].value)
        return found.name, found.orchestrator
    active = next((stack for stack in client.stacks() if stack.active), None)
    return (active.name, active.orchestrator) if active is not None else (None, "local")


def _demand(asked: dict[str, object]) -> dict[str, object]:
    demand: dict[str, object] = dict(pairs(_texts(asked["keys"]), option="--key"))
    if asked["gpus"] is not None:
        demand["gpu"] = asked["gpus"]
    if asked["cpus"] is not None:
        demand["mcpu"] = _mcpu(str(asked["cpus"]))
    if asked["memory"] is not None:
        demand["memory_mb"] = _memory_mb(str(asked["memory"]))
    return {key: value for key, value in demand.items() if str(value) != "0"}


def _says_amounts(asked: dict[str, object]) -> bool:
    return any(asked[name] for name in ("gpus", "cpus", "memory", "keys"))


def _mcpu(text: str) -> int:
    from decimal import ROUND_CEILING, Decimal, InvalidOperation

    try:
        cores = Decimal(text)
        if not cores.is_finite() or cores < 0:
            raise InvalidOperation
    except InvalidOperation:
        raise click.BadParameter(f"{text!r} is no number of cores; possible: 4 or 0.5", param_hint="--cpus") from None
    return int((cores * 1000).to_integral_value(ROUND_CEILING))


def _memory_mb(text: str) -> int:
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is no amount of memory; possible: 8GB, 512MiB", param_hint="--memory")
    size, unit = int(match[1]), match[2]
    base = 1024 if "i" in unit else 1000
    in_bytes = size * base ** ("KMGTP".index(unit[0]) + 1)
    return int(-(-in_bytes // 1_000_000))  # S1: rounded up to MB


def _texts(value: object) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
