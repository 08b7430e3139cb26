"""What the server has on record: every piece of work, what it held and when, and why it had to let go.

Nothing here knows the story. Attempts of a step belong together because their requests say so (`retry_of`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from fairpool.client.api import Client
from fairpool.wire.events import HistoryEntry
from fairpool.wire.requests import RequestView
from fairpool.wire.runs import StepView
from fairpool.wire.values import RequestStatus

LOG_LINE = re.compile(r"epoch (\d+)/(\d+) accuracy ([\d.]+)")


@dataclass
class Work:
    """A step or a command with the requests that it made, the oldest first."""

    name: str
    requests: list[RequestView]
    epoch: int = 0
    epochs: int = 0
    accuracy: float = 0.0

    @property
    def now(self) -> RequestView:
        return self.requests[-1]

    @property
    def subject(self) -> str:
        held = next((request.allocation for request in reversed(self.requests) if request.allocation), None)
        named = (held.subject if held else None) or self.now.subjects[-1]
        return named.removeprefix("component:")


@dataclass
class Records:
    """Looks at the server again and again.

    shares: per request, when it was seen inside its reservation and when beyond it. Which of the two a request is in
    changes with what its neighbours do; a request that has ended no longer says it.
    """

    client: Client
    notebook_log: Path
    works: list[Work] = field(default_factory=list)
    shares: dict[str, list[tuple[datetime, bool]]] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)

    def look(self, at: datetime) -> None:
        """Ask the server."""
        requests = sorted(self.client.requests(view="all"), key=lambda request: (request.queued_at, request.created_at))
        steps = {step.id: step for run in self.client.runs() for step in self.client.run(run.id).steps}
        works: dict[str, Work] = {}
        for request in requests:
            name = request.name.split("/")[-1]
            works.setdefault(request.step or request.id, Work(name, [])).requests.append(request)
            held = request.allocation
            if held is not None and held.in_share is not None and not request.status.is_final:
                self.shares.setdefault(request.id, []).append((at, held.in_share))
        for key, work in works.items():
            self._progress(work, steps.get(key))
        self.works = list(works.values())
        waiting = [work.now for work in self.works if work.now.status is RequestStatus.QUEUED]
        self.summaries = {request.id: self.client.explain(request.id).summary for request in waiting}

    def history(self, request: RequestView) -> list[HistoryEntry]:
        """All that happened to a request, the oldest first."""
        return sorted(self.client.history_of("request", request.id), key=lambda entry: entry.id)

    def log(self, work: Work) -> str:
        """What a step has written, in all of its attempts: each has a log of its own, `NAME.ATTEMPT.log`."""
        last = Path(self.client.step(work.now.step or "").log or "")
        name, _, _ = last.name.removesuffix(".log").rpartition(".")
        return "".join(_read(last.with_name(f"{name}.{attempt}.log")) for attempt in range(1, len(work.requests) + 1))

    def cause(self, evicted: RequestView) -> str:
        """For whom a request was evicted."""
        of = evicted.eviction.cause if evicted.eviction is not None else None
        found = (work for work in self.works if any(request.id == of for request in work.requests))
        return next((f"{work.name} ({work.subject})" for work in found), "nobody")

    def borrowed(self, request: RequestView) -> bool:
        """Whether the server ever said that the request used more than its policy's reservation."""
        return any(not inside for _, inside in self.shares.get(request.id, []))

    def _progress(self, work: Work, step: StepView | None) -> None:
        lines = LOG_LINE.findall(_read(self._path(step)))
        if lines:
            epoch, epochs, accuracy = lines[-1]
            work.epoch, work.epochs, work.accuracy = int(epoch), int(epochs), float(accuracy)

    def _path(self, step: StepView | None) -> Path:
        return Path(step.log) if step is not None and step.log else self.notebook_log


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


def devices(request: RequestView) -> list[int]:
    """The GPUs of a grant."""
    parts = request.allocation.parts if request.allocation else []
    return [device.index for part in parts for device in part.devices]
