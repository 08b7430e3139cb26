"""What a store's objects and live requests make up for a scheduler that begins. Pure."""

from __future__ import annotations

from typing import cast

from fairpool.app.ports import Stored
from fairpool.app.records import SETTINGS_ID, AnyDeclared, Kind, RequestRecord
from fairpool.core.ids import RequestId
from fairpool.core.policies import Policy, Profile
from fairpool.core.pools import Pool
from fairpool.core.world import Snapshot


def stored(
    declared: tuple[AnyDeclared, ...], live: dict[RequestId, RequestRecord], *, sequence: int, history_seq: int
) -> Stored:
    """What these objects and live requests make up, in the order in which `World.snapshot` has it."""
    held = [allocation for record in live.values() if (allocation := record.allocation) is not None]
    queued = [record.request for record in live.values() if record.state.grant is None]
    claims = [record.state.claim for record in live.values() if record.state.claim is not None]
    specs = [(one.kind, one.spec) for one in declared]
    settings = next((one.spec for one in declared if one.kind is Kind.SETTINGS and one.id == SETTINGS_ID), None)
    snapshot = Snapshot(
        pools=tuple(sorted((cast("Pool", spec) for kind, spec in specs if kind is Kind.POOL), key=lambda one: one.id)),
        policies=tuple(
            sorted((cast("Policy", spec) for kind, spec in specs if kind is Kind.POLICY), key=lambda one: one.id)
        ),
        profiles=tuple(
            sorted((cast("Profile", spec) for kind, spec in specs if kind is Kind.PROFILE), key=lambda one: one.name)
        ),
        queued=tuple(sorted(queued, key=lambda request: request.id)),
        allocations=tuple(sorted(held, key=lambda allocation: (allocation.sequence, allocation.request.id))),
        claims=tuple(sorted(claims, key=lambda claim: claim.request)),
        require_policy=isinstance(settings, dict) and bool(settings.get("require_policy")),
        sequence=sequence,
    )
    return Stored(snapshot=snapshot, live=live, declared=declared, history_seq=history_seq)
