"""How many steps that no policy governs run at once: a pool counts the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable

from fairpool.sdk.orchestrators.base import Grant, Orchestrator


class Slots:
    """Places on a machine, per orchestrator, handed out in order. Used on the loop's thread only."""

    def __init__(self) -> None:
        self._running: dict[Hashable, Orchestrator] = {}
        self._waiting: deque[tuple[Hashable, Orchestrator, Callable[[], object]]] = deque()

    def take(self, who: Hashable, orchestrator: Orchestrator, grant: Grant, start: Callable[[], object]) -> None:
        """Call `start` once there is a place: at once where the grant itself is one."""
        if grant.governed:
            start()
        elif self._is_free(orchestrator):
            self._running[who] = orchestrator
            start()
        else:
            self._waiting.append((who, orchestrator, start))

    def give_back(self, who: Hashable) -> None:
        """It runs no more, or waits no more."""
        if self._running.pop(who, None) is None:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not who)
            return
        # Only what waited before is looked at: a start may itself give back and come in here again.
        for entry in list(self._waiting):
            waiting, orchestrator, start = entry
            if entry in self._waiting and self._is_free(orchestrator):
                self._waiting.remove(entry)
                self._running[waiting] = orchestrator
                start()

    def _is_free(self, orchestrator: Orchestrator) -> bool:
        most = orchestrator.max_ungoverned
        return most is None or sum(1 for other in self._running.values() if other is orchestrator) < most
