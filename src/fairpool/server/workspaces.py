"""The workspaces that this process has open: each decides for itself, and shares the installation with the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from fairpool.app.ports import Reader
from fairpool.app.records import DEFAULT_WORKSPACE
from fairpool.app.scheduler_loop import SchedulerLoop
from fairpool.server.watching import Watch
from fairpool.server.webhooks.telling import Teller


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A workspace at run time.

    loop: decides; reader: what is committed. watch: wakes the calls that wait. teller: tells webhooks' receivers; None
    where nobody does.
    """

    name: str = DEFAULT_WORKSPACE
    loop: SchedulerLoop
    reader: Reader
    watch: Watch = field(default_factory=Watch)
    teller: Teller | None = None


class Workspaces:
    """Those that are open. default: the installation's own, which is open for as long as the process lives."""

    def __init__(self, default: Workspace) -> None:
        self.default = default
        self._open = {default.name: default}

    def __iter__(self) -> Iterator[Workspace]:
        return iter(tuple(self._open.values()))

    def __getitem__(self, name: str) -> Workspace:
        return self._open[name]

    @property
    def closing(self) -> bool:
        """Whether the process is about to end."""
        return self.default.watch.closing

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Say on which loop calls are answered."""
        for workspace in self:
            workspace.watch.attach(loop)

    def close(self) -> None:
        """Wake everybody who waits, for good: the process ends. On the loop's thread."""
        for workspace in self:
            workspace.watch.close()

    def hand_over(self) -> None:
        """Decide nothing any more, so that other servers can at once. Takes as long as a round does."""
        for workspace in self:
            workspace.loop.stop()
