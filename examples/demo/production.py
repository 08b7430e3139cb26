"""Production: the model that customers use is trained again, on two GPUs at once, and must not be interrupted."""

from __future__ import annotations

import json

from fairpool import ResourceSettings, pipeline, step

EPOCHS = 40


@step(settings={"resources": ResourceSettings(gpu_count=2, preemptible=False)})
def retrain(width: int) -> float:
    import digits

    data, model, accuracy = digits.Digits(), digits.network(width), 0.0
    for epoch in range(1, EPOCHS + 1):
        with digits.watchable():
            accuracy = data.epoch(model)
        digits.tell(epoch, EPOCHS, accuracy)
    return accuracy


@pipeline
def nightly() -> float:
    return retrain(192)


if __name__ == "__main__":
    print(json.dumps({"accuracy": nightly()}))
