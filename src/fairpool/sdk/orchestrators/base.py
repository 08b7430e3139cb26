"""The base class of orchestrators and step operators: how to run one step somewhere.

To write one, derive from `Orchestrator` and give it `launch`, which starts `Launch.command` somewhere and returns a
`Job` with three methods. Everything else (waiting for resources, retries, preemption, results) is done by the driver,
which asks the job for its exit code every `poll_interval_s` seconds, or at once when the job has a `fileno`.
Then say where it is, ``fairpool component create NAME --flavor my_package.my_module:MyOrchestrator``, and put it into
a stack; or pass ``stack=Stack(orchestrator=MyOrchestrator("NAME"))``. ``examples/custom_orchestrator.py`` is one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from fairpool.sdk.settings import ResourceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What an attempt was granted. pool: None where no policy governs the work (S15).

    devices: per node ("" in a pool without nodes) the indices of the GPUs, counted from 0.
    """

    request_id: str
    pool: str | None = None
    policy: str | None = None
    devices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def governed(self) -> bool:
        """Whether a policy governs the work."""
        return self.pool is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One attempt of a step, ready to be started.

    command: the arguments to execute; it needs the same Python packages as the driver and access to the artifact store.
    environment: variables to set on top of the surroundings; they name exactly the granted devices, and hold what the
    vault of the team gives, secrets among them.
    log: where the output of the process is to be kept. settings: what the step asked for.
    """

    run_id: str
    run_name: str
    step_id: str
    step_name: str
    attempt: int
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    cwd: str
    log: Path
    settings: ResourceSettings
    grant: Grant


class Job(ABC):
    """One attempt that was started."""

    @abstractmethod
    def exit_code(self) -> int | None:
        """None while it runs; then its exit code, negative for the number of a signal. Must not block."""

    @abstractmethod
    def stop(self, reason: str, grace_s: float) -> None:
        """Ask it to end within `grace_s` seconds (SIGTERM or better). Must not wait for it."""

    @abstractmethod
    def kill(self) -> None:
        """End it now, with everything that it has started. Must not wait for it; `exit_code` tells when it is over."""

    def fileno(self) -> int | None:
        """A file descriptor that becomes readable when it ends, or None to be polled."""
        return None

    def close(self) -> None:
        """Let go of what the job object itself holds; called once, after the end."""
        return


class Orchestrator(ABC):
    """Runs the steps of a pipeline somewhere; registered as a component, it is a subject of policies.

    name: the component's name; policies speak of it as ``component:<name>``.
    config: what the component was registered with.
    """

    poll_interval_s: ClassVar[float] = 0.5
    """How often jobs without a `fileno` are asked for their exit code."""

    def __init__(self, name: str, config: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.config = dict(config or {})

    @property
    def subject(self) -> str:
        """How policies speak of it."""
        return f"component:{self.name}"

    @property
    def max_ungoverned(self) -> int | None:
        """How many steps that no policy governs run at once; None: as many as there are."""
        return None

    @abstractmethod
    def launch(self, launch: Launch) -> Job:
        """Start one attempt and return at once. Whatever it raises fails the attempt."""

    def close(self) -> None:
        """Let go of what it holds; called when the driver ends."""
        return
