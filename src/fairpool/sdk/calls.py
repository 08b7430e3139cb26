"""One call of a step in a run, as the driver carries it out."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairpool.sdk.artifacts import ArtifactStore
from fairpool.sdk.futures import StepFuture
from fairpool.sdk.orchestrators.base import Orchestrator
from fairpool.sdk.retry import StepRetryConfig
from fairpool.sdk.settings import ResourceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlace:
    """What the steps of one run have in common. logs: the folder for their output."""

    run_id: str
    run_name: str
    store: ArtifactStore
    logs: Path
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCall:
    """What to run and how.

    index: its place among the steps of that name in the run. function: where to import it from, or None where
    `function_data` names the stored function. inputs, output: names in the store. references: futures in the inputs.
    """

    run: RunPlace
    name: str
    index: int
    function: dict[str, str] | None
    function_data: str
    inputs: str
    settings: ResourceSettings
    retry: StepRetryConfig
    orchestrator: Orchestrator
    references: tuple[StepFuture[Any], ...] = field(default=())

    @property
    def label(self) -> str:
        """The name, and which one of that name it is if there are several: ``train``, ``train-1``."""
        return f"{self.name}-{self.index}" if self.index else self.name

    @property
    def numbered(self) -> str:
        """The name and the number, which no other step of the run has: ``train-0``."""
        return f"{self.name}-{self.index}"

    @property
    def folder(self) -> str:
        """Where its objects lie in the store."""
        return f"{self.run.run_id}/{self.numbered}"

    @property
    def output(self) -> str:
        """Where its result will lie."""
        return f"{self.folder}/output"

    @property
    def checkpoint(self) -> str:
        """Where its checkpoint lies; the same for all attempts."""
        return f"{self.folder}/checkpoint"
