"""A first pipeline: three trainings side by side, and the best of them.

    python examples/first_pipeline.py

Nothing needs configuring. Give the `local` component a pool and a policy, and the trainings wait for their turn.
"""

from __future__ import annotations

import random

from fairpool import ResourceSettings, pipeline, step


@step
def load(points: int) -> list[tuple[float, float]]:
    source = random.Random(7)
    return [(x, 3 * x + source.gauss(0, 0.1)) for x in (source.random() for _ in range(points))]


@step(settings={"resources": ResourceSettings(cpu_count=1, memory="256MB")})
def train(data: list[tuple[float, float]], rate: float) -> tuple[float, float]:
    slope = 0.0
    for _ in range(100):
        slope -= rate * sum(2 * x * (slope * x - y) for x, y in data) / len(data)
    error = sum((slope * x - y) ** 2 for x, y in data) / len(data)
    print(f"rate {rate}: slope {slope:.3f}, error {error:.4f}")
    return error, slope


@pipeline
def sweep(rates: list[float]) -> float:
    data = load.submit(200)  # a future: the trainings wait for it, and the data does not pass through this process
    trainings = [train.submit(data, rate) for rate in rates]
    _, slope = min(training.result() for training in trainings)
    return slope


if __name__ == "__main__":
    print(f"best slope: {sweep([0.01, 0.1, 1.0]):.2f}")
