"""``fairpool run``."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import click

from fairpool.cli.options import body, connected, pairs

if TYPE_CHECKING:
    from fairpool.client.api import Client

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")
_MEMORY = re.compile(r"(\d+)(KB|KiB|MB|MiB|GB|GiB|TB|TiB|PB|PiB)")


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """``90``, ``90s``, ``30m``, ``2h``, ``1d12h``: seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Seconds."""
        match = _DURATION.fullmatch(str(value))
        if not value or match is None:
            self.fail(f"{value!r} is no duration; possible: 90, 30m, 2h, 1d12h", param, ctx)
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


@click.command("run", context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.option("--gpus", metavar="N", help="Whole GPUs, or a fraction of one such as 0.5.")
@click.option("--cpus", metavar="N", help="CPU cores.")
@click.option("--memory", metavar="SIZE", help="Such as 8GB or 16GiB.")
@click.option("--key", "keys", multiple=True, metavar="KEY=N", help="Any other resource key; repeatable.")
@click.option("--nodes", "node_count", type=click.IntRange(1), help="So many equal parts, each on one node.")
@click.option("--pool", help="Only this pool.")
@click.option("--profile", help="A profile, instead of amounts.")
@click.option("--team", "teams", multiple=True, help="On behalf of a team; repeatable.")
@click.option("--component", help="The component that it runs on (local).")
@click.option("--priority", type=int, help="Among the requests of the same policy (0).")
@click.option("--non-preemptible", is_flag=True, help="Must not be interrupted: waits for its reservation.")
@click.option("--max-runtime", "max_runtime_s", type=Duration(), help="Stopped after that; short work starts sooner.")
@click.option("--wait-timeout", "wait_timeout_s", type=Duration(), help="Give up waiting after that (exit 7).")
@click.option("--lease", "lease_s", type=Duration(), hidden=True)
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE")
@click.option("--name", help="What to call it (the program's name).")
@click.option("--on-abort", metavar="COMMAND", help="Run when it is preempted, before SIGTERM: save a checkpoint.")
@click.option("--requeue", is_flag=True, help="When preempted, wait in the old place and start again.")
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
    requeue: bool,
    quiet: bool,
    **asked: object,
) -> None:
    """Run COMMAND with resources: wait until they are granted, run with only the granted GPUs visible, let go.

    Exits with the command's own code; 6 where it can never run, 7 where it waited too long.
    """
    from fairpool.cli.running.session import Order, Session, name_of, shown
    from fairpool.wire.requests import RequestCreate

    subjects = [f"component:{asked['component'] or 'local'}", *(f"team:{team}" for team in _texts(asked["teams"]))]
    profile = asked["profile"]
    request: RequestCreate = body(
        RequestCreate,
        demand=_demand(asked) if profile is None or _says_amounts(asked) else None,
        node_count=asked["node_count"],
        subjects=subjects,
        pool=asked["pool"],
        profile=profile,
        priority=asked["priority"],
        preemptible=False if asked["non_preemptible"] else None,
        max_runtime_s=asked["max_runtime_s"],
        wait_timeout_s=asked["wait_timeout_s"],
        lease_s=asked["lease_s"],
        labels={**pairs(_texts(asked["labels"]), option="--label"), "command": shown(command)[:200]},
    )
    order = Order(
        command=command,
        request=request,
        name=(name or name_of(command))[:200],
        on_abort=on_abort or "",
        requeue=requeue,
        max_runtime_s=request.max_runtime_s,
    )
    say = _Voice(quiet=quiet)
    ctx.exit(Session(client, order, say.tell, say.live).run())


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


class _Voice:
    """Says things on stderr; on a terminal the waiting line stays one line."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._open = False

    def tell(self, text: str) -> None:
        """A line."""
        if not self._quiet:
            start = "\r\033[K" if self._open else ""
            self._open = False
            click.echo(f"{start}fairpool: {text}", err=True)

    def live(self, text: str) -> None:
        """The same line again, on a terminal only."""
        if self._terminal and not self._quiet:
            columns = _width()
            click.echo(f"\r\033[Kfairpool: {text}"[: columns + 4], err=True, nl=False)
            self._open = True


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns
