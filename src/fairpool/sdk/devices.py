"""Which devices a process may see: the environment that shows it exactly what it was granted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final

CUDA: Final = "CUDA_VISIBLE_DEVICES"
NVIDIA: Final = "NVIDIA_VISIBLE_DEVICES"
ROCR: Final = "ROCR_VISIBLE_DEVICES"
HIP: Final = "HIP_VISIBLE_DEVICES"
GOVERNING: Final = (CUDA, NVIDIA, ROCR, HIP)


def visible(indices: Sequence[int], *, surroundings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that make exactly these devices visible; no indices hide all.

    indices: as the grant counts them, from 0. Where the surrounding process is itself restricted to some devices, they
    count among those: index 1 under ``CUDA_VISIBLE_DEVICES=4,5`` is device 5.
    """
    around = os.environ if surroundings is None else surroundings
    names = ",".join(_name(index, around) for index in indices)
    # AMD applies HIP's choice to what ROCr's has left over, so there the granted devices count from 0 again.
    again = ",".join(str(place) for place in range(len(indices)))
    return {CUDA: names, NVIDIA: names, ROCR: names, HIP: again}


def _name(index: int, around: Mapping[str, str]) -> str:
    for variable in (CUDA, ROCR):
        listed = [name.strip() for name in around.get(variable, "").split(",") if name.strip()]
        if listed and not (len(listed) == 1 and listed[0].startswith("-")):
            # A grant beyond what can be seen here is passed on as it is: the driver's own error names it best.
            return listed[index] if index < len(listed) else str(index)
    return str(index)
