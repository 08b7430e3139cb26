"""Settings as Kubernetes understands them: the requests and limits of a container."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Final

from fairpool.sdk.errors import NothingFits
from fairpool.sdk.settings import ResourceSettings
from fairpool.sdk.units import memory_bytes

GPU_RESOURCE: Final = "nvidia.com/gpu"


def to_kubernetes_resources(
    settings: ResourceSettings, *, gpu_resource: str = GPU_RESOURCE
) -> dict[str, dict[str, str]]:
    """``{"requests": …, "limits": …}`` of a container that is given what the settings ask for.

    cpu is requested and not limited, because a throttled processor helps nobody; memory and GPUs are both, as
    Kubernetes wants for extended resources. Keys of `pool_resources` are counted by pools, not by Kubernetes, except
    those that name an extended resource (``example.com/fpga``). gpu_resource: what the cluster calls its GPUs.
    Raises NothingFits for a fraction of a GPU, which a plain device plug-in cannot give.
    """
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    if settings.cpu_count is not None:
        requests["cpu"] = f"{math.ceil(Decimal(str(settings.cpu_count)) * 1000)}m"
    if settings.memory is not None:
        # Kubernetes has the same units but writes 1024-based ones without the B, and bytes exactly.
        requests["memory"] = limits["memory"] = str(memory_bytes(settings.memory))
    if settings.gpu_count:
        if settings.gpu_count != int(settings.gpu_count):
            raise NothingFits(
                f"gpu_count {settings.gpu_count} is a part of a GPU, and {gpu_resource} is counted in whole ones; "
                "possible: a whole number, or a resource of the cluster's own for shares (gpu_resource=…)"
            )
        requests[gpu_resource] = limits[gpu_resource] = str(int(settings.gpu_count))
    for key, amount in sorted((settings.pool_resources or {}).items()):
        domain, slash, _ = key.partition("/")
        if slash and "." in domain and amount and key != gpu_resource:
            requests[key] = limits[key] = str(math.ceil(amount))
    return {"requests": requests, "limits": limits}
