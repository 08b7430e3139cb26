"""What the scheduler holds in memory: the core's world, and beside it what people want to know of its objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar, cast

from fairpool.app.errors import Ambiguous, NotFound
from fairpool.app.experience import Experience
from fairpool.app.leases import LeaseBook, Runtimes
from fairpool.app.membership import teams_of_all
from fairpool.app.ports import Stored
from fairpool.app.queue_counts import QueueCounts
from fairpool.app.records import AnyDeclared, Declared, Document, Kind, RequestRecord
from fairpool.app.schedules import Timetable, in_force, windows_in
from fairpool.core.ids import MAX_NAME_LENGTH, Instant, PoolId, RequestId
from fairpool.core.policies import Policy, Profile, Subject
from fairpool.core.pools import Pool
from fairpool.core.requests import Request
from fairpool.core.world import Snapshot, World

_MOST_COMPARED: Final = 200
"""Names that a mistyped one is compared with, on the thread that decides: some milliseconds of its time."""

Object = TypeVar("Object", bound=AnyDeclared)


class Memory:
    """Always what the store would give back: thrown away and loaded anew when a commit fails.

    experience: how long work usually ran; decides nothing, and outlives the memory.
    """

    def __init__(self, stored: Stored, now: Instant, experience: Experience | None = None) -> None:
        self.experience = experience or Experience()
        self.timetable = Timetable()
        self.world = World.restore(_in_force(stored, now))
        self.live: dict[RequestId, RequestRecord] = dict(stored.live)
        self.ended: dict[RequestId, RequestRecord] = {}  # those that became final in this round
        self.leases = LeaseBook(((record.id, record.lease) for record in self.live.values() if record.lease), now)
        self.runtimes = Runtimes()
        for held in self.world.allocations.values():
            self.runtimes.granted(held.request, held.granted_at)
        self.queues = QueueCounts()
        self.queued_by = Counter(r.submission.created_by for r in self.live.values() if r.state.grant is None)
        for record in self.live.values():
            (self.queues.wait if record.state.grant is None else self.queues.start)(record.request)
        retries = ((record.submission.retry_of, record.id) for record in self.live.values())
        self.retries = {
            old: request for old, request in retries if old
        }  # repeated request -> the live one repeating it
        self.history_seq = stored.history_seq
        self._last_arrival = Instant(0)
        self._declared: dict[Kind, dict[str, AnyDeclared]] = {}
        self._ids: dict[tuple[Kind, str], str] = {}  # by kind and name
        self._teams: dict[Subject, tuple[str, ...]] | None = None  # who is in which, until that changes
        for declared in stored.declared:
            self.put(declared)

    def record(self, request: RequestId) -> RequestRecord | None:
        """A live request, or one that ended in this round."""
        return self.live.get(request) or self.ended.get(request)

    def next_arrival(self, now: Instant) -> Instant:
        """The time at which a request is queued: no two share it, so that a retry's place is only its own (S24)."""
        self._last_arrival = Instant(max(now, self._last_arrival + 1))
        return self._last_arrival

    def arrive(self, record: RequestRecord) -> None:
        """A request is live."""
        self.live[record.id] = record
        self.queues.wait(record.request)
        self.queued_by[record.submission.created_by] += 1
        if record.lease is not None:
            self.leases.start(record.id, record.lease)
        if record.submission.retry_of:
            self.retries[record.submission.retry_of] = record.id

    def leave(self, request: RequestId) -> RequestRecord:
        """A request is final; it is remembered until the end of the round where it is put into `ended`."""
        record = self.live.pop(request)
        self.queues.leave(record.request)
        if record.state.grant is None:
            self._wait_ends(record)
        self.leases.end(request)
        self.runtimes.end(request)
        self.retries.pop(record.submission.retry_of, None)
        return record

    def start(self, request: RequestId) -> None:
        """A request that waited holds something now; its record does not say so yet."""
        record = self.live[request]
        self.queues.start(record.request)
        self._wait_ends(record)

    def _wait_ends(self, record: RequestRecord) -> None:
        who = record.submission.created_by
        self.queued_by[who] -= 1
        if not self.queued_by[who]:
            del self.queued_by[who]

    def redirect(self, request: Request) -> None:
        """A live request is made as others, or for another profile or pool, from now on."""
        record = self.live[request.id]
        self.queues.leave(record.request)
        self.live[request.id] = replace(record, request=request)
        (self.queues.wait if record.state.grant is None else self.queues.start)(request)

    def put(self, declared: AnyDeclared) -> None:
        """An object appears or changes."""
        self._teams = None
        objects = self._declared.setdefault(declared.kind, {})
        old = objects.get(declared.id)
        if old is not None and self._ids.get((old.kind, old.name)) == old.id:
            del self._ids[old.kind, old.name]
        objects[declared.id] = declared
        if declared.kind is Kind.POLICY:
            self.timetable.look(declared.id, has_windows=bool(windows_in(declared.note)))
        self._ids[declared.kind, declared.name] = declared.id

    def drop(self, kind: Kind, object_id: str) -> None:
        """An object goes."""
        self._teams = None
        old = self._declared[kind].pop(object_id)
        self.timetable.forget(object_id)
        if self._ids.get((kind, old.name)) == object_id:
            del self._ids[kind, old.name]

    def all(self, kind: Kind) -> list[AnyDeclared]:
        """All objects of a kind, by name."""
        return sorted(self._declared.get(kind, {}).values(), key=lambda declared: (declared.name, declared.id))

    def get(self, kind: Kind, object_id: str) -> AnyDeclared | None:
        """An object by id."""
        return self._declared.get(kind, {}).get(object_id)

    def named(self, kind: Kind, name: str) -> AnyDeclared | None:
        """An object by name."""
        object_id = self._ids.get((kind, name))
        return None if object_id is None else self._declared[kind][object_id]

    def find(self, kind: Kind, ref: str) -> AnyDeclared:
        """What a name, an id or a unique id prefix means. Raises NotFound or Ambiguous."""
        objects = self._declared.get(kind, {})
        found = objects.get(ref) or self.named(kind, ref)
        if found is not None:
            return found
        matches = sorted(object_id for object_id in objects if ref and object_id.startswith(ref))
        if len(matches) > 1:
            shown = [f"{object_id} ({objects[object_id].name})" for object_id in matches[:10]]
            raise Ambiguous(kind.value, ref, candidates=shown)
        if not matches:
            raise NotFound(kind.value, ref, candidates=near(ref, [declared.name for declared in objects.values()]))
        return objects[matches[0]]

    def pool(self, ref: str) -> Declared[Pool]:
        """The pool that `ref` means."""
        return cast("Declared[Pool]", self.find(Kind.POOL, ref))

    def policy(self, ref: str) -> Declared[Policy]:
        """The policy that `ref` means."""
        return cast("Declared[Policy]", self.find(Kind.POLICY, ref))

    def profile(self, ref: str) -> Declared[Profile]:
        """The profile that `ref` means."""
        return cast("Declared[Profile]", self.find(Kind.PROFILE, ref))

    def document(self, kind: Kind, ref: str) -> Declared[Document]:
        """The component, stack or settings that `ref` means."""
        return cast("Declared[Document]", self.find(kind, ref))

    def teams_of(self, subject: Subject) -> tuple[str, ...]:
        """The teams that a user or a service account is in, by name, in order."""
        if self._teams is None:
            self._teams = teams_of_all(self.all(Kind.TEAM), self.all(Kind.SERVICE_ACCOUNT))
        return self._teams.get(subject, ())

    def policies_of(self, pool: PoolId) -> list[Declared[Policy]]:
        """The policies of a pool, by name."""
        policies = [
            self.policy(policy) for policy, books in self.world.books[pool].policies.items() if not books.retired
        ]
        return sorted(policies, key=lambda policy: (policy.name, policy.id))

    def pool_name(self, pool: PoolId | None) -> str:
        """The pool's name, "" for none."""
        declared = self.get(Kind.POOL, pool) if pool is not None else None
        return declared.name if declared is not None else ""

    def subject_of(self, policy: str | None) -> str:
        """Of whom a policy speaks, "" for none."""
        declared = self.get(Kind.POLICY, policy) if policy is not None else None
        return str(cast("Declared[Policy]", declared).spec.subject) if declared is not None else ""


def _in_force(stored: Stored, now: Instant) -> Snapshot:
    """The world as it was left: with the numbers of the windows that were open then."""
    scheduled = {
        one.id: in_force(cast("Declared[Policy]", one), now)
        for one in stored.declared
        if one.kind is Kind.POLICY and windows_in(one.note)
    }
    policies = tuple(scheduled.get(policy.id, policy) for policy in stored.snapshot.policies)
    return replace(stored.snapshot, policies=policies)


def near(ref: str, names: Sequence[str]) -> list[str]:
    """The names that are most like this one. Comparing takes time, which others wait for: of many or long ones none."""
    from difflib import get_close_matches  # only when somebody mistyped

    if len(ref) > 2 * MAX_NAME_LENGTH or len(names) > _MOST_COMPARED:
        return []
    return get_close_matches(ref, names, n=3, cutoff=0.6)
