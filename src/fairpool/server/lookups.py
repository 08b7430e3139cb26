"""Reading what is committed, off the event loop, and finding what callers name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final, TypeVar

from fairpool.app.errors import Ambiguous, NotFound
from fairpool.app.ports import Reader
from fairpool.app.records import AnyDeclared, Kind, Page, RunRecord, StepRecord
from fairpool.app.scheduler import Command
from fairpool.app.use_cases.declaring import nearest as near
from fairpool.core.ids import RequestId
from fairpool.server.calls import Call, invalid

Found = TypeVar("Found")

MAX_LABELS: Final = 64
"""Labels that one call filters by: as many as a request may carry."""


async def acted(call: Call, command: Command[Found]) -> Found:
    """What a use case answers, run on behalf of the caller, once it is committed."""
    return await answered(call, call.workspace.loop.do(call.principal.actor, command, call.source))


async def answered(call: Call, future: Future[Found]) -> Found:
    """What the scheduler answers, once it has committed."""
    return await call.services.bridge.answer(future)


async def reading(call: Call, read: Callable[[Reader], Found]) -> Found:
    """Run a reading on a thread of its own: the database may be slow, and others call meanwhile."""
    return await asyncio.to_thread(read, call.workspace.reader)


def one(kind: str, ref: str, matches: Sequence[Found], name: Callable[[Found], str]) -> Found:
    """The only match. Raises NotFound or Ambiguous."""
    if not matches:
        raise NotFound(kind, ref)
    if len(matches) > 1:
        raise Ambiguous(kind, ref, candidates=[name(match) for match in matches])
    return matches[0]


def declared(reader: Reader, kind: Kind, ref: str) -> AnyDeclared:
    """The declared object that `ref` means. Raises NotFound or Ambiguous."""
    matches = reader.declared.match(kind, ref)
    if not matches:
        raise NotFound(kind.value, ref, candidates=near(ref, [known.name for known in reader.declared.all(kind)]))
    return one(kind.value, ref, matches, lambda match: f"{match.id} ({match.name})")


def request_id(reader: Reader, ref: str) -> RequestId:
    """The request that `ref` means. Raises NotFound or Ambiguous."""
    return one("request", ref, reader.requests.match(ref), str)


def run(reader: Reader, ref: str) -> RunRecord:
    """The run that `ref` means. Raises NotFound or Ambiguous."""
    return one("run", ref, reader.runs.match(ref), lambda match: f"{match.id} ({match.name})")


def step(reader: Reader, ref: str) -> StepRecord:
    """The step that `ref` means. Raises NotFound or Ambiguous."""
    return one("step", ref, reader.runs.match_step(ref), lambda match: f"{match.id} ({match.name})")


def cursor_of(call: Call) -> int | None:
    """The cursor of the page that the caller wants. Raises Refused for one that no page gave."""
    value = call.text("cursor")
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 18):
        raise invalid("cursor", "no page of this list gave this cursor", value=value, possible="a page's next_cursor")
    return int(value)


def next_cursor(page: Page[Found]) -> str | None:
    """The cursor of the page that follows."""
    return None if page.next is None else str(page.next)


def page_of(items: Sequence[Found], call: Call) -> Page[Found]:
    """A page of a list that is there as a whole: its cursor counts items."""
    begin = cursor_of(call) or 0
    end = begin + call.page_size
    return Page(items=tuple(items[begin:end]), next=end if end < len(items) else None)


def labels_of(call: Call) -> dict[str, str]:
    """The labels that the caller filters by. Raises Refused for one that is not ``key=value``."""
    found, given = {}, call.texts("label")
    if len(given) > MAX_LABELS:
        raise invalid("label", f"{len(given)} of them", value=None, possible=f"at most {MAX_LABELS}")
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise invalid("label", f"{text!r} is no label", value=text, possible="key=value")
        found[key] = value
    return found
