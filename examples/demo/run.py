"""Two teams share a pool of GPUs: `make demo`.

Research borrows what production is not using; production comes back and gets its reservation; a research step saves a
checkpoint, waits, and goes on from its epoch. The training is real; the GPUs are pretended: four devices that exist
only as numbers, so that this runs on any machine. Everything told at the end is read back from the server.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live

from fairpool.cli.topview import frame, gather
from fairpool.client.api import Client
from fairpool.client.connecting import connect
from fairpool.wire.requests import RequestView
from fairpool.wire.values import RequestStatus

HERE = Path(__file__).parent
PRODUCTION_COMES_BACK_S = 5.0
TIMELINE_WIDTH = 60
GIVE_UP_S = 110.0

console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


class StoryBroken(Exception):
    """Something that the demo promises did not happen."""


def main() -> int:
    """Run the demo; 0 when the whole story happened."""
    folder = Path(tempfile.mkdtemp(prefix="fairpool-demo-"))
    os.environ["FAIRPOOL_DATA_DIR"] = str(folder / "data")
    for name in ("FAIRPOOL_SERVER", "FAIRPOOL_TOKEN", "FAIRPOOL_STACK"):
        os.environ.pop(name, None)
    drivers: list[subprocess.Popen[bytes]] = []
    try:
        set_up()
        client = connect()
        drivers = watch(client, folder)
        tell(client, folder)
    except KeyboardInterrupt:
        console.print("\nstopped")
        return 130
    except StoryBroken as error:
        console.print(f"[red]The story did not go as promised: {error}[/red]")
        return 1
    finally:
        for driver in drivers:
            driver.terminate()
            driver.wait()
        cli("server", "stop", quiet=True)
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def cli(*words: str, quiet: bool = False) -> None:
    """Run a command of Fairpool, showing it as one would type it."""
    if not quiet:
        shown = " ".join(f"'{word}'" if set(word) & set('{}" ') else word for word in words)
        console.print(f"[dim]$[/dim] fairpool {shown}", markup=True)
    program = [sys.executable, "-m", "fairpool.cli.main", *words]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode and not quiet:
        raise StoryBroken(f"fairpool {words[0]} {words[1]}: {done.stderr.strip()}")


def set_up() -> None:
    """A pool, two places to run, two stacks, three policies."""
    console.rule("[bold]Two teams, one pool of four (pretended) GPUs")
    cli("pool", "create", "gpus", "--capacity", '{"gpu": 4}')
    cli("component", "create", "research-box")
    cli("component", "create", "prod-cluster")
    cli("stack", "create", "research", "--orchestrator", "research-box")
    cli("stack", "create", "production", "--orchestrator", "prod-cluster")
    cli("policy", "attach", "gpus", "research-box", "--reserved", '{"gpu": 2}', "--grace", "15")
    cli("policy", "attach", "gpus", "prod-cluster", "--priority", "10", "--reserved", '{"gpu": 2}')
    cli("policy", "attach", "gpus", "team:notebooks", "--limit", '{"gpu": 1}')


def watch(client: Client, folder: Path) -> list[subprocess.Popen[bytes]]:
    """Start research, then production; show what happens until both have ended."""
    console.rule("[bold]Research starts four trainings and borrows what production is not using")
    began = time.monotonic()
    drivers = [start("research", folder)]

    def go_on() -> bool:
        """Whether there is more to see; lets production come back when research has borrowed for a while."""
        if len(drivers) == 1 and borrows(client) and time.monotonic() - began > PRODUCTION_COMES_BACK_S:
            drivers.append(start("production", folder))
            say("[bold]Production comes back[/bold] for the two GPUs that are reserved for it")
        if time.monotonic() - began > GIVE_UP_S:
            raise StoryBroken(f"it took more than {GIVE_UP_S:g} s")
        if drivers[0].poll() is not None and len(drivers) == 1:
            raise StoryBroken(f"research ended before production came back: {log_of('research', folder)}")
        return any(driver.poll() is None for driver in drivers)

    say: Callable[[str], None]
    if console.is_terminal:
        with Live(frame(gather(client), console.width), console=console, auto_refresh=False) as live:
            say = live.console.rule
            while go_on():
                live.update(frame(gather(client), console.width), refresh=True)
                time.sleep(0.4)
    else:
        say = console.print
        seen: dict[str, str] = {}
        while go_on():
            for request in client.requests(view="all"):
                if seen.get(request.id) != request.status.value:
                    seen[request.id] = request.status.value
                    say(f"{time.monotonic() - began:5.1f}s  {request.name:<12} {request.status.value}")
            time.sleep(0.4)
    for driver, which in zip(drivers, ("research", "production"), strict=True):
        if driver.returncode:
            raise StoryBroken(f"{which} failed: {log_of(which, folder)}")
    return drivers


def start(which: str, folder: Path) -> subprocess.Popen[bytes]:
    """A team's program, as a process of its own."""
    with (folder / f"{which}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, str(HERE / "driver.py"), which, str(folder / f"{which}.json")],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=HERE,
        )


def log_of(which: str, folder: Path) -> str:
    """The end of what a team's program said."""
    return (folder / f"{which}.log").read_text("utf-8", "replace")[-2000:]


def borrows(client: Client) -> bool:
    """Whether somebody uses more than is reserved for it."""
    return any(pool.borrowed.get("gpu") for pool in client.pools())


# ---- what happened, read back from the server ------------------------------------------------------------------------


def tell(client: Client, folder: Path) -> None:
    """The timeline, the evictions, and the proof that training went on where it had stopped."""
    requests = sorted(client.requests(view="all"), key=lambda request: request.created_at)
    console.rule("[bold]Who held what, when")
    timeline(requests)
    console.rule("[bold]Who was evicted for whom")
    evicted = [request for request in requests if request.eviction is not None]
    by_id = {request.id: request for request in requests}
    for request in evicted:
        assert request.eviction is not None
        cause = by_id.get(request.eviction.cause or "")
        who = f"{cause.name} ({cause.allocation.subject})" if cause and cause.allocation else "nobody known"
        console.print(f"{request.name} had borrowed; it made way for {who}, because of {request.eviction.because}")
    if not any(request.eviction and request.eviction.because == "reclaim" for request in evicted):
        raise StoryBroken("nobody was evicted by reclaim")
    waited = [r for r in requests if r.allocation and r.allocation.subject == "component:prod-cluster"]
    if not waited or waited[0].allocation is None:
        raise StoryBroken("production never ran")
    seconds = (waited[0].allocation.granted_at - waited[0].created_at).total_seconds()
    console.print(f"production had its two GPUs {seconds:.1f} s after it asked (the grace period is 15 s)")
    if seconds > 15.5:
        raise StoryBroken("production waited longer than the grace period")
    resumed(folder, requests)


def timeline(requests: Sequence[RequestView]) -> None:
    """A bar per request: waiting, in its share or borrowing, letting go."""
    begin = min(request.created_at for request in requests).timestamp()
    end = max(request.ended_at.timestamp() for request in requests if request.ended_at)
    scale = TIMELINE_WIDTH / max(end - begin, 1)
    console.print("[dim]· waits   █ holds   ▒ held until it was evicted[/dim]")
    for request in requests:
        held = request.allocation
        asked = int((request.created_at.timestamp() - begin) * scale)
        granted = int((held.granted_at.timestamp() - begin) * scale) if held else TIMELINE_WIDTH
        ended = int((request.ended_at.timestamp() - begin) * scale) if request.ended_at else TIMELINE_WIDTH
        ended = max(ended, granted + 1)
        evicted = request.status is RequestStatus.PREEMPTED
        colour = "red" if evicted else "cyan" if "prod-cluster" in str(request.subjects) else "green"
        bar = " " * asked + "·" * (granted - asked) + f"[{colour}]{('▒' if evicted else '█') * (ended - granted)}[/]"
        devices = [str(device.index) for part in held.parts for device in part.devices] if held else []
        console.print(f"{request.name:<12} GPU {','.join(devices):<4} {bar}", overflow="ellipsis", no_wrap=True)
    console.print(f"{'':<21}0 s{f'{end - begin:.0f} s':>{TIMELINE_WIDTH - 3}}")


def resumed(folder: Path, requests: Sequence[RequestView]) -> None:
    """That an evicted step went on from the epoch after which it had saved, and that nothing was trained twice."""
    console.rule("[bold]The evicted training went on where it had stopped")
    trained = json.loads((folder / "research.json").read_text("utf-8"))
    again = [one for one in trained if one["resumed"]]
    for one in again:
        attempts = one["epochs"]
        first = attempts.count(attempts[0])
        console.print(
            f"width {one['width']}: epochs 1 to {first} in attempt {attempts[0]}, saved, waited, "
            f"epochs {first + 1} to {len(attempts)} in attempt {attempts[-1]}; accuracy {one['accuracy']:.3f}"
        )
        if one["resumed"] != one["aborted"] or one["resumed"][0] != first:
            raise StoryBroken(f"width {one['width']} resumed at {one['resumed']}, saved at {one['aborted']}")
    if not again:
        raise StoryBroken("no research step was resumed from a checkpoint")
    for one in trained:
        if one not in again:
            console.print(
                f"width {one['width']}: {len(one['epochs'])} epochs undisturbed; accuracy {one['accuracy']:.3f}"
            )
    if any(request.status not in (RequestStatus.RELEASED, RequestStatus.PREEMPTED) for request in requests):
        raise StoryBroken("something is still held, or failed")
    console.rule("[bold green]Both teams are done, and nothing was lost")


if __name__ == "__main__":
    sys.exit(main())
