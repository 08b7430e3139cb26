"""What a command sees of what it was granted."""

from __future__ import annotations

import os

from fairpool.sdk import granting
from fairpool.sdk.devices import visible
from fairpool.wire.requests import RequestView

RUN_ID = "FAIRPOOL_RUN_ID"
ATTEMPT = "FAIRPOOL_ATTEMPT"
NODES = "FAIRPOOL_NODES"
PID = "FAIRPOOL_PID"
DEADLINE_AT = "FAIRPOOL_DEADLINE_AT"
SECONDS_LEFT = "FAIRPOOL_SECONDS_LEFT"
REASON = "FAIRPOOL_REASON"


def environment_of(request: RequestView, *, attempt: int) -> dict[str, str]:
    """The surroundings of a granted command: exactly its devices, who it is, and which attempt.

    What no policy governs keeps the devices of its surroundings, unless it asked for none (S15).
    """
    grant = granting.grant_of(request)
    told = {**os.environ, **granting.environment_of(grant), ATTEMPT: str(attempt)}
    if not grant.governed and not request.demand.get("gpu"):
        told |= visible(())
    if request.run:
        told[RUN_ID] = request.run
    nodes = [part.node for part in request.allocation.parts if part.node] if request.allocation else []
    if nodes:
        told[NODES] = ",".join(nodes)
    return told


def devices_told(request: RequestView) -> str:
    """The granted devices for a person: ``GPU 0, 1 on n1``, or nothing."""
    told = []
    for part in request.allocation.parts if request.allocation is not None else ():
        if part.devices:
            shares = [
                f"{device.index}" if device.share == 1 else f"{device.index} (×{device.share})"
                for device in part.devices
            ]
            told.append(f"GPU {', '.join(shares)}" + (f" on {part.node}" if part.node else ""))
    return "; ".join(told)
