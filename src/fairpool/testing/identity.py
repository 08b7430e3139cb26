"""Ids that a test can foretell."""

from __future__ import annotations

import itertools
import threading

from fairpool.app.records import Kind


class SequentialIds:
    """Stands in for `app.ports.IdSource`: `request00001`, `request00002`, …; later ones sort later."""

    def __init__(self) -> None:
        self._counters: dict[Kind, itertools.count[int]] = {}
        self._drawing = threading.Lock()

    def new(self, kind: Kind) -> str:
        """The next id of that kind."""
        with self._drawing:
            counter = self._counters.setdefault(kind, itertools.count(1))
            return f"{kind.value.replace('-', '').replace('_', '')}{next(counter):05d}"
