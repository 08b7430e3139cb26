"""What the schema's constraints say, for the store in memory: checked before anything changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairpool.app.records import AnyDeclared, Kind, RequestRecord, State
from fairpool.core.amounts import MAX_UNITS, WHOLE, Amounts
from fairpool.core.ids import RequestId
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Pool
from fairpool.core.requests import Status
from fairpool.store.constraints import violated

Device = tuple[str, str, int]
"""Pool, node, index."""

_NAMED = (Kind.POOL, Kind.PROFILE, Kind.COMPONENT, Kind.STACK, Kind.SETTINGS)
_NAME_RULES = {Kind.POOL: "uq_pools_name", Kind.PROFILE: "uq_profiles_name"}
_MOST = MAX_UNITS * WHOLE


def check_declared(objects: Iterable[AnyDeclared]) -> None:
    """Whether these may stand side by side. Raises ConstraintViolated."""
    objects = list(objects)
    pools = {one.id for one in objects if one.kind is Kind.POOL}
    names: set[tuple[Kind, str]] = set()
    nodes: set[str] = set()
    subjects: set[tuple[str, Subject]] = set()
    for one in objects:
        if one.version < 1:
            raise violated(f"ck_{one.kind.value}_version")
        if one.kind in _NAMED:
            if (one.kind, one.name) in names:
                raise violated(_NAME_RULES.get(one.kind, "uq_documents_name"))
            names.add((one.kind, one.name))
        if isinstance(one.spec, Pool):
            _check_pool(one.spec, nodes)
        elif isinstance(one.spec, Policy):
            _check_policy(one.spec, pools, subjects)


def _check_pool(pool: Pool, nodes: set[str]) -> None:
    _check_amounts("ck_pool_amounts_amount", pool.capacity)
    for node in pool.nodes:
        _check_amounts("ck_pool_amounts_amount", node.capacity)
        if node.name in nodes:
            raise violated("pk_pool_nodes")
        nodes.add(node.name)


def _check_policy(policy: Policy, pools: set[str], subjects: set[tuple[str, Subject]]) -> None:
    if policy.pool not in pools:
        raise violated("fk_policies_pool")
    if not pools.issuperset(policy.also):
        raise violated("fk_policy_pools_pool")
    if (policy.pool, policy.subject) in subjects:
        raise violated("uq_policies_subject")
    subjects.add((policy.pool, policy.subject))
    _check_amounts("ck_policy_amounts_reserved", policy.reserved)
    _check_amounts("ck_policy_amounts_limit", policy.limit)
    limits = dict(policy.limit)
    if any(value > limits.get(key, value) for key, value in policy.reserved):
        raise violated("ck_policy_amounts_reserved_within_limit")


def _check_amounts(constraint: str, amounts: Amounts) -> None:
    if any(not 0 <= value <= _MOST for _, value in amounts):
        raise violated(constraint)


def check_state(state: State) -> None:
    """Whether the state is whole (INV-8). Raises InvariantBroken."""
    status, grant = state.status, state.grant
    evicted = grant is not None and grant.eviction is not None
    rules = (
        ("ck_requests_version", state.version > 0),
        ("ck_requests_pool_and_policy", grant is None or (grant.pool is None) == (grant.policy is None)),
        ("ck_requests_held", status not in (Status.ALLOCATED, Status.PREEMPTING) or grant is not None),
        ("ck_requests_was_held", status not in (Status.RELEASED, Status.PREEMPTED) or grant is not None),
        ("ck_requests_not_held", status not in (Status.QUEUED, Status.REJECTED) or grant is None),
        ("ck_requests_evicted", status not in (Status.PREEMPTING, Status.PREEMPTED) or evicted),
        ("ck_requests_not_evicted", status not in (Status.QUEUED, Status.ALLOCATED, Status.RELEASED) or not evicted),
        ("ck_requests_claim", state.claim is None or status is Status.QUEUED),
        ("ck_requests_ended", (state.ended_at is not None) == status.is_final),
    )
    for constraint, holds in rules:
        if not holds:
            raise violated(constraint)


def check_forward(before: State, after: State) -> None:
    """Whether the status goes forward (section 9; several steps may share a commit). Raises InvariantBroken."""
    old, new = before.status, after.status
    if old is new:
        return
    backward = new is Status.QUEUED or (old is Status.PREEMPTING and new is not Status.PREEMPTED)
    if old.is_final or backward:
        raise violated("tr_requests_forward")


def devices(state: State) -> Iterator[tuple[Device, int]]:
    """The devices that a request in this state holds in a pool, with their shares, part by part.

    Raises InvariantBroken for shares that cannot be.
    """
    grant = state.grant
    if grant is None or grant.pool is None or state.status.is_final:
        return
    for part in grant.parts:
        if len({device for device, _ in part.devices}) < len(part.devices):
            raise violated("pk_held_devices")
        for device, share in part.devices:
            if not 1 <= share <= WHOLE:
                raise violated("ck_held_devices_share")
            yield (grant.pool, part.node, device), share


class Holdings:
    """The devices and the places in the order of granting that live requests hold."""

    def __init__(self) -> None:
        self._shares: dict[Device, int] = {}
        self._places: dict[int, RequestId] = {}

    def move(self, changes: Iterable[tuple[RequestId, State | None, State]]) -> None:
        """Let requests go from one state to another, or raise InvariantBroken and change nothing."""
        changes = list(changes)
        shares = self._shares_moved(changes)
        left = {place for _, before, _ in changes if before and (place := _place(before)) is not None}
        taken: dict[int, RequestId] = {}
        for request, _, after in changes:
            place = _place(after)
            if place is None:
                continue
            if place in taken or (place in self._places and place not in left):
                raise violated("uq_requests_grant_sequence")
            taken[place] = request
        for device, more in shares.items():
            self._shares[device] = self._shares.get(device, 0) + more
            if not self._shares[device]:
                del self._shares[device]
        for place in left:
            self._places.pop(place, None)
        self._places |= taken

    def _shares_moved(self, changes: list[tuple[RequestId, State | None, State]]) -> dict[Device, int]:
        shares: dict[Device, int] = {}
        for _, before, after in changes:
            for device, share in devices(before) if before else ():
                shares[device] = shares.get(device, 0) - share
            for device, share in devices(after):
                shares[device] = shares.get(device, 0) + share
        for device, more in shares.items():
            if more > 0 and self._shares.get(device, 0) + more > WHOLE:
                raise violated("tr_held_devices_shares")
        return shares


def _place(state: State) -> int | None:
    return None if state.grant is None or state.status.is_final else state.grant.sequence


def latest(records: Iterable[RequestRecord], updated: Iterable[tuple[RequestId, State]]) -> dict[RequestId, State]:
    """The states after a batch, by request; of two in one batch the later counts."""
    return {record.id: record.state for record in records} | dict(updated)
