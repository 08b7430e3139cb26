"""Schedules: windows of time in which other numbers of a policy are in force. Pure: moments are arguments.

A window opens at each start that its cron expression names, in its time zone, and lasts for an elapsed length of time,
across the turns of summer time. Where several windows of a policy are open, the first that was written counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from fairpool.app.records import Declared, Document, Json
from fairpool.core import amounts
from fairpool.core.amounts import Amounts, plain, plain_vector
from fairpool.core.errors import InvalidInput, InvalidRules
from fairpool.core.ids import SECOND, Instant
from fairpool.core.policies import Policy, Possible

LOOKAHEAD_DAYS = 400
"""How far ahead every combination of windows is checked: more than a year, so that each day of it has come."""

MIN_DURATION_S = 60
MAX_DURATION_S = 366 * 86_400
MAX_WINDOWS = 20
MOST_STARTS = 24 * LOOKAHEAD_DAYS
"""Starts of one window in that time: once an hour. A policy that changes more often evicts more than it shares."""

SCHEDULE, OPEN = "schedule", "open"
"""Where a policy's note keeps its windows, and which of them is open."""

_OVERRIDES = ("reserved", "limit", "priority", "weight", "grace_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """When, and what is in force then; None leaves a number as the policy has it.

    start: a cron expression of five fields. timezone: of the IANA database (``Europe/Berlin``).
    """

    start: str
    duration_s: int
    timezone: str = "UTC"
    reserved: Amounts | None = None
    limit: tuple[tuple[str, int], ...] | None = None
    priority: int | None = None
    weight: int | None = None
    grace_s: int | None = None

    def over(self, policy: Policy) -> Policy:
        """The policy with the numbers of this window."""
        said = {name: value for name in _OVERRIDES if (value := getattr(self, name)) is not None}
        return replace(policy, **said)

    def __str__(self) -> str:
        return f"{self.start} for {self.duration_s} s, {self.timezone}"


Windows = tuple[Window, ...]


def check_windows(windows: Windows) -> None:
    """Whether these can be windows of a policy. Raises InvalidInput naming the field."""
    if len(windows) > MAX_WINDOWS:
        raise InvalidInput(f"{len(windows)} windows", field=SCHEDULE, possible=f"at most {MAX_WINDOWS}")
    for place, window in enumerate(windows):
        try:
            _check_window(window)
        except InvalidInput as error:
            raise error.at(f"{SCHEDULE}.{place}") from None


def _check_window(window: Window) -> None:
    if len(window.start.split()) != 5:
        raise InvalidInput(
            f"{window.start!r} has not five fields",
            field="start",
            value=window.start,
            possible="minute hour day month weekday, such as 0 20 * * 1-5",
        )
    try:
        CronSim(window.start, datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise InvalidInput(
            f"{window.start!r} is no cron expression: {str(error)[:1].lower()}{str(error)[1:]}",
            field="start",
            value=window.start,
            possible="minute hour day month weekday, such as 0 20 * * 1-5",
        ) from None
    try:
        _zone(window.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInput(
            f"no time zone {window.timezone!r}",
            field="timezone",
            value=window.timezone,
            possible="a name of the IANA database, such as Europe/Berlin or UTC",
        ) from None
    if not MIN_DURATION_S <= window.duration_s <= MAX_DURATION_S:
        raise InvalidInput(
            f"a window of {window.duration_s} s",
            field="duration_s",
            value=str(window.duration_s),
            possible=f"{MIN_DURATION_S} to {MAX_DURATION_S} seconds",
        )
    if all(getattr(window, name) is None for name in _OVERRIDES):
        raise InvalidInput(
            "the window changes nothing", field="start", value=window.start, possible=f"any of {', '.join(_OVERRIDES)}"
        )


# ---- what is in force ------------------------------------------------------------------------------------------------


def open_at(windows: Windows, at: Instant) -> int | None:
    """Which window counts at that moment, by its place; None where none is open."""
    return next((place for place, window in enumerate(windows) if _opening(window, at) is not None), None)


def effective(policy: Policy, windows: Windows, place: int | None) -> Policy:
    """What is in force while that window counts."""
    return policy if place is None else windows[place].over(policy)


def next_edge(windows: Windows, at: Instant) -> Instant | None:
    """When a window next opens or closes after that moment; None where none ever does."""
    edges = []
    for window in windows:
        opened = _opening(window, at)
        if opened is not None:
            edges.append(Instant(opened + window.duration_s * SECOND))
        starts = next(_starts(window, at), None)
        if starts is not None:
            edges.append(starts)
    return min(edges, default=None)


def _opening(window: Window, at: Instant) -> Instant | None:
    """When the window that is open at that moment was opened; None where it is not open."""
    start = next(_starts(window, Instant(at - window.duration_s * SECOND)), None)
    return start if start is not None and start <= at else None


def _starts(window: Window, after: Instant) -> Iterator[Instant]:
    """The moments after that one at which the window opens, in order."""
    at = datetime.fromtimestamp(after // SECOND, _zone(window.timezone))
    for start in CronSim(window.start, at):
        yield Instant(round(start.timestamp()) * SECOND)


@lru_cache(maxsize=100)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


# ---- what can be in force at the same time ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """A policy with its windows."""

    policy: Policy
    windows: Windows

    @property
    def versions(self) -> tuple[Policy, ...]:
        """The policy as it is at one time or another, without any window first."""
        return (self.policy, *(window.over(self.policy) for window in self.windows))


def combinations(policies: Sequence[Scheduled], now: Instant) -> Iterator[tuple[Instant, tuple[Policy, ...]]]:
    """Each combination of what is in force that occurs in the time ahead, once, with when it first does.

    Raises InvalidRules where a window opens too often to be looked ahead at.
    """
    places: list[int | None] = [None] * len(policies)
    ahead: dict[Instant, list[tuple[int, int | None]]] = {now: []}
    for number, scheduled in enumerate(policies):
        for at, place in _turns(scheduled.windows, _day(now)):
            if at <= now:
                places[number] = place
            else:
                ahead.setdefault(at, []).append((number, place))
    seen: set[tuple[int | None, ...]] = set()
    for at in sorted(ahead):
        for number, place in ahead[at]:
            places[number] = place
        if tuple(places) not in seen:
            seen.add(tuple(places))
            yield at, tuple(effective(s.policy, s.windows, p) for s, p in zip(policies, places, strict=True))


@lru_cache(maxsize=1_000)
def _turns(windows: Windows, begin: Instant) -> tuple[tuple[Instant, int | None], ...]:
    """From `begin` on, when another window counts than before, and which."""
    spans = [_spans(window, begin) for window in windows]
    until = begin + LOOKAHEAD_DAYS * 86_400 * SECOND
    edges = sorted({begin, *(edge for window in spans for span in window for edge in span if begin < edge < until)})
    found: list[tuple[Instant, int | None]] = []
    cursors = [0] * len(windows)
    for at in edges:
        place = None
        for number in reversed(range(len(windows))):
            window = spans[number]
            while cursors[number] < len(window) and window[cursors[number]][1] <= at:
                cursors[number] += 1
            if cursors[number] < len(window) and window[cursors[number]][0] <= at:
                place = number
        if not found or found[-1][1] != place:
            found.append((at, place))
    return tuple(found)


def _spans(window: Window, begin: Instant) -> list[tuple[Instant, Instant]]:
    """When the window is open, from `begin` on and for the time ahead; openings that meet are one."""
    until = begin + LOOKAHEAD_DAYS * 86_400 * SECOND
    length = window.duration_s * SECOND
    spans: list[tuple[Instant, Instant]] = []
    for count, start in enumerate(_starts(window, Instant(begin - length))):
        if start >= until:
            break
        if count > MOST_STARTS:
            raise InvalidRules(
                f"{window.start!r} opens a window more than once an hour",
                field=f"{SCHEDULE}.start",
                value=window.start,
                possible="a start an hour at most; a longer duration_s covers more",
            )
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], Instant(max(spans[-1][1], start + length)))
        else:
            spans.append((start, Instant(start + length)))
    return spans


def _day(now: Instant) -> Instant:
    """The beginning of the day: so that a look ahead is made once a day."""
    return Instant(now - now % (86_400 * SECOND))


# ---- as a document ---------------------------------------------------------------------------------------------------


def windows_in(note: Document) -> Windows:
    """The windows that a policy's note keeps."""
    said = note.get(SCHEDULE)
    return tuple(map(_window, said)) if isinstance(said, list | tuple) else ()


def open_in(note: Document) -> int | None:
    """Which window a policy's note says is open."""
    place = note.get(OPEN)
    return place if isinstance(place, int) else None


def note_with(note: Document, windows: Windows, place: int | None) -> Document:
    """The note with these windows, that one of them open."""
    new = {key: value for key, value in note.items() if key not in (SCHEDULE, OPEN)}
    if windows:
        new[SCHEDULE] = [plain_window(window) for window in windows]
    if place is not None:
        new[OPEN] = place
    return new


def in_force(declared: Declared[Policy], now: Instant) -> Policy:
    """The policy as it is in force, by what its record says is open; with what is possible at other times."""
    windows, place = windows_in(declared.note), open_in(declared.note)
    if not windows:
        return declared.spec
    policy = effective(declared.spec, windows, place if place is not None and place < len(windows) else None)
    versions = scheduled(declared).versions
    reserved, limits = [version.reserved for version in versions], [version.limit for version in versions]
    turns_at = next((at for at, _ in _turns(windows, _day(now)) if at > now), None)
    possible = Possible(reserved=_most(reserved), limit=_loosest(limits), opens_at=turns_at)
    return replace(policy, possible=possible)


def _most(vectors: Sequence[Amounts]) -> Amounts:
    """Of each key the most that any of these has."""
    keys = sorted({key for vector in vectors for key, _ in vector})
    return tuple((key, max(amounts.get(vector, key) for vector in vectors)) for key in keys)


def _loosest(limits: Sequence[tuple[tuple[str, int], ...]]) -> tuple[tuple[str, int], ...]:
    """Of each key that all of these limit the most; a key that one of them leaves out has no limit."""
    stated = [dict(limit) for limit in limits]
    keys = sorted(set.intersection(*(set(limit) for limit in stated)))
    return tuple((key, max(limit[key] for limit in stated)) for key in keys)


def scheduled(declared: Declared[Policy]) -> Scheduled:
    """The policy with its windows."""
    return Scheduled(policy=declared.spec, windows=windows_in(declared.note))


def plain_window(window: Window) -> dict[str, Json]:
    """A window as JSON."""
    said: dict[str, Json] = {
        "start": window.start,
        "duration_s": window.duration_s,
        "timezone": window.timezone,
        "reserved": None if window.reserved is None else plain_vector(window.reserved),
        "limit": None if window.limit is None else plain_vector(window.limit),
        "priority": window.priority,
        "weight": None if window.weight is None else plain(window.weight),
        "grace_s": window.grace_s,
    }
    return {key: value for key, value in said.items() if value is not None}


def _window(said: object) -> Window:
    assert isinstance(said, Mapping)
    limit = said.get("limit")
    given = amounts.vector(limit) if limit is not None else ()
    return Window(
        start=said["start"],
        duration_s=said["duration_s"],
        timezone=said["timezone"],
        reserved=None if said.get("reserved") is None else amounts.vector(said["reserved"]),
        # with its zeros: a limit of 0 forbids
        limit=None if limit is None else tuple(sorted((key, amounts.get(given, key)) for key in limit)),
        priority=said.get("priority"),
        weight=None if said.get("weight") is None else amounts.amount(said["weight"]),
        grace_s=said.get("grace_s"),
    )


@dataclass(slots=True)
class Timetable:
    """When the windows of each policy next turn. Those whose turn nobody has looked up are due at once."""

    _next: dict[str, Instant | None] = field(default_factory=dict)

    def look(self, policy: str, *, has_windows: bool) -> None:
        """A policy has appeared or changed."""
        if has_windows:
            self._next[policy] = Instant(0)
        else:
            self._next.pop(policy, None)

    def forget(self, policy: str) -> None:
        """A policy has gone."""
        self._next.pop(policy, None)

    def due(self, now: Instant) -> list[str]:
        """The policies whose windows turn by now."""
        return [policy for policy, at in self._next.items() if at is not None and at <= now]

    def settle(self, policy: str, windows: Windows, now: Instant) -> None:
        """The policy is as it should be at this moment."""
        if policy in self._next:
            self._next[policy] = next_edge(windows, now)

    def next(self) -> Instant | None:
        """When to look again; None where nothing is scheduled."""
        return min((at for at in self._next.values() if at is not None), default=None)
