"""Settings as an instance type of a cloud: the smallest entry of a catalogue that holds them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from fairpool.sdk.errors import InvalidUse, NothingFits
from fairpool.sdk.settings import GPU, MCPU, MEMORY_MB, ResourceSettings
from fairpool.wire.amounts import read_amount

Amount = Annotated[Decimal, BeforeValidator(lambda value: Decimal(read_amount(value)))]
_MEGABYTES_IN_GIB = Decimal(2**30) / 10**6


class InstanceType(BaseModel):
    """An entry of a catalogue. memory_gib: 2^30 bytes. resources: what else it has, by key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    cpus: Amount
    memory_gib: Amount
    gpus: Amount = Decimal(0)
    gpu_type: str = ""
    resources: Mapping[str, Amount] = Field(default_factory=dict)

    def amounts(self) -> dict[str, Decimal]:
        """What it has, by resource key (S1)."""
        # Rounded up as demands are (S1), so that 16GiB fits what has 16 GiB.
        memory_mb = (self.memory_gib * _MEGABYTES_IN_GIB).to_integral_value(ROUND_CEILING)
        own = {MCPU: self.cpus * 1000, MEMORY_MB: memory_mb, GPU: self.gpus}
        return {**self.resources, **own}


class Catalogue(BaseModel):
    """Instance types to choose from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    catalogue: str = ""
    types: tuple[InstanceType, ...] = Field(min_length=1)


def load_catalogue(path: str | Path | None = None) -> Catalogue:
    """The catalogue in a YAML file; without a path the one that comes with Fairpool (AWS SageMaker's common types).

    Raises InvalidUse naming the file and what is wrong in it.
    """
    import yaml

    place = Path(path) if path is not None else resources.files("fairpool.sdk.data") / "instance_types.yaml"
    try:
        return Catalogue.model_validate(yaml.safe_load(place.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidUse(f"cannot read the catalogue {path}: {error.strerror or error}") from error
    except yaml.YAMLError as error:
        raise InvalidUse(f"the catalogue {path} is not YAML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the top"
        raise InvalidUse(f"the catalogue {path} is wrong at {where}: {first['msg']}") from error


def smallest_instance_type(
    settings: ResourceSettings, catalogue: Catalogue | None = None, *, gpu_type: str | None = None
) -> InstanceType:
    """The smallest entry that holds one part of the demand: fewest GPUs, then other devices, processors, memory.

    Among equals the first in the catalogue, so the choice is always the same. A fraction of a GPU needs a whole one;
    keys that no entry of the catalogue has are counted by pools and not looked at here. gpu_type: only entries with
    these. Raises NothingFits naming what is too large.
    """
    found = catalogue if catalogue is not None else load_catalogue()
    known = {key for entry in found.types for key in entry.amounts()}
    demand = {key: Decimal(str(amount)) for key, amount in settings.to_demand().items() if key in known}
    offered = [entry for entry in found.types if gpu_type is None or entry.gpu_type == gpu_type]
    if not offered:
        types = ", ".join(sorted({entry.gpu_type for entry in found.types if entry.gpu_type}))
        raise NothingFits(f"no instance type has GPUs of type {gpu_type!r}; possible: {types or 'none'}")
    fitting = [entry for entry in offered if _lacking(entry, demand) is None]
    if not fitting:
        raise NothingFits(_why_nothing_fits(offered, demand))
    return min(fitting, key=_size)


def _size(entry: InstanceType) -> tuple[Decimal, Decimal, Decimal, Decimal]:
    return (entry.gpus, sum(entry.resources.values(), Decimal(0)), entry.cpus, entry.memory_gib)


def _lacking(entry: InstanceType, demand: Mapping[str, Decimal]) -> str | None:
    has = entry.amounts()
    return next((key for key, amount in demand.items() if has.get(key, Decimal(0)) < amount), None)


def _why_nothing_fits(offered: list[InstanceType], demand: Mapping[str, Decimal]) -> str:
    for key, amount in demand.items():
        most = max(entry.amounts().get(key, Decimal(0)) for entry in offered)
        if most < amount:
            largest = next(entry.name for entry in offered if entry.amounts().get(key, Decimal(0)) == most)
            return f"{key} {amount:f} is more than any instance type has; the most is {most:.0f} ({largest})"
    asked = ", ".join(f"{key} {amount:f}" for key, amount in demand.items())
    return f"no instance type has all of {asked} at once; ask for less of one of them"
