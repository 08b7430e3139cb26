"""What the scheduler holds in memory: the core's world, and beside it what people want to know of its objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar, cast

from fairpool.app.errors import Ambiguous, NotFound
from fairpool.app.leases import LeaseBook
from fairpool.app.ports import Stored
from fairpool.app.records import AnyDeclared, Declared, Document, Kind, RequestRecord
from fairpool.core.ids import Instant, PoolId, RequestId
from fairpool.core.policies import Policy, Profile
from fairpool.core.pools import Pool
from fairpool.core.world import World

Object = TypeVar("Object", bound=AnyDeclared)


class Memory:
    """Always what the store would give back: thrown away and loaded anew when a commit fails."""

    def __init__(self, stored: Stored, now: Instant) -> None:
        self.world = World.restore(stored.snapshot)
        self.live: dict[RequestId, RequestRecord] = dict(stored.live)
        self.ended: dict[RequestId, RequestRecord] = {}  # those that became final in this cycle
        self.leases = LeaseBook()
        self.leases.restart(((record.id, record.lease) for record in stored.live.values() if record.lease), now)
        self.history_seq = stored.history_seq
        self._declared: dict[Kind, dict[str, AnyDeclared]] = {}
        for declared in stored.declared:
            self._declared.setdefault(declared.kind, {})[declared.id] = declared

    def record(self, request: RequestId) -> RequestRecord | None:
        """A live request, or one that ended in this cycle."""
        return self.live.get(request) or self.ended.get(request)

    def put(self, declared: AnyDeclared) -> None:
        """An object appears or changes."""
        self._declared.setdefault(declared.kind, {})[declared.id] = declared

    def drop(self, kind: Kind, object_id: str) -> None:
        """An object goes."""
        del self._declared[kind][object_id]

    def all(self, kind: Kind) -> list[AnyDeclared]:
        """All objects of a kind, by name."""
        return sorted(self._declared.get(kind, {}).values(), key=lambda declared: (declared.name, declared.id))

    def get(self, kind: Kind, object_id: str) -> AnyDeclared | None:
        """An object by id."""
        return self._declared.get(kind, {}).get(object_id)

    def named(self, kind: Kind, name: str) -> AnyDeclared | None:
        """An object by name."""
        return next((declared for declared in self._declared.get(kind, {}).values() if declared.name == name), None)

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
            raise NotFound(kind.value, ref, candidates=_near(ref, [declared.name for declared in objects.values()]))
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

    def policies_of(self, pool: PoolId) -> Iterator[Declared[Policy]]:
        """The policies of a pool, by name."""
        for declared in self.all(Kind.POLICY):
            policy = cast("Declared[Policy]", declared)
            if policy.spec.pool == pool:
                yield policy

    def pool_name(self, pool: PoolId | None) -> str:
        """The pool's name, "" for none."""
        declared = self.get(Kind.POOL, pool) if pool is not None else None
        return declared.name if declared is not None else ""

    def subject_of(self, policy: str | None) -> str:
        """Of whom a policy speaks, "" for none."""
        declared = self.get(Kind.POLICY, policy) if policy is not None else None
        return str(cast("Declared[Policy]", declared).spec.subject) if declared is not None else ""


def _near(ref: str, names: list[str]) -> list[str]:
    from difflib import get_close_matches  # only when somebody mistyped

    return get_close_matches(ref, names, n=3, cutoff=0.6)
