"""Short ways to write down what happens on the day."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fairpool.app.errors import Exists
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import requests
from fairpool.core.amounts import vector
from fairpool.core.ids import PolicyId, PoolId
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Node, Pool
from fairpool.core.requests import Demand
from tests.crashes.living import Life, Step

Doing = Callable[[Life, Transaction], Callable[[], Any]]
LONG = 86_400


def call(name: str, do: Doing, *, at_s: float = 0, actor: str = "local", again: type[Exception] | None = None) -> Step:
    """One call, alone in its round."""
    return Step(
        name=name,
        do=lambda life: life.server.do(lambda tx: do(life, tx), actor=actor),
        at_s=at_s,
        again=(again,) if again else (),
    )


def once(name: str, do: Callable[[Transaction], Callable[[], Any]], *, at_s: float = 0) -> Step:
    """Something is made, which is there when it is made again."""
    return call(name, lambda _, tx: do(tx), at_s=at_s, again=Exists)


def until(name: str, is_so: Callable[[Life], bool], *, at_s: float) -> Step:
    """Time goes by."""
    return Step(name=name, do=lambda life: life.look_until(is_so, name), at_s=at_s)


def ask(name: str, subject: str, gpus: object = 1, **named: Any) -> requests.Ask:
    """What somebody asks for. Its owner lives all day unless it says otherwise."""
    demand = Demand.of(vector({"gpu": gpus}))
    asked = requests.Ask(
        demand=demand, subjects=(Subject.parse(subject),), name=name, idempotency_key=f"key of {name}", lease_s=LONG
    )
    return replace(asked, **named)


def submit(name: str, subject: str, gpus: object = 1, *, at_s: float = 0, expect: str = "", **named: Any) -> Step:
    """A request, alone in its round. expect: what it must be when it is answered first."""

    def do(life: Life) -> Any:
        asked = ask(name, subject, gpus, **named)
        if "retry_of" in named:
            asked = replace(asked, retry_of=life.id(named["retry_of"]))
        made = life.server.do(lambda tx: requests.submit(tx, asked), actor="local")
        assert made.status.value == expect or not expect, f"{name} is {made.status}"
        return made

    return Step(name=name, do=do, at_s=at_s)


def ends(name: str, how: Callable[..., Any], *, at_s: float = 0, becomes: str) -> Step:
    """A request's owner lets go of it, or withdraws it."""

    def do(life: Life) -> Any:
        made = life.server.do(lambda tx: how(tx, life.id(name)), actor="local")
        assert made.status.value == becomes, f"{name} is {made.status}"
        return made

    return Step(name=f"{name} ends", do=do, at_s=at_s)


def policy(subject: str, reserved: dict[str, object], **named: Any) -> Policy:
    return Policy(id=PolicyId(""), pool=PoolId(""), subject=Subject.parse(subject), reserved=vector(reserved), **named)


def pool(name: str, capacity: dict[str, object] | None = None, *, nodes: tuple[Node, ...] = ()) -> Pool:
    return Pool(id=PoolId(""), name=name, capacity=vector(capacity or {}), nodes=nodes)


def status_is(name: str, status: str) -> Callable[[Life], bool]:
    return lambda life: life.status(name) == status
