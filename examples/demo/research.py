"""Research: how wide must a network be? Five trainings, each of which can be interrupted and goes on where it was.

The abort callback is what saves the checkpoint: it runs when the pool needs the GPU for somebody with a better right.
"""

from __future__ import annotations

import json
import os
import pickle
import threading
from typing import Any

from fairpool import ResourceSettings, StepRetryConfig, get_step_context, pipeline, step

EPOCHS = 40


@step(settings={"resources": ResourceSettings(gpu_count=1)}, retry=StepRetryConfig(max_retries=3))
def train(width: int) -> dict[str, Any]:
    import digits

    context = get_step_context()
    saved = context.load_checkpoint() or {"epoch": 0, "model": pickle.dumps(digits.network(width)), "log": []}
    model, epoch, log = pickle.loads(saved["model"]), saved["epoch"], saved["log"]
    print(f"attempt {context.attempt}: from epoch {epoch}, GPU {os.environ['CUDA_VISIBLE_DEVICES']}", flush=True)
    between_epochs = threading.Lock()

    @context.on_abort
    def save() -> None:
        with between_epochs:
            context.save_checkpoint({"epoch": epoch, "model": pickle.dumps(model), "log": log})
            print(f"abort callback: saved epoch {epoch}, {context.seconds_left:.1f} s left", flush=True)

    data = digits.Digits()
    while epoch < EPOCHS:
        with between_epochs:
            context.raise_if_aborting()
            with digits.watchable():
                accuracy = data.epoch(model)
            epoch += 1
            log.append({"attempt": context.attempt, "epoch": epoch, "accuracy": accuracy})
        digits.tell(epoch, EPOCHS, accuracy)
    return {"step": context.step_name, "width": width, "log": log}


@pipeline
def sweep(widths: list[int]) -> list[dict[str, Any]]:
    trials = [train.with_options(name=f"width-{width}").submit(width) for width in widths]
    return [trial.result() for trial in trials]


if __name__ == "__main__":
    print(json.dumps(sweep([16, 32, 64, 128, 256])))
