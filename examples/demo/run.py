"""`make demo`: two teams share a pool of GPUs, with real training.

Research borrows what production is not using. Production comes back and gets its reservation within the grace period.
The interrupted trainings save a checkpoint, wait in their old place, and go on from their epoch. All of it is checked
against the server's records at the end: the exit code is 1 if any part did not happen.
"""

from __future__ import annotations

import argparse
import io
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import picture
import verdict
from installation import FAIRPOOL, DemoFailed, Installation
from records import Records, Work, devices
from rich.console import Console, RenderableType
from rich.live import Live

from fairpool.client import connecting
from fairpool.client.errors import ClientError
from fairpool.wire.values import RequestStatus

GRACE_S = 10
PRODUCTION_COMES_AT_EPOCH = 6
LASTS_AT_MOST_S = 240
LOOK_EVERY_S = 0.3
WHAT_IS_REAL = """\
Real training of real models on scikit-learn's digits. The GPUs are pretend:
four numbers that are handed out and taken back, so that it runs on any machine.
Everything else is the real thing.
"""


class Demo:
    """The story, told while it happens."""

    def __init__(self, console: Console, pictured: Path | None) -> None:
        self.console = console
        self.pictured = pictured
        self.snapshot: RenderableType | None = None
        self.began_at = time.monotonic()
        self.told: list[str] = []
        self.states: dict[str, RequestStatus] = {}
        self.display: Live | None = None

    def say(self, line: str) -> None:
        """A line of the story: below the live view, or a line of its own where there is none."""
        stamped = line if line.startswith("$") else f"{time.monotonic() - self.began_at:5.1f} s  {line}"
        self.told.append(stamped)
        if self.display is None:
            self.console.print(stamped, highlight=False, markup=False, soft_wrap=True)

    def play(self, here: Installation) -> bool:
        """All of it; whether every part happened."""
        _set_up(here)
        client = connecting.connect(start=False)
        records = Records(client, here.folder / "notebook.out")

        def start(name: str, stack: str, script: str) -> None:
            shown = f"FAIRPOOL_STACK={stack} python {script}"
            here.start(name, sys.executable, script, shown=shown, stack=stack)

        with self._watching():
            start("research", "research", "research.py")
            self._until(here, records, lambda: _research_borrows(records.works), "research to borrow two GPUs")
            self.say("a notebook of a team without any reservation comes too")
            words = ("run", "--gpus", "1", "--team", "notebooks", "--name", "notebook", "--", "python", "notebook.py")
            real = [*words[:-2], sys.executable, words[-1]]
            here.start("notebook", str(FAIRPOOL), *real, shown=f"fairpool {' '.join(words)}")
            self._until(here, records, lambda: _trains_well(records.works), "the trainings to get going")
            self.say("production comes back for the two GPUs that are reserved for it")
            start("production", "prod", "production.py")
            self._until(here, records, lambda: not here.running(), "everything to finish")
        client_view = picture.timeline(records, self.console.width)
        self.console.print()
        self.console.print(client_view)
        self.console.print()
        happened = verdict.give(records, here, self.console, grace_s=GRACE_S)
        self._keep_picture(records)
        return happened

    def _watching(self) -> Live | _Nothing:
        if not self.console.is_terminal:
            return _Nothing()
        self.display = Live(console=self.console, auto_refresh=False, transient=True, vertical_overflow="crop")
        return self.display

    def _until(self, here: Installation, records: Records, happened: Callable[[], bool], what: str) -> None:
        """Show what goes on until something has happened."""
        while True:
            over = not here.running()
            records.look(datetime.now(UTC))
            self._tell_changes(records)
            policies = records.client.policies()
            room = self.console.height - 11 - len(records.works)
            frame = picture.live(records, policies, self.told[-max(3, min(room, 9)) :], min(self.console.width, 120))
            if self.display is not None:
                self.display.update(frame, refresh=True)
            self._consider_picture(records, frame)
            if happened():
                return
            if over or time.monotonic() - self.began_at > LASTS_AT_MOST_S:
                raise DemoFailed(f"waited in vain for {what}")
            time.sleep(LOOK_EVERY_S)

    def _tell_changes(self, records: Records) -> None:
        for work in records.works:
            request = work.now
            if self.states.get(request.id) is not request.status:
                self.states[request.id] = request.status
                self.say(_sentence(records, work))

    def _consider_picture(self, records: Records, frame: RenderableType) -> None:
        back = [work for work in records.works if len(work.requests) > 1 and work.now.status is RequestStatus.QUEUED]
        holds = [work for work in records.works if len(devices(work.now)) > 1 and work.epoch > 8]
        if self.snapshot is None and back and holds:
            self.snapshot = frame

    def _keep_picture(self, records: Records) -> None:
        if self.pictured is None or self.snapshot is None:
            return
        console = Console(record=True, width=100, height=60, file=io.StringIO(), force_terminal=True)
        console.print(self.snapshot)
        console.print()
        console.print(picture.timeline(records, 100))
        svg = console.export_svg(title="make demo")
        self.pictured.write_text(picture.self_contained(svg), encoding="utf-8")


class _Nothing:
    """Where there is no terminal there is no live view."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _set_up(here: Installation) -> None:
    here.command("pool", "create", "gpus", "--capacity", "gpu=4")
    here.command("component", "create", "research-box")
    here.command("component", "create", "prod-cluster")
    here.command("stack", "create", "research", "--orchestrator", "research-box")
    here.command("stack", "create", "prod", "--orchestrator", "prod-cluster")
    here.command("policy", "attach", "gpus", "prod-cluster", "--priority", "10", "--reserved", "gpu=2")
    words = ("--reserved", "gpu=2", "--limit", "gpu=4", "--grace", str(GRACE_S))
    here.command("policy", "attach", "gpus", "research-box", *words)
    here.command("policy", "attach", "gpus", "team:notebooks", "--limit", "gpu=1")


def _research_borrows(works: list[Work]) -> bool:
    held = [work.now.allocation for work in works if work.now.status is RequestStatus.ALLOCATED]
    return sum(allocation is not None and allocation.in_share is False for allocation in held) >= 2


def _trains_well(works: list[Work]) -> bool:
    return sum(work.epoch >= PRODUCTION_COMES_AT_EPOCH for work in works) >= 4


def _sentence(records: Records, work: Work) -> str:
    request, gpus = work.now, ", ".join(map(str, devices(work.now)))
    who = f"{work.name} ({work.subject})"
    if request.status is RequestStatus.QUEUED:
        again = "waits again, in its old place" if request.retry_of else "waits"
        return f"{who} {again}"
    if request.status is RequestStatus.ALLOCATED:
        borrows = request.allocation is not None and request.allocation.in_share is False
        return f"{who} gets GPU {gpus}{', borrowed' if borrows else ', in its share'}"
    if request.status is RequestStatus.PREEMPTING:
        return f"{who} is told to let go of GPU {gpus} for {records.cause(request)}"
    return f"{who} {request.status}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Two teams share a pool of GPUs, with real training.")
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="keep a picture of it")
    pictured = parser.parse_args().picture
    console = Console()
    demo = Demo(console, pictured)
    console.print(WHAT_IS_REAL)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    here = Installation(demo.say)
    try:
        return 0 if demo.play(here) else 1
    except KeyboardInterrupt:
        console.print("\nInterrupted: ending the trainings and the server.")
        return 130
    except (DemoFailed, ClientError) as error:
        console.print(f"\nThe demo did not work: {error}", style="red", markup=False)
        return 1
    finally:
        here.close()


if __name__ == "__main__":
    sys.exit(main())
