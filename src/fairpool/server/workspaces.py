"""The workspaces that this process has open: each decides for itself, and shares the installation with the others.

Which there are is declared in the installation's own, ``default``. A thread keeps to it: it opens what is declared and
closes what is about to go, as soon as ``default`` tells of a change and every few seconds besides. A call that comes
before that has its workspace looked up at once. Opening, closing and removing happen on threads of their own, so that
one workspace that hangs keeps nobody else waiting.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final, Protocol

from fairpool.app.errors import AppError, Busy
from fairpool.app.ports import Reader
from fairpool.app.records import DEFAULT_WORKSPACE
from fairpool.app.scheduler_loop import SchedulerLoop
from fairpool.app.store_errors import StoreError
from fairpool.app.use_cases.workspaces import WorkspaceRecord, WorkspaceState, state_of
from fairpool.core.ids import Instant
from fairpool.server.problems import Refused
from fairpool.server.watching import Watch
from fairpool.server.webhooks.telling import Teller
from fairpool.wire.problems import Slug
from fairpool.wire.reading import quoted

log = logging.getLogger(__name__)

LOOK_S: Final = 5.0
"""How often to look which workspaces there are, where nothing tells of a change."""

_CLOSING_LOOK_S: Final = 0.5
"""The same while one is about to go, and its last server has yet to let go of it."""

_OPENS_S: Final = 10.0
"""How long a call waits for its workspace to be opened; its caller then asks again."""

_AGAIN_S: Final = 5.0
"""How long after a workspace could not be opened it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A workspace at run time.

    loop: decides; reader: what is committed. watch: wakes the calls that wait. teller: tells webhooks' receivers; None
    where nobody does. close: gives up everything that it has open here; twice is the same as once.
    """

    name: str = DEFAULT_WORKSPACE
    loop: SchedulerLoop
    reader: Reader
    watch: Watch = field(default_factory=Watch)
    teller: Teller | None = None
    close: Callable[[], None] = lambda: None


class Opener(Protocol):
    """What the bootstrap knows how to do with the workspaces that are declared."""

    def declared(self) -> Mapping[str, WorkspaceRecord]:
        """All that there are besides ``default``, by name. Raises StoreError."""

    def reader(self, name: str) -> Reader:
        """What is there to read in one, open or not."""

    def open(self, record: WorkspaceRecord) -> Workspace:
        """Open one. Raises StoreError, AppError."""

    def finish(self, record: WorkspaceRecord) -> bool:
        """Remove one that closes, where this server leads ``default``; see `erasing.finish`."""


class Alone:
    """There is no workspace besides ``default``."""

    def declared(self) -> Mapping[str, WorkspaceRecord]:
        """See `Opener`."""
        return {}

    def reader(self, name: str) -> Reader:
        """See `Opener`."""
        raise AssertionError("none was declared")

    def open(self, record: WorkspaceRecord) -> Workspace:
        """See `Opener`."""
        raise AssertionError("none was declared")

    def finish(self, record: WorkspaceRecord) -> bool:
        """See `Opener`."""
        raise AssertionError("none was declared")


@dataclass(slots=True)
class _Place:
    """What happens with one workspace. id: of the one that is open or being opened; another may have its name later.

    at_work: a thread opens, closes or removes it. opening: the answer of the one that opens it. failed_at: when it
    could not be opened, monotonic.
    """

    id: str = ""
    workspace: Workspace | None = None
    at_work: bool = False
    opening: Future[Workspace] | None = None
    failed_at: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is open and nothing happens."""
        return self.workspace is None and not self.at_work


class Workspaces:
    """Those that are open. default: the installation's own, which is open for as long as the process lives."""

    def __init__(
        self, default: Workspace, opener: Opener | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.default = default
        self._opener: Opener = opener or Alone()
        self._monotonic = monotonic
        self._places: dict[str, _Place] = {}
        self._lock = threading.RLock()
        self._events: asyncio.AbstractEventLoop | None = None
        self._news = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="fairpool-workspaces", daemon=True)

    def __iter__(self) -> Iterator[Workspace]:
        with self._lock:
            others = [place.workspace for _, place in sorted(self._places.items()) if place.workspace is not None]
        return iter([self.default, *others])

    def find(self, name: str) -> Workspace | None:
        """The workspace of that name where it is open here."""
        if name == self.default.name:
            return self.default
        place = self._places.get(name)
        return None if place is None else place.workspace

    def serves(self, name: str, now: Instant) -> bool:
        """Whether calls to it can be answered, as far as is known here: it could be opened, and some server decides."""
        found = self.find(name)
        if found is not None:
            return found.loop.is_led(now)
        place = self._places.get(name)
        return place is None or place.failed_at is None

    def reader(self, name: str) -> Reader:
        """What is there to read in a declared workspace, open here or not."""
        return self._opener.reader(name)

    async def of(self, name: str) -> Workspace:
        """The workspace of that name, opened where that is not done yet. On the loop's thread.

        Raises Refused where there is none or it is about to go, Busy where it cannot be opened now, StoreError.
        """
        found = self.find(name)
        if found is not None:
            return found
        record = (await asyncio.to_thread(self._opener.declared)).get(name)
        if record is None:
            raise _unknown(name)
        if state_of(record) is WorkspaceState.CLOSING:
            raise closing(name)
        with self._lock:
            opening = self._begin_to_open(record)
        if opening is None:
            raise Busy(f"the workspace {name!r} cannot be opened at the moment; the server's log says why")
        answer = asyncio.wrap_future(opening)
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())  # somebody may have given up
        try:
            async with asyncio.timeout(_OPENS_S):
                return await asyncio.shield(answer)
        except TimeoutError:
            raise Busy(f"the workspace {name!r} is being opened: ask again in a moment") from None

    # ---- life -------------------------------------------------------------------------------------------------------

    @property
    def closing(self) -> bool:
        """Whether the process is about to end."""
        return self.default.watch.closing

    def start(self) -> None:
        """Begin to keep to what is declared."""
        self._thread.start()

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Say on which loop calls are answered."""
        with self._lock:
            self._events = loop
            for workspace in self:
                workspace.watch.attach(loop)

    def news(self) -> None:
        """What is declared may have changed. From any thread; returns at once."""
        self._news.set()

    def close(self) -> None:
        """Wake everybody who waits, for good: the process ends. On the loop's thread."""
        for workspace in self:
            workspace.watch.close()

    def hand_over(self) -> None:
        """Decide nothing any more, so that other servers can at once. Takes as long as the longest round does."""
        with self._lock:
            self._stopping = True
            stopping = [threading.Thread(target=workspace.loop.stop) for workspace in self]
        self._news.set()
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()

    def stop(self) -> None:
        """Close everything but `default`."""
        with self._lock:
            self._stopping = True
            others = [workspace for workspace in self if workspace is not self.default]
        self._news.set()
        if self._thread.is_alive():
            self._thread.join()
        for workspace in others:
            workspace.close()

    # ---- keeping to what is declared --------------------------------------------------------------------------------

    def _run(self) -> None:
        is_away = False
        while not self._stopping:
            self._news.clear()
            look_again_s = LOOK_S
            try:
                look_again_s = self.adjust()
                is_away = False
            except StoreError as error:
                if not is_away:  # said once until it can be read again
                    log.warning("which workspaces there are cannot be read: %s", error)
                is_away = True
            except Exception:
                log.exception("workspaces could not be kept to what is declared")
            self._news.wait(look_again_s)

    def adjust(self) -> float:
        """Begin to open what is declared, and to close what is about to go or gone; in how many seconds to look again.
        Raises StoreError."""
        declared = self._opener.declared()
        going = [record for record in declared.values() if state_of(record) is WorkspaceState.CLOSING]
        staying = {record.name: record for record in declared.values() if record not in going}
        with self._lock:
            for name, place in self._places.items():
                if place.workspace is not None and (name not in staying or staying[name].id != place.id):
                    self._begin_to_close(name, place)
            for record in staying.values():
                self._begin_to_open(record)
            for record in going:
                self._begin_to_remove(record)
            waiting = any(place.at_work for place in self._places.values())
            for name in [name for name, place in self._places.items() if place.is_empty and name not in declared]:
                del self._places[name]
        return _CLOSING_LOOK_S if going or waiting else LOOK_S

    def _begin_to_open(self, record: WorkspaceRecord) -> Future[Workspace] | None:
        """What is open or being opened; None where that cannot be now. Holds the lock."""
        place = self._places.setdefault(record.name, _Place())
        if place.workspace is not None and place.id == record.id:
            done: Future[Workspace] = Future()
            done.set_result(place.workspace)
            return done
        if place.opening is not None:
            return place.opening
        recently = place.failed_at is not None and self._monotonic() - place.failed_at < _AGAIN_S
        if self._stopping or place.at_work or place.workspace is not None or recently:
            return None
        place.id, place.at_work, place.opening = record.id, True, Future()
        self._on_a_thread(record.name, lambda: self._open(record, place))
        return place.opening

    def _open(self, record: WorkspaceRecord, place: _Place) -> None:
        opening = place.opening
        assert opening is not None
        try:
            opened = self._opener.open(record)
        except Exception as error:
            known = isinstance(error, StoreError | AppError)
            log.warning("the workspace %s cannot be opened: %s", record.name, error, exc_info=None if known else error)
            with self._lock:
                place.failed_at, place.opening, place.at_work = self._monotonic(), None, False
            why = error if known else Busy(f"the workspace {record.name!r} cannot be opened; the server's log says why")
            opening.set_exception(why)
            return
        with self._lock:
            place.failed_at, place.opening, place.at_work = None, None, False
            is_wanted = not self._stopping
            if is_wanted:
                place.workspace = opened
                if self._events is not None:
                    opened.watch.attach(self._events)
        if is_wanted:
            log.info("the workspace %s is open", record.name)
            opening.set_result(opened)
        else:
            opened.close()
            opening.set_exception(Busy("the server is stopping: ask again in a moment"))

    def _begin_to_close(self, name: str, place: _Place) -> None:
        """Holds the lock."""
        workspace, place.workspace, place.at_work = place.workspace, None, True
        assert workspace is not None

        def close() -> bool:
            workspace.watch.end()
            workspace.close()
            log.info("the workspace %s is closed", name)
            return True

        self._on_a_thread(name, lambda: self._at_work(place, close))

    def _begin_to_remove(self, record: WorkspaceRecord) -> None:
        """Holds the lock."""
        place = self._places.setdefault(record.name, _Place())
        if self._stopping or place.at_work or place.workspace is not None or not self.default.loop.is_leading:
            return
        place.at_work = True
        self._on_a_thread(record.name, lambda: self._at_work(place, lambda: self._opener.finish(record)))

    def _at_work(self, place: _Place, work: Callable[[], bool]) -> None:
        """work: whether it is done; if not, it is begun again at the next look."""
        done = False
        try:
            done = work()
        except (StoreError, AppError, TimeoutError) as error:
            log.warning("a workspace waits to be closed or removed: %s", error)
        except Exception:
            log.exception("a workspace could not be closed or removed")
        finally:
            with self._lock:
                place.at_work = False
            if done:
                self._news.set()

    def _on_a_thread(self, name: str, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name=f"fairpool-workspace-{name}", daemon=True).start()


def _unknown(name: str) -> Refused:
    return Refused(
        Slug.NOT_FOUND,
        f"no workspace {quoted(name)}",
        guidance="fairpool workspace list shows what there is; fairpool workspace create NAME makes one",
    )


def closing(name: str) -> Refused:
    """That a workspace is about to go."""
    return Refused(
        Slug.CONFLICT,
        f"the workspace {quoted(name)} is being deleted",
        guidance="fairpool workspace list shows what there is",
    )
