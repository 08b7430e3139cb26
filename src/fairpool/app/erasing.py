"""The end of a workspace that closes: taken over, looked at once more, and removed; by whoever leads ``default``.

Each step may be the last before a crash. Until the workspace is dropped from the installation's objects it still
closes, and whoever leads next begins again: taking over, looking and removing twice is the same as once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from fairpool.app.leading import LEADER_TTL_S
from fairpool.app.ports import Clock, Store
from fairpool.app.scheduler import Command
from fairpool.app.use_cases import workspaces
from fairpool.app.use_cases.workspaces import WorkspaceRecord

log = logging.getLogger(__name__)

ACTOR: Final = "system"

Decide: TypeAlias = Callable[[Command[Any]], object]
"""Has a command run in ``default``, and returns once it is committed. Raises what it raises, and NotLeading."""


def finish(record: WorkspaceRecord, store: Store, decide: Decide, clock: Clock, *, holder: str) -> bool:
    """Remove a workspace that closes, or open it again where work has come to it meanwhile; whether either is done.

    store: the workspace's. decide: for the installation. holder: as whom to take the workspace over:
    nobody who serves it may have that name. False where a server still leads it. Raises StoreError, and NotLeading
    where another server leads ``default`` by now.
    """
    seat = store.leases.acquire(holder, clock.now(), LEADER_TTL_S)
    if seat.holder != holder:
        return False
    # From here on nobody else writes there: what is seen now stays so.
    try:
        work = workspaces.work_in(store.reader)
        if work:
            log.warning("the workspace %s stays, it is at work: %s", record.name, work)
            decide(lambda tx: workspaces.reopen(tx, record.id, work))
            return True
        decide(lambda tx: workspaces.begin_to_erase(tx, record.id))
        while store.erase(seat.token):
            store.leases.renew(seat.token, clock.now(), LEADER_TTL_S)
    finally:
        store.leases.release(seat.token)
    decide(lambda tx: workspaces.drop(tx, record.id))
    log.info("the workspace %s is gone with all that it had", record.name)
    return True
