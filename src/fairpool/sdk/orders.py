"""The order that a step's process gets: a small JSON document in the artifact store, and what it answers with."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

EXIT_COMPLETED: Final = 0
EXIT_FAILED: Final = 1
EXIT_ABORTED: Final = 75
"""EX_TEMPFAIL of sysexits: it can be tried again."""

DEFAULT_GRACE_S: Final = 30.0
"""What a step has to end when nobody says how long (S31)."""

CONTROL_ENV: Final = "FAIRPOOL_CONTROL"
"""Set to ``stdin`` where the process hears on its standard input that it must end (see `abort_line`)."""


class Ending(StrEnum):
    """How an attempt ended, as the step's own process says it."""

    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Everything that a step's process needs to know. Names are those of objects in the artifact store `store`.

    function: module and qualname to import, or None where `function_data` holds the function itself.
    sys_path, cwd: the driver's, so that the same imports work.
    """

    store: str
    run_id: str
    run_name: str
    step_id: str
    step_name: str
    attempt: int
    request_id: str | None
    pool: str | None
    devices: tuple[str, ...]
    function: dict[str, str] | None
    function_data: str
    inputs: str
    output: str
    outcome: str
    checkpoint: str
    sys_path: tuple[str, ...]
    cwd: str

    def to_json(self) -> bytes:
        """The order as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Order:
        """The order that `to_json` wrote."""
        fields = json.loads(data)
        return cls(**{**fields, "devices": tuple(fields["devices"]), "sys_path": tuple(fields["sys_path"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an attempt. exception: the name of the stored exception, if one was raised. text: for people."""

    ending: Ending
    exception: str = ""
    text: str = ""

    def to_json(self) -> bytes:
        """The outcome as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Outcome:
        """The outcome that `to_json` wrote."""
        fields = json.loads(data)
        return cls(**{**fields, "ending": Ending(fields["ending"])})


def abort_line(reason: str, grace_s: float) -> bytes:
    """What a step's process reads on its control input when it must end within `grace_s` seconds."""
    return json.dumps({"abort": reason, "grace_s": round(grace_s, 3)}).encode() + b"\n"
