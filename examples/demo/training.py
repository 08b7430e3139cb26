"""The steps of the demo: real models, trained epoch by epoch on a real data set that ships inside scikit-learn."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

from fairpool import ResourceSettings, StepRetryConfig, get_step_context, pipeline, step

RESEARCH_EPOCHS = 24
PRODUCTION_EPOCHS = 10
LEAST_EPOCH_S = 0.45
"""An epoch on 1,797 small pictures takes milliseconds: each is stretched to this, so that there is much to watch."""


@dataclass
class Training:
    """What a checkpoint holds. epochs: which attempt trained each of them."""

    width: int
    model: Any = None
    epochs: list[int] = field(default_factory=list)
    accuracy: float = 0.0
    resumed_at: list[int] = field(default_factory=list)
    aborted_at: list[int] = field(default_factory=list)


def train_one_epoch(state: Training, attempt: int) -> None:
    """One pass over the digits; the model in `state` is the better for it."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    began = time.monotonic()
    digits = load_digits()
    seen, unseen, seen_labels, unseen_labels = train_test_split(digits.data / 16.0, digits.target, random_state=0)
    if state.model is None:
        state.model = MLPClassifier(hidden_layer_sizes=(state.width,), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state.model.partial_fit(seen, seen_labels, classes=list(range(10)))
    state.accuracy = float(state.model.score(unseen, unseen_labels))
    state.epochs.append(attempt)
    time.sleep(max(0.0, LEAST_EPOCH_S - (time.monotonic() - began)))


def train(width: int, epochs: int) -> Training:
    """Train, saving on the way out when the resources are called back, and going on from there afterwards."""
    context = get_step_context()
    state: Training = context.load_checkpoint() or Training(width=width)
    if state.epochs:
        state.resumed_at.append(len(state.epochs))
    print(f"attempt {context.attempt} begins at epoch {len(state.epochs)}", flush=True)

    def save() -> None:
        state.aborted_at.append(len(state.epochs))
        context.save_checkpoint(state)
        print(f"told to let go: saved after epoch {len(state.epochs)}", flush=True)

    context.on_abort(save)
    while len(state.epochs) < epochs:
        train_one_epoch(state, context.attempt)
        print(f"epoch {len(state.epochs)}: accuracy {state.accuracy:.3f}", flush=True)
        context.raise_if_aborting()
    return state


@step(settings={"resources": ResourceSettings(gpu_count=1)}, retry=StepRetryConfig(max_retries=5))
def explore(width: int) -> Training:
    """A research step: one GPU, may be interrupted."""
    return train(width, RESEARCH_EPOCHS)


@step(settings={"resources": ResourceSettings(gpu_count=2)})
def retrain(width: int) -> Training:
    """A production step: two GPUs, which is what production has reserved."""
    return train(width, PRODUCTION_EPOCHS)


@pipeline(name="research-sweep")
def research(widths: list[int]) -> list[Training]:
    """Four models side by side, as far as there is room."""
    runs = [explore.submit(width) for width in widths]
    return [run.result() for run in runs]


@pipeline(name="production-retrain")
def production(width: int) -> Training:
    """One model that somebody waits for."""
    return retrain(width)
