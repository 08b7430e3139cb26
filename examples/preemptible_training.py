"""A training that can be interrupted: it saves after every epoch, and goes on from there in its next attempt.

    python examples/preemptible_training.py

When its pool needs the GPU for somebody with a better right, the step is told to end, has its grace period to do so,
queues again with its old place, and finds its checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairpool import ResourceSettings, StepRetryConfig, get_step_context, pipeline, step


@dataclass(frozen=True)
class Training:
    epoch: int = 0
    weight: float = 0.0

    def next(self, rate: float) -> Training:
        return replace(self, epoch=self.epoch + 1, weight=self.weight + rate * (1 - self.weight))


@step(
    settings={"resources": ResourceSettings(cpu_count=1, memory="256MB", preemptible=True)},
    retry=StepRetryConfig(max_retries=3),
)
def train(epochs: int, rate: float) -> Training:
    context = get_step_context()
    state: Training = context.load_checkpoint() or Training()
    print(f"attempt {context.attempt} begins at epoch {state.epoch}")
    while state.epoch < epochs:
        state = state.next(rate)
        context.save_checkpoint(state)  # whole or not at all, so being killed here would do no harm either
        context.raise_if_aborting()
    return state


@pipeline
def learn() -> float:
    return train(epochs=10, rate=0.5).weight


if __name__ == "__main__":
    print(f"weight: {learn():.3f}")
