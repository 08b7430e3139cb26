"""Any script at all: it knows nothing of Fairpool, and runs under `fairpool run --gpus 1`."""

from __future__ import annotations

import digits

EPOCHS = 12

if __name__ == "__main__":
    data, model = digits.Digits(), digits.network(48)
    for epoch in range(1, EPOCHS + 1):
        with digits.watchable():
            accuracy = data.epoch(model)
        digits.tell(epoch, EPOCHS, accuracy)
