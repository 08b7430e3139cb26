"""What a step needs: `ResourceSettings`, how two of them merge, and the demand that they become (S1, S2)."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from fairpool.sdk.checked import Checked
from fairpool.sdk.errors import InvalidUse
from fairpool.sdk.units import ByteUnit, duration_s, memory_bytes
from fairpool.wire.amounts import read_amount

GPU: Final = "gpu"
MCPU: Final = "mcpu"
MEMORY_MB: Final = "memory_mb"
STEP_RUN: Final = "step_run"
MOST_NODES: Final = 1_000
"""`fairpool.wire.requests.MAX_PARTS`, without loading all that is about requests for it."""

METRICS: Final = ("cpu", "memory", "concurrency", "rps")
_KEY: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")
_MEGABYTE: Final = 10**6

Quantity = int | float
"""An amount in units: whole, or the float whose shortest decimal is the exact amount."""


def whole_seconds(value: object) -> object:
    """Seconds rounded up to whole ones; None stays None."""
    return None if value is None else math.ceil(duration_s(value))


Seconds = Annotated[int | float | str | timedelta | None, BeforeValidator(whole_seconds)]
"""A length of time as people write it; a model keeps it as whole seconds."""


class ResourceSettings(Checked):
    """What a step needs. All fields are optional; what is left out is taken from the pipeline, then from the defaults.

    cpu_count: processors, also parts of one (0.5). gpu_count: GPUs, whole or a fraction below one (S2); 0 means none.
    memory: a whole number and a unit, ``16GiB``. pool_resources: amounts of any other key (``{"license/matlab": 1}``).
    preemptible: whether it may borrow and may be evicted while it does (default True, S4).
    node_count: how many equal parts of this size it needs, each whole on a node, all together or not at all (S3).
    profile: a named demand with pools in order of preference; it also says preemptible and max_runtime where these
    settings leave them out. priority: counts only against work of the same policy.
    max_runtime: seconds, or ``2h``: it is ended gracefully then. wait_timeout: how long it is willing to wait.
    min_replicas, max_replicas, autoscaling_metric (cpu, memory, concurrency, rps), autoscaling_target,
    max_concurrency: for pipelines that are deployed and serve calls; 0 as min_replicas scales to zero.

    Raises InvalidUse (a ValueError) naming field, value and what is possible.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    cpu_count: float | None = Field(default=None, gt=0)
    gpu_count: int | float | None = Field(default=None, ge=0)
    memory: str | None = None
    pool_resources: dict[str, Quantity] | None = None
    preemptible: bool = True
    node_count: int | None = Field(default=None, ge=1, le=MOST_NODES)
    min_replicas: int | None = Field(default=None, ge=0)
    max_replicas: int | None = Field(default=None, ge=0)
    autoscaling_metric: Literal["cpu", "memory", "concurrency", "rps"] | None = None
    autoscaling_target: float | None = Field(default=None, gt=0)
    max_concurrency: int | None = Field(default=None, ge=1)
    profile: str | None = Field(default=None, min_length=1, max_length=63)
    priority: int | None = Field(default=None, ge=-(2**31) + 1, le=2**31 - 1)
    max_runtime: Seconds = None
    wait_timeout: Seconds = None

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            for name in values:
                if name not in cls.model_fields:
                    raise ValueError(unknown("field", str(name), list(cls.model_fields)))
        return values

    @field_validator("cpu_count", mode="before")
    @classmethod
    def _exact_cpus(cls, value: Any) -> Any:
        if value is not None:
            read_amount_of("cpu_count", value)
        return value

    @field_validator("gpu_count", mode="before")
    @classmethod
    def _whole_gpus_or_a_fraction(cls, value: Any) -> Any:
        if value is None:
            return None
        return whole_or_fraction("gpu_count", read_amount_of("gpu_count", value))

    @field_validator("max_runtime")
    @classmethod
    def _some_time(cls, value: Any) -> Any:
        if value == 0:
            raise ValueError("max_runtime is 0; possible: 1 second or more, or nothing for no limit")
        return value

    @field_validator("memory")
    @classmethod
    def _readable_memory(cls, value: str | None) -> str | None:
        if value is not None:
            memory_bytes(value)
        return value

    @field_validator("pool_resources", mode="before")
    @classmethod
    def _exact_amounts(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {str(key): _pool_amount(str(key), amount) for key, amount in value.items()}

    @model_validator(mode="after")
    def _replicas_in_order(self) -> Self:
        # 0 as max_replicas stands for "no bound", as the field is read by serving platforms.
        least, most = self.min_replicas, self.max_replicas
        if least is not None and most and least > most:
            raise ValueError(f"min_replicas {least} is over max_replicas {most}; possible: min_replicas up to {most}")
        return self

    @property
    def empty(self) -> bool:
        """Whether nothing is set."""
        return not self.given()

    @property
    def max_runtime_s(self) -> int | None:
        """`max_runtime` in seconds."""
        return None if self.max_runtime is None else math.ceil(duration_s(self.max_runtime))

    @property
    def wait_timeout_s(self) -> int | None:
        """`wait_timeout` in seconds."""
        return None if self.wait_timeout is None else math.ceil(duration_s(self.wait_timeout))

    def given(self) -> dict[str, Any]:
        """The fields that were set on purpose, by name; None is no setting."""
        return {
            name: value
            for name in type(self).model_fields
            if name in self.model_fields_set and (value := getattr(self, name)) is not None
        }

    def get_memory(self, unit: ByteUnit | str = ByteUnit.GB) -> float | None:
        """The memory in `unit`, or None where none is set."""
        if self.memory is None:
            return None
        return memory_bytes(self.memory) / ByteUnit(unit).byte_value

    def merged_over(self, base: ResourceSettings | None) -> ResourceSettings:
        """These settings with what they leave out taken from `base`, field by field; `pool_resources` is one field."""
        if base is None:
            return self
        return type(self)(**{**base.given(), **self.given()})

    def to_demand(self) -> dict[str, Quantity]:
        """What one part needs, by resource key (S1). The server adds `step_run` itself.

        Typed fields win over the same key in `pool_resources`; what is 0 is left out. Exact: nothing passes through
        binary fractions.
        """
        demand: dict[str, Quantity] = dict(self.pool_resources or {})
        if self.gpu_count is not None:
            demand[GPU] = self.gpu_count
        if self.cpu_count is not None:
            demand[MCPU] = math.ceil(Decimal(str(self.cpu_count)) * 1000)
        if self.memory is not None:
            demand[MEMORY_MB] = -(-memory_bytes(self.memory) // _MEGABYTE)
        return {key: amount for key, amount in demand.items() if amount}


SettingsLike = Mapping[str, Any] | None


def read_settings(settings: SettingsLike, *, of: str) -> ResourceSettings:
    """The resources in a ``settings={"resources": …}`` argument; empty ones where there is none.

    Raises InvalidUse for another key, another kind of value, or a wrong field.
    """
    if settings is None:
        return ResourceSettings()
    if isinstance(settings, ResourceSettings):
        raise InvalidUse(f'the settings of {of} must be named: settings={{"resources": ResourceSettings(…)}}')
    if not isinstance(settings, Mapping):
        raise InvalidUse(f'the settings of {of} are a dictionary: settings={{"resources": ResourceSettings(…)}}')
    for key in settings:
        if key != "resources":
            raise InvalidUse(f"{of}: {unknown('settings', str(key), ['resources'])}")
    found = settings.get("resources")
    if found is None:
        return ResourceSettings()
    return found if isinstance(found, ResourceSettings) else ResourceSettings.model_validate(found)


def unknown(what: str, name: str, possible: list[str]) -> str:
    """A sentence about a name that does not exist, with the nearest one that does."""
    near = difflib.get_close_matches(name, possible, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown {what} {name!r}; {hint}possible: {', '.join(possible)}"


def read_amount_of(field: str, value: object) -> int | Decimal:
    """The exact amount; the error names the field and the value."""
    try:
        return read_amount(value)
    except ValueError as error:
        raise ValueError(f"{field} {value!r} is {error}") from None


def whole_or_fraction(field: str, amount: int | Decimal) -> Quantity:
    """A number of GPUs as people give it; refuses what is neither whole nor below one (S2)."""
    if amount > 1 and amount != int(amount):
        raise ValueError(
            f"{field} {amount} is neither a whole number nor a fraction below one: a fraction lives on one device; "
            f"possible: {int(amount)}, {int(amount) + 1}, or 0.001 to 0.999"
        )
    return plain(amount)


def plain(amount: int | Decimal) -> Quantity:
    """The amount as an int where it is whole, else as the float that reads back as it."""
    return int(amount) if amount == int(amount) else float(amount)


def _pool_amount(key: str, value: object) -> Quantity:
    if not _KEY.fullmatch(key):
        raise ValueError(
            f"resource key {key[:70]!r} is not possible; possible: 1 to 63 letters, digits and . _ - /, with a letter "
            "or digit at both ends"
        )
    if key == STEP_RUN:
        raise ValueError("step_run is counted by the server, one for each step; leave it out")
    amount = read_amount_of(f"pool_resources[{key!r}]", value)
    return whole_or_fraction(key, amount) if key == GPU else plain(amount)
