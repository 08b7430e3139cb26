"""How a world takes changes back: each primitive change records its own undoing while somebody asks what if."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Undo = Callable[[], object]


class Journal:
    """Undoings, newest last; `active` only inside `recording`."""

    __slots__ = ("_undos", "active")

    def __init__(self) -> None:
        self._undos: list[Undo] | None = None
        self.active = False  # whether changes are to be taken back; read at every one of them

    def record(self, undo: Undo) -> None:
        """Remember how to take a change back; forgotten at once when nobody asks what if."""
        if self._undos is not None:
            self._undos.append(undo)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Take back at the end, newest first, every change made inside. May be nested."""
        outer, undos = self._undos, list[Undo]()
        self._undos, self.active = undos, True
        try:
            yield
        finally:
            self._undos, self.active = None, False  # what undoes is not itself recorded
            for undo in reversed(undos):
                undo()
            self._undos, self.active = outer, outer is not None
