"""Pools: create, change, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from fairpool.app import schedules
from fairpool.app.errors import InUse, NotFound
from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Json, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import webhooks
from fairpool.app.use_cases.declaring import changed, check_free, check_known, check_version, created, deleted, nearest
from fairpool.app.use_cases.people import described, note_of
from fairpool.app.use_cases.policies import shown as shown_policy
from fairpool.app.use_cases.profiles import follow_pool
from fairpool.app.use_cases.windows import check_ahead
from fairpool.core import events as ev
from fairpool.core.amounts import get, of, plain_vector, show
from fairpool.core.errors import InvalidInput, InvalidRules
from fairpool.core.ids import PoolId, RequestId
from fairpool.core.policies import Profile
from fairpool.core.pools import Node, Ordering, Placement, Pool, PoolState, nominal_capacity
from fairpool.core.requests import Request
from fairpool.core.rule_checks import check_changes
from fairpool.core.waiting import RequestClass

OWN_LABELS: Final = "fairpool/"
"""What labels of nodes begin with that are not anybody's to change: the server itself says them of a machine."""

PoolRecord = Declared[Pool]
Answer = Callable[[], PoolRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolChange:
    """What changes of a pool; None leaves as it is.

    capacity: the keys given change, the others stay; 0 removes a key (S9). nodes: the whole new list.
    evict_borrowers: also tell borrowers to leave until what is in use fits (S9).
    """

    name: str | None = None
    capacity: tuple[tuple[str, int], ...] | None = None
    nodes: tuple[Node, ...] | None = None
    ordering: Ordering | None = None
    backfill: bool | None = None
    placement: Placement | None = None
    max_bypass_s: int | None = None
    components: frozenset[str] | None = None
    description: str | None = None
    evict_borrowers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDeletion:
    """What a deletion did, or would do. draining: the pool goes when the last of `active` has ended."""

    pool: PoolRecord
    draining: bool
    queued: tuple[RequestId, ...]
    active: tuple[RequestId, ...]
    policies: tuple[str, ...]


def create(tx: Transaction, pool: Pool, *, description: str = "", dry_run: bool = False) -> Answer:
    """A new pool; the id in `pool` is drawn here. Raises Exists, InvalidRules."""
    check_free(tx, Kind.POOL, pool.name)
    _check_nodes_free(tx.memory, pool)
    _check_labels((), pool)
    check_known(tx.memory, Kind.COMPONENT, sorted(pool.components))
    pool = replace(pool, id=PoolId(tx.ids.new(Kind.POOL)))
    note = note_of(description)
    if dry_run:
        trial = Declared(
            kind=Kind.POOL, id=pool.id, name=pool.name, spec=pool, created_at=tx.now, updated_at=tx.now, note=note
        )
        return lambda: trial
    tx.apply(ev.PoolSet(pool=pool))
    record = created(tx, Kind.POOL, pool.id, pool.name, pool, note=note, shown=shown(pool))
    return lambda: record


def update(
    tx: Transaction, ref: str, change: PoolChange, *, version: int | None = None, dry_run: bool = False
) -> Answer:
    """A pool changes. Raises NotFound, Ambiguous, Stale, Exists, InvalidRules."""
    old = tx.memory.pool(ref)
    check_version(old, version)
    renamed = change.name is not None and change.name != old.name
    if renamed:
        check_free(tx, Kind.POOL, str(change.name))
    pool = _changed(old.spec, change)
    _check_nodes_free(tx.memory, pool)
    _check_labels(old.spec.nodes, pool)
    _check_reservations(tx, pool)
    check_known(tx.memory, Kind.COMPONENT, sorted(change.components or ()))
    note = described(old.note, change.description)
    if dry_run:
        return lambda: replace(old, spec=pool, name=pool.name, note=note)
    renames = _renames(tx.memory, old.name, pool.name) if renamed else Renames()
    profile_events = [ev.ProfileSet(profile=profile) for profile in renames.profiles]
    tx.apply(ev.Together(events=(*profile_events, ev.PoolSet(pool=pool), *renames.events)))
    record = changed(tx, old, pool, name=pool.name, note=note, before=shown(old.spec), after=shown(pool))
    if renamed:
        _follow(tx, pool, renames)
        webhooks.follow(tx, "pool", old.name, pool.name)
    if change.evict_borrowers:
        tx.apply(ev.BorrowersEvicted(pool=pool.id))
        tx.note(Kind.POOL, pool.id, "borrowers told to leave", name=pool.name)
    return lambda: record


@dataclass(frozen=True, slots=True, kw_only=True)
class Renames:
    """What follows the new name of a pool: profiles that name it, and live requests that ask for it."""

    profiles: tuple[Profile, ...] = ()
    requests: tuple[Request, ...] = ()

    @property
    def events(self) -> tuple[ev.RuleEvent, ...]:
        """That the requests ask for it by its new name, and keep their places."""
        return tuple(ev.Redirected(request=request) for request in self.requests)


def _renames(memory: Memory, old: str, new: str) -> Renames:
    profiles = (memory.profile(declared.id).spec for declared in memory.all(Kind.PROFILE))
    named = (record.request for record in memory.live.values() if record.request.pool == old)
    return Renames(
        profiles=tuple(
            replace(profile, pools=tuple(new if name == old else name for name in profile.pools))
            for profile in profiles
            if old in profile.pools
        ),
        requests=tuple(replace(request, pool=new) for request in named),
    )


def _follow(tx: Transaction, pool: Pool, renames: Renames) -> None:
    """Write down what the world knows already."""
    for profile in renames.profiles:
        before = tx.memory.profile(profile.id)
        follow_pool(tx, before, profile)
    for request in renames.requests:
        tx.redirect(request)
    for policy in tx.memory.policies_of(pool.id):
        if policy.spec.pool == pool.id:
            tx.put(replace(policy, name=f"{pool.name}/{policy.spec.subject}"))


def update_node(
    tx: Transaction,
    ref: str,
    node: str,
    change: Callable[[Node], Node],
    *,
    version: int | None = None,
    dry_run: bool = False,
) -> Answer:
    """One node of a pool changes (S6). Raises NotFound where the pool has no such node."""
    old = tx.memory.pool(ref)
    names = [known.name for known in old.spec.nodes]
    if node not in names:
        raise NotFound("node", node, candidates=nearest(node, names) or names[:10])
    nodes = tuple(change(known) if known.name == node else known for known in old.spec.nodes)
    return update(tx, old.id, PoolChange(nodes=nodes), version=version, dry_run=dry_run)


def delete(
    tx: Transaction, ref: str, *, on_work: str = "refuse", version: int | None = None, dry_run: bool = False
) -> Callable[[], PoolDeletion]:
    """A pool goes (S10). on_work: ``refuse``, ``drain`` or ``let-go``. Raises InUse where there is work to refuse."""
    old = tx.memory.pool(ref)
    check_version(old, version)
    queued, active = work_of(tx.memory, old.spec.id)
    policies = tuple(policy.name for policy in tx.memory.policies_of(old.spec.id) if not policy.spec.also)
    check_changes(tx.world, [ev.PoolDropped(pool=old.spec.id)])
    drains = on_work == "drain" and bool(active)
    deletion = PoolDeletion(pool=old, draining=drains, queued=queued, active=active, policies=policies)
    if on_work == "refuse" and (queued or active):
        raise InUse(
            f"pool {old.name!r} has {len(queued)} queued and {len(active)} running requests",
            queued=queued,
            active=active,
        )
    if dry_run:
        return lambda: deletion
    if drains:
        pool = replace(old.spec, state=PoolState.DRAINING)
        tx.apply(ev.PoolSet(pool=pool))
        changed(tx, old, pool, before={"state": "active"}, after={"state": "draining"})
        return lambda: deletion
    _let_go(tx, old)
    return lambda: deletion


def _let_go(tx: Transaction, old: PoolRecord) -> None:
    memory, pool = tx.memory, old.spec.id
    running = list(memory.world.books[pool].allocations)
    drop(tx, old, cause="")
    for request in running:
        state = memory.live[request].state
        assert state.grant is not None
        tx.restate(request, replace(state, grant=replace(state.grant, pool=None, policy=None)), cause="pool deleted")


def drop(tx: Transaction, old: PoolRecord, *, cause: str = "") -> None:
    """A pool goes, and with it the policies that had no other; the others count over what is left to them.

    Raises InvalidRules where what those have reserved is more than that.
    """
    pool, policies = old.spec.id, tx.memory.policies_of(old.spec.id)
    tx.apply(ev.PoolDropped(pool=pool))
    for policy in policies:
        rest, before = policy.spec.without(pool), shown_policy(policy.spec, policy.note)
        if rest is None:
            deleted(tx, policy, shown=before, cause=f"pool {old.name} deleted")
        else:
            name = f"{tx.memory.pool_name(rest.pool)}/{rest.subject}"
            after = shown_policy(rest, policy.note)
            changed(tx, policy, rest, name=name, before=before, after=after)
    deleted(tx, old, shown=shown(old.spec), cause=cause)


def work_of(memory: Memory, pool: PoolId) -> tuple[tuple[RequestId, ...], tuple[RequestId, ...]]:
    """Ids of the requests that wait for the pool, and of those that hold something there."""
    queued: list[RequestId] = []
    for home in _classes_of(memory, pool):
        queued.extend(home.members)
    queued.extend(_claimants_of(memory, pool))
    return tuple(sorted(queued)), tuple(sorted(memory.world.books[pool].allocations))


def count_work_of(memory: Memory, pool: PoolId) -> tuple[int, int]:
    """How many requests wait for the pool, and how many hold something there; at no cost per waiting request."""
    queued = sum(len(home.members) for home in _classes_of(memory, pool)) + len(_claimants_of(memory, pool))
    return queued, len(memory.world.books[pool].allocations)


def _classes_of(memory: Memory, pool: PoolId) -> list[RequestClass]:
    """The classes with a candidate in the pool, each once."""
    queue = memory.world.queue
    policies = memory.world.books[pool].policies
    return list({id(home): home for policy in policies for home in queue.classes_of(policy, pool)}.values())


def _claimants_of(memory: Memory, pool: PoolId) -> list[RequestId]:
    """Requests that evictions are under way for are out of their class."""
    queue = memory.world.queue
    homes = {request: queue.home(request) for request in queue.claimants}
    return [r for r, home in homes.items() if home and any(candidate.pool == pool for candidate in home.key.candidates)]


def shown(pool: Pool) -> dict[str, Json]:
    """A pool as the history shows it."""
    document: dict[str, Json] = {
        "name": pool.name,
        "capacity": plain_vector(pool.capacity),
        "state": pool.state.value,
        "ordering": pool.ordering.value,
        "backfill": pool.backfill,
        "placement": pool.placement.value,
        "max_bypass_s": pool.max_bypass_s,
        "components": sorted(pool.components),
    }
    if pool.nodes:
        document["nodes"] = {
            node.name: {
                "capacity": plain_vector(node.capacity),
                "state": node.state.value,
                "gpu_type": node.gpu_type,
                "labels": dict(node.labels),
            }
            for node in pool.nodes
        }
    return document


def _changed(old: Pool, change: PoolChange) -> Pool:
    capacity = old.capacity
    if change.capacity is not None:
        capacity = of({**dict(old.capacity), **dict(change.capacity)})
    pick = {
        name: value
        for name in ("name", "nodes", "ordering", "backfill", "placement", "max_bypass_s", "components")
        if (value := getattr(change, name)) is not None
    }
    return replace(old, capacity=capacity, **pick)


def _check_reservations(tx: Transaction, pool: Pool) -> None:
    """What policies promise and allow must still fit, whichever windows are open (S9). The error names the pool's key,
    which is what changed."""
    try:
        check_ahead(tx.memory, tx.now, [], pools=[pool])
    except InvalidRules as error:
        _, _, key = error.field.partition(".")
        policies = [schedules.scheduled(policy).versions for policy in tx.memory.policies_of(pool.id)]
        promised = sum(max(get(version.reserved, key) for version in versions) for versions in policies)
        needed = max([promised, *(get(version.limit, key) for versions in policies for version in versions)])
        raise InvalidRules(
            error.message,
            field="nodes" if pool.nodes else f"capacity.{key}",
            value=show(get(nominal_capacity(pool), key)),
            possible=f"{show(needed)} or more, or change the policies first",
        ) from None


def _check_labels(before: Iterable[Node], pool: Pool) -> None:
    """Raise InvalidInput for a label of the server's own that appears, changes or goes."""
    own_before = {node.name: _own_labels(node) for node in before}
    for index, node in enumerate(pool.nodes):
        own, was = _own_labels(node), own_before.get(node.name, {})
        for key in sorted({*own, *was}):
            if own.get(key) != was.get(key):
                raise InvalidInput(
                    f"label {key!r} of node {node.name!r} is the server's to set: labels that begin with "
                    f"{OWN_LABELS!r} are not changed by anybody else",
                    field=f"nodes.{index}.labels.{key}",
                    value=own.get(key, ""),
                    possible=f"a key that does not begin with {OWN_LABELS!r}",
                )


def _own_labels(node: Node) -> dict[str, str]:
    return {key: value for key, value in node.labels if key.startswith(OWN_LABELS)}


def _check_nodes_free(memory: Memory, pool: Pool) -> None:
    """S6: a node belongs to at most one pool."""
    ours = {node.name for node in pool.nodes}
    for declared in memory.all(Kind.POOL):
        other = declared.spec
        if isinstance(other, Pool) and other.id != pool.id:
            for node in other.nodes:
                if node.name in ours:
                    raise InvalidRules(
                        f"node {node.name!r} belongs to pool {other.name!r}",
                        field="nodes",
                        value=node.name,
                        possible=f"take it out of pool {other.name!r} first",
                    )
