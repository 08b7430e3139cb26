"""Run times of finished work, by step, profile and owner: what estimates of when something starts rest on (S37).

Of each kind the newest few are kept, and older ones count for less. An end costs a few appends, however much has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from fairpool.app.ports import Reader
from fairpool.app.records import RequestQuery, RequestRecord
from fairpool.core.ids import SECOND, Instant
from fairpool.core.policies import Subject, SubjectKind
from fairpool.core.requests import Request, Status
from fairpool.core.usual import Basis, Usual

FEWEST = 5
"""Run times that a kind of work needs before anything is said of it."""

KEPT = 64
"""Run times kept of each kind: the newest."""

HALF_LIFE_S = 14 * 24 * 3_600
"""A run time that is older than the newest by this counts half."""

MOST_KINDS = 20_000
"""Kinds kept; the one that nothing was heard of for longest goes first."""

RECALLED = 5_000
"""Ended requests that are looked at when a server begins to schedule."""

_AT_ONCE = 500
_FINAL = frozenset(status for status in Status if status.is_final)
_OWNERS = (SubjectKind.TEAM, SubjectKind.USER, SubjectKind.SERVICE_ACCOUNT, SubjectKind.COMPONENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one request's run time is like others' by. owner: its team, else its user, service account or component.
    step: its name, as its driver says it. profile: by name. Both may be ""."""

    owner: str
    step: str = ""
    profile: str = ""

    @classmethod
    def of(cls, request: Request, name: str) -> Work:
        """What a request of that name is."""
        return cls(owner=owner_of(request.subjects), step=name, profile=request.profile)

    def kinds(self) -> list[_Kind]:
        """What it is an example of, the most like it first. Only a profile's run times count beyond its owner's."""
        kinds = [(Basis.STEP, self.owner, self.step)] if self.step else []
        if self.profile:
            kinds += [(Basis.PROFILE, self.owner, self.profile)]
        kinds += [(Basis.OWNER, self.owner, "")]
        return [*kinds, (Basis.PROFILE, "", self.profile)] if self.profile else kinds


_Kind = tuple[Basis, str, str]  # of what, whose ("" for everybody's), and its name
_Seen = tuple[Instant, int]  # when it ended, and after how many microseconds


class Experience:
    """What was seen to run how long, in one workspace."""

    def __init__(self) -> None:
        self._seen: dict[_Kind, tuple[_Seen, ...]] = {}  # the kind that was heard of last is the last
        self._usual: dict[_Kind, Usual] = {}  # made when asked for, until the next end

    def saw(self, work: Work, ran_us: int, ended_at: Instant) -> None:
        """Work has run to its end."""
        for kind in work.kinds():
            seen = self._seen.pop(kind, ())
            if not seen and len(self._seen) >= MOST_KINDS:
                self._forget(next(iter(self._seen)))
            self._seen[kind] = (*seen[1 - KEPT :], (ended_at, ran_us))
            self._usual.pop(kind, None)

    def saw_all(self, records: Iterable[RequestRecord]) -> None:
        """These have ended. What was evicted says nothing of how long it would have run."""
        for record in records:
            state = record.state
            if state.grant is None or state.ended_at is None or state.status is Status.PREEMPTED:
                continue
            work = Work.of(record.request, record.submission.name)
            self.saw(work, max(1, state.ended_at - state.grant.granted_at), state.ended_at)

    def copy(self) -> Experience:
        """What was seen until now, whatever is seen later."""
        copied = Experience()
        copied._seen, copied._usual = dict(self._seen), dict(self._usual)
        return copied

    def usual(self, work: Work) -> Usual | None:
        """How long such work usually runs, by the kind most like it of which enough was seen."""
        for kind in work.kinds():
            seen = self._seen.get(kind)
            if seen is not None and len(seen) >= FEWEST:
                found = self._usual.get(kind)
                if found is None:
                    found = self._usual[kind] = _usual(kind, seen)
                return found
        return None

    def _forget(self, kind: _Kind) -> None:
        del self._seen[kind]
        self._usual.pop(kind, None)


def recalled(reader: Reader) -> Experience:
    """What the newest of the ended requests say. Raises StoreError."""
    found: list[RequestRecord] = []
    cursor: int | None = None
    while len(found) < RECALLED:
        page = reader.requests.page(RequestQuery(statuses=_FINAL), cursor=cursor, limit=_AT_ONCE)
        found += page.items
        cursor = page.next
        if cursor is None:
            break
    experience = Experience()
    experience.saw_all(sorted(found, key=lambda record: (record.state.ended_at or 0, record.id)))
    return experience


def owner_of(subjects: Sequence[Subject]) -> str:
    """Whose work it counts as: of several teams, the first by name."""
    return str(min(subjects, key=lambda subject: (_OWNERS.index(subject.kind), subject.name)))


def _usual(kind: _Kind, seen: Sequence[_Seen]) -> Usual:
    basis, owner, name = kind
    newest = max(ended_at for ended_at, _ in seen)
    weighed = sorted((ran_us, _weight(newest - ended_at)) for ended_at, ran_us in seen)
    return Usual(
        basis=basis,
        name=owner if basis is Basis.OWNER else name,
        lengths_us=tuple(ran_us for ran_us, _ in weighed),
        cumulated=tuple(accumulate(weight for _, weight in weighed)),
    )


def _weight(age_us: int) -> int:
    """What a run time counts for, in parts of a million."""
    halved: float = 0.5 ** (age_us / (HALF_LIFE_S * SECOND))
    return max(1, round(1_000_000 * halved))
