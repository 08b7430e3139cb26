"""A pool that two teams share, and in everything that is private to the other one a word that must not get out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.integration.serving import Caller
from tests.waiting import wait_until

WORD = "canary"
"""Stands in everything that is private to the other team."""


@dataclass
class Scene:
    """A pool that two teams share.

    others: requests of the other team by status. away: one of theirs where the member has no business. waiting: the
    member's own.
    """

    owner: Caller
    alice: Caller
    others: dict[str, str]
    away: str
    run: str
    step: str
    waiting: str


def made_by(owner: Caller) -> Scene:
    """The scene on that server."""
    owner.ok("POST", "/workspaces", {"name": f"{WORD}-workspace"})
    owner.ok("POST", "/users", {"name": "alice"})
    owner.ok("POST", "/users", {"name": f"{WORD}-user", "role": "operator", "email": f"{WORD}@example.org"})
    owner.ok("POST", "/teams", {"name": "mine", "members": ["alice"]})
    owner.ok("POST", "/teams", {"name": "theirs", "members": [f"{WORD}-user"]})
    owner.ok("POST", "/service-accounts", {"name": f"{WORD}-bot", "teams": ["theirs"]})
    callers = {}
    for whose in ("user:alice", f"user:{WORD}-user", f"service-account:{WORD}-bot"):
        token = owner.ok("POST", "/tokens", {"name": f"{whose.partition(':')[2]}-token", "owner": whose})
        callers[whose] = Caller(owner.url, token["token"])
    alice, bob, bot = callers.values()
    owner.ok("POST", "/pools", {"name": "shared", "capacity": {"gpu": 8}})
    owner.ok("POST", "/pools", {"name": f"{WORD}-pool", "capacity": {"gpu": 8}})
    # The rules that concern the member were made by somebody of the other team.
    bob.ok("POST", "/policies", {"pool": "shared", "subject": "team:mine", "reserved": {"gpu": 2}})
    bob.ok("POST", "/policies", {"pool": "shared", "subject": "team:theirs", "reserved": {"gpu": 4}, "grace_s": 900})
    bob.ok("POST", "/policies", {"pool": "shared", "subject": f"user:{WORD}-user", "priority": 5})
    bob.ok("POST", "/policies", {"pool": f"{WORD}-pool", "subject": "team:theirs"})
    bob.ok("POST", "/profiles", {"name": f"{WORD}-profile", "demand": {"gpu": 1}, "pools": [f"{WORD}-pool"]})
    bob.ok("POST", "/profiles", {"name": "half", "demand": {"gpu": 0.5}, "pools": ["shared"]})
    run = bob.ok("POST", "/runs", {"name": f"{WORD}-run", "labels": {f"{WORD}-label": WORD}, "user": f"{WORD}-login"})
    step = bob.ok("POST", f"/runs/{run['id']}/steps", {"name": f"{WORD}-step", "log": f"/logs/{WORD}"})
    bob.ok("PATCH", f"/steps/{step['id']}", {"status": "running", "checkpoint": f"{WORD}-checkpoint"})

    def ask(who: Caller, gpus: int, **said: object) -> str:
        private = {
            "name": f"{WORD}-request",
            "labels": {"command": f"python {WORD}.py", f"{WORD}-key": f"{WORD}-value"},
            "run": run["id"],
            "step": step["id"],
        }
        return str(who.ok("POST", "/requests", {"demand": {"gpu": gpus}, "pool": "shared", **private, **said})["id"])

    others = {
        "released": ask(bob, 1, idempotency_key=f"{WORD}-again"),
        "rejected": ask(bob, 99),
        "allocated": ask(bot, 4, team="theirs"),
        "preempting": ask(bob, 3, max_runtime_s=3600, profile=None),
    }
    bob.ok("POST", f"/requests/{others['released']}/release", {"reason": f"{WORD} is done"})
    ask(bob, 1)
    others["queued"] = ask(bob, 2)
    alice.ok("POST", "/requests", {"demand": {"gpu": 2}, "pool": "shared"})  # what is reserved for her is taken back
    waiting = alice.ok("POST", "/requests", {"demand": {"gpu": 4}, "pool": "shared", "name": "hers"})["id"]
    wait_until(lambda: owner.ok("GET", "/requests?status=preempting")["items"], what="somebody to let go")
    others["preempted"] = _preempted(owner, alice, lambda: ask(bot, 1, pool="spare"))
    away = ask(bot, 1, pool=f"{WORD}-pool")
    return Scene(owner, alice, others, away, run["id"], step["id"], waiting)


def _preempted(owner: Caller, alice: Caller, ask: Callable[[], str]) -> str:
    """A request of the other team that had to go for one of the member's."""
    owner.ok("POST", "/pools", {"name": "spare", "capacity": {"gpu": 1}})
    owner.ok("POST", "/policies", {"pool": "spare", "subject": "team:mine", "reserved": {"gpu": 1}})
    owner.ok("POST", "/policies", {"pool": "spare", "subject": "team:theirs", "grace_s": 0})
    victim = ask()
    alice.ok("POST", "/requests", {"demand": {"gpu": 1}, "pool": "spare"})
    wait_until(lambda: owner.ok("GET", f"/requests/{victim}")["status"] == "preempted", what="it to go")
    return victim


def told(answer: Any) -> str:
    """What an answer tells that the caller did not say: what they asked for comes back in a refusal."""
    document = json.loads(answer.body) if answer.body.startswith((b"{", b"[")) else {}
    if answer.status >= 400:
        return json.dumps({key: document.get(key) for key in ("candidates", "numbers")})
    return str(answer.body.decode())
