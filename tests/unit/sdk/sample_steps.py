"""Steps that tests run: importable, as the steps of a project are."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

from fairpool.sdk.context import get_step_context
from fairpool.sdk.retry import StepRetryConfig
from fairpool.sdk.settings import ResourceSettings
from fairpool.sdk.steps import step


def idle() -> None:
    """What a step does in a round in which it has nothing to do."""
    threading.Event().wait(0.01)


def gpus(count: float) -> dict[str, Any]:
    return {"resources": ResourceSettings(gpu_count=count)}


class OutOfData(Exception):
    """An error of a project's own."""

    def __init__(self, left: int) -> None:
        super().__init__(left)
        self.left = left


class Stubborn(Exception):
    """Cannot be read back: its constructor wants two arguments, and pickle gives it one."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


@step
def add(left: int, right: int = 1) -> int:
    return left + right


@step
def process_id() -> int:
    return os.getpid()


@step
def visible_devices() -> dict[str, str | None]:
    names = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
    return {name: os.environ.get(name) for name in names}


@step
def fail(kind: str) -> None:
    if kind == "own":
        raise OutOfData(3)
    if kind == "stubborn":
        raise Stubborn("a", "b")
    if kind == "exit":
        sys.exit(7)
    if kind == "killed":
        os.kill(os.getpid(), 9)
    raise ValueError(kind)


@step
def lock() -> Any:
    return threading.Lock()


@step
def wait_for(path: str) -> str:
    """Ends when the file is there."""
    while not Path(path).exists():
        idle()
    return Path(path).read_text()


@step(retry=StepRetryConfig(max_retries=2))
def fails_before_attempt(attempt: int) -> int:
    if get_step_context().attempt < attempt:
        raise RuntimeError("not yet")
    return get_step_context().attempt


@step(settings=gpus(1), retry=StepRetryConfig(max_retries=3))
def train(marks: str, epochs: int) -> list[tuple[int, int]]:
    """Saves after every epoch; goes on from there. In its first attempt it waits to be told to end after two."""
    context = get_step_context()
    history: list[tuple[int, int]] = context.load_checkpoint([])
    while len(history) < epochs:
        if context.attempt == 1 and len(history) == 2:
            Path(marks, "at-two").touch()
            while not context.aborting:
                idle()
        context.raise_if_aborting()
        history.append((context.attempt, len(history)))
        context.save_checkpoint(history)
    return history


@step(settings=gpus(1))
def leaves_before_its_callback(marks: str) -> None:
    """Notices by itself that it must end, and is gone before its callback has saved."""
    context, gone = get_step_context(), threading.Event()

    @context.on_abort
    def save() -> None:
        assert gone.wait(30)
        for _ in range(20):  # until the step's own code has had every chance to end the process
            idle()
        Path(marks, "saved").touch()

    Path(marks, "started").touch()
    try:
        while True:
            context.raise_if_aborting()
            idle()
    finally:
        gone.set()


@step(settings=gpus(1))
def saves_when_told(marks: str) -> None:
    """Never asks whether it must end; only its callback saves."""
    context = get_step_context()

    @context.on_abort
    def save() -> None:
        Path(marks, "saved").write_text(context.abort_reason)

    Path(marks, "started").touch()
    try:
        while True:
            idle()
    finally:
        Path(marks, "finally").touch()


@step(settings=gpus(1))
def ignores_everything(marks: str) -> None:
    context = get_step_context()
    Path(marks, "started").write_text(str(os.getpid()))
    while context.aborting in (True, False):
        idle()


@step
def who_am_i() -> tuple[str, str, int, str | None, tuple[str, ...]]:
    context = get_step_context()
    return context.run_name, context.step_name, context.attempt, context.pool, context.devices
