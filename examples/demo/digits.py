"""Handwritten digits, and networks that learn them one epoch at a time. The data ships inside scikit-learn."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

SHORTEST_EPOCH_S = 0.22  # an epoch takes a few hundredths of a second: slowed down so that an eye can follow


class Digits:
    """1,797 images of 8 by 8 pixels: a quarter kept for judging, the others also shifted by one pixel each way."""

    def __init__(self) -> None:
        images, labels = load_digits(return_X_y=True)
        seen, self._unseen, named, self._unseen_labels = train_test_split(images / 16, labels, random_state=0)
        shifts = [np.roll(seen.reshape(-1, 8, 8), by, axis).reshape(-1, 64) for by in (-1, 1) for axis in (1, 2)]
        self._images, self._labels = np.concatenate([seen, *shifts]), np.concatenate([named] * 5)

    def epoch(self, model: MLPClassifier) -> float:
        """Train on every image once; the share of unseen images that the model then names rightly."""
        model.partial_fit(self._images, self._labels, classes=range(10))
        return float(model.score(self._unseen, self._unseen_labels))


def network(width: int) -> MLPClassifier:
    """A network with one hidden layer, which has learnt nothing yet."""
    return MLPClassifier((width,), learning_rate_init=0.0002, random_state=1)


@contextmanager
def watchable() -> Iterator[None]:
    """Let what is inside last long enough to be watched."""
    ends_at = time.monotonic() + SHORTEST_EPOCH_S
    yield
    time.sleep(max(0.0, ends_at - time.monotonic()))


def tell(epoch: int, epochs: int, accuracy: float) -> None:
    """One line of a training's log."""
    print(f"epoch {epoch}/{epochs} accuracy {accuracy:.3f}", flush=True)
