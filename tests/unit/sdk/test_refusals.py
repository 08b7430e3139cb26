"""Wrong uses of the SDK are refused where they are written, before anything is asked of a server.

What else `ResourceSettings` refuses is in test_settings.py, what a real server refuses in tests/e2e/sdk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from fairpool import ResourceSettings, StepRetryConfig, get_step_context, hold, pipeline, step
from fairpool.sdk.errors import InvalidUse, StackError
from fairpool.wire.model import MAX_PRIORITY
from fairpool.wire.requests import RequestCreate
from tests.unit.sdk.fake_server import FakeServer


def wrong(value: object) -> Any:
    """A value that no type checker would let pass."""
    return value


def held(**fields: Any) -> object:
    with hold(**fields) as found:
        return found


def nothing() -> None:
    """A function that is a step or a pipeline if all else is right."""


def resources(**fields: object) -> Any:
    return {"resources": fields}


RETRY = StepRetryConfig()

# fmt: off
RETRIES: list[tuple[str, dict[str, Any], str]] = [
    ("negative", {"max_retries": -1}, "max_retries"),
    ("a fraction", {"max_retries": 1.5}, "max_retries"),
    ("delay in words", {"delay": "soon"}, "'soon' is no length of time; possible: seconds"),
    ("shrinking", {"backoff": 0.5}, "backoff"),
    ("of no number", {"backoff": float("nan")}, "backoff"),
    ("unknown field", {"backof": 2}, "unknown field 'backof'; did you mean 'backoff'"),
]

SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    ("one and a half GPUs", {"gpu_count": 1.5}, "gpu_count 1.5 .* a fraction lives on one device; possible: 1, 2"),
    ("replicas the wrong way", {"min_replicas": 3, "max_replicas": 2}, "min_replicas 3 is over max_replicas 2"),
    ("half a node", {"node_count": 1.5}, "node_count"),
    ("no nodes", {"node_count": 0}, "node_count"),
    ("priority over the largest", {"priority": 2**31}, "2147483648 is too large; possible: 2147483647 or less"),
    ("priority below the smallest", {"priority": -(2**31)}, "priority -2147483648 is too small; possible: -2147483647"),
    ("key with a NUL", {"pool_resources": {"a\0": 1}}, r"resource key 'a\\x00'"),
    ("endless run time", {"max_runtime": 10**30}, "is no length of time"),
    ("a list of keys", {"pool_resources": ["gpu"]}, "pool_resources"),
    ("perhaps preemptible", {"preemptible": "often"}, "preemptible"),
]

USES: list[tuple[str, Callable[[], object], type[Exception], str]] = [
    ("step of no function", lambda: step(wrong(5)), InvalidUse, "5 cannot be a step: steps are functions"),
    ("pipeline of no function", lambda: pipeline(wrong(5)), InvalidUse, "5 cannot be a pipeline"),
    ("retry that is a number", lambda: step(retry=wrong(3))(nothing), InvalidUse, "retry is 3; possible: Step"),
    ("retry of one call", lambda: step(nothing).with_options(retry=wrong(3)), InvalidUse, "retry is 3; possible"),
    ("name with a slash", lambda: step(name="a/b")(nothing), InvalidUse, "cannot be named 'a/b'"),
    ("name that moves the cursor", lambda: step(name="a\x1b[2J")(nothing), InvalidUse, r"'a\\x1b\[2J'"),
    ("unknown settings", lambda: step(settings=wrong({"resource": 1}))(nothing), InvalidUse, "mean 'resources'"),
    ("settings of a pipeline", lambda: pipeline(settings=resources(gpus=1))(nothing), InvalidUse,
     "unknown field 'gpus'; did you mean 'gpu_count'"),
    ("settings of one call", lambda: step(nothing).with_options(settings=resources(gpu_count=-1)), InvalidUse,
     "gpu_count -1 is negative"),
    ("context outside a step", get_step_context, InvalidUse, "works inside a running step"),
    ("failure of another kind", lambda: pipeline(on_failure=wrong("stop"))(nothing), InvalidUse, "finish"),
    ("hold of unknown fields", lambda: held(gpus=1), InvalidUse, "did you mean 'gpu_count'"),
    ("hold of memory in words", lambda: held(memory="16 gigs"), InvalidUse, "possible: 512MB"),
    ("hold in a pool of no name", lambda: held(gpu_count=1, pool=5), InvalidUse, "pool: 5: not text"),
    ("hold under two lines", lambda: held(gpu_count=1, name="a\nb"), InvalidUse, "control character"),
    ("hold under a long name", lambda: held(gpu_count=1, name="x" * 201), InvalidUse, "at most 200 characters"),
    ("unknown stack", lambda: pipeline(nothing)(stack="defalt"), StackError, "did you mean 'default'"),
]
# fmt: on


@pytest.mark.parametrize(("fields", "says"), [row[1:] for row in RETRIES], ids=[row[0] for row in RETRIES])
def test_a_wrong_retry_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidUse, match=says):
        StepRetryConfig(**fields)


@pytest.mark.parametrize(("fields", "says"), [row[1:] for row in SETTINGS], ids=[row[0] for row in SETTINGS])
def test_wrong_settings_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidUse, match=says):
        ResourceSettings(**fields)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: ResourceSettings(cpu_count=0, memory="1G"),
        lambda: setattr(RETRY, "delay", 1),
        lambda: ResourceSettings.model_validate({1: 2}),
        lambda: ResourceSettings.model_validate(5),
        lambda: StepRetryConfig(backoff=0),
    ],
)
def test_a_refusal_is_a_value_error_in_our_words_alone(refused: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="possible: ") as caught:
        refused()
    assert type(caught.value) is InvalidUse
    assert not any(
        word in str(caught.value) for word in ("pydantic", "validation error", "input_value", "Input should")
    )
    assert caught.value.__suppress_context__


def test_settings_inside_a_model_of_a_program_are_refused_as_its_field() -> None:
    class Config(BaseModel):
        train: ResourceSettings

    with pytest.raises(ValidationError, match="unknown field 'gpus'; did you mean 'gpu_count'"):
        Config.model_validate({"train": {"gpus": 1}})
    assert Config.model_validate({"train": {"gpu_count": 1}}).train == ResourceSettings(gpu_count=1)


@pytest.mark.parametrize("priority", [-MAX_PRIORITY, MAX_PRIORITY])
def test_every_priority_that_settings_take_a_request_takes(priority: int) -> None:
    asked = ResourceSettings(priority=priority).priority
    assert asked is not None and RequestCreate(demand={}, priority=asked).priority == priority


@pytest.mark.parametrize(("use", "kind", "says"), [row[1:] for row in USES], ids=[row[0] for row in USES])
def test_a_wrong_use_is_refused_and_asks_for_nothing(
    serve: Callable[..., FakeServer], use: Callable[[], object], kind: type[Exception], says: str
) -> None:
    server = serve(gpus=1)
    with pytest.raises(kind, match=says):
        use()
    assert server.requests == {}


@pytest.mark.parametrize("value", ["soon", "1.5", "0", "86401", "-1"])
def test_a_lease_of_the_environment_that_is_not_possible_is_named(
    serve: Callable[..., FakeServer], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("FAIRPOOL_LEASE_S", value)
    server = serve(gpus=1)
    with pytest.raises(InvalidUse, match=f"FAIRPOOL_LEASE_S is '{value}'; possible: whole seconds from 1 to 86400"):
        held(gpu_count=1)
    assert server.requests == {}
