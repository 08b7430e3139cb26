"""Windows of policies open and close: what is in force changes, in one step for all that turn at one moment."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from fairpool.app import schedules
from fairpool.app.memory import Memory
from fairpool.app.records import Declared, Json, Kind
from fairpool.app.schedules import Scheduled
from fairpool.app.transaction import Transaction
from fairpool.core import events as ev
from fairpool.core.amounts import plain, plain_vector
from fairpool.core.errors import InvalidRules
from fairpool.core.ids import SECOND, Instant
from fairpool.core.policies import Policy
from fairpool.core.pools import Pool
from fairpool.core.rule_checks import check_changes

_log = logging.getLogger(__name__)


def check_ahead(memory: Memory, now: Instant, changed: Iterable[Scheduled], pools: Iterable[Pool] = ()) -> None:
    """Whether the rules go together at every moment of the time ahead with these policies and pools in place of those
    with their ids. Raises InvalidRules, which says from when on they would not (S11)."""
    mine, pools = list(changed), list(pools)
    own = {scheduled.policy.id for scheduled in mine}
    others = [
        schedules.scheduled(policy)
        for policy in (memory.policy(declared.id) for declared in memory.all(Kind.POLICY))
        if policy.id not in own and schedules.windows_in(policy.note)
    ]
    for at, policies in schedules.combinations([*others, *mine], now):
        events: list[ev.RuleEvent] = [
            *(ev.PoolSet(pool=pool) for pool in pools),
            *(ev.PolicySet(policy=policy) for policy in policies),
        ]
        try:
            check_changes(memory.world, events)
        except InvalidRules as error:
            if at <= now:
                raise
            message = f"when windows turn at {_moment(at)}: {error.message}"
            raise InvalidRules(message, field=error.field, value=error.value, possible=error.possible) from None


def turn(tx: Transaction) -> None:
    """Put in force what the windows say now, and write down what opened and closed."""
    memory = tx.memory
    due = [memory.policy(policy) for policy in memory.timetable.due(tx.now)]
    turned = [
        new
        for old in due
        if (new := _turned(old, tx.now)) is not old  # an edge need not change what counts
    ]
    if turned:
        _put_in_force(tx, turned)
    settle(memory, tx.now)


def settle(memory: Memory, now: Instant) -> None:
    """Look up when the windows next turn of those policies that are as they should be now."""
    for policy in memory.timetable.due(now):
        memory.timetable.settle(policy, schedules.windows_in(memory.policy(policy).note), now)


def _turned(old: Declared[Policy], now: Instant) -> Declared[Policy]:
    windows = schedules.windows_in(old.note)
    place = schedules.open_at(windows, now)
    if place == schedules.open_in(old.note):
        return old
    return replace(old, note=schedules.note_with(old.note, windows, place))


def _put_in_force(tx: Transaction, turned: list[Declared[Policy]]) -> None:
    """All together, so that one may give up what another gets; each by itself where together they do not fit."""
    try:
        tx.apply(ev.Together(events=tuple(ev.PolicySet(policy=schedules.in_force(new, tx.now)) for new in turned)))
    except InvalidRules as error:
        if len(turned) > 1:
            for new in turned:
                _put_in_force(tx, [new])
            return
        # Pools and policies are checked for a year ahead, so this takes a year without any change of the rules.
        [new] = turned
        _log.warning("policy %s: its window could not turn: %s", new.name, error.message)
        tx.note(Kind.POLICY, new.id, "window could not turn", name=new.name, cause=error.message)
        return
    for new in turned:
        _write_down(tx, new)


def _write_down(tx: Transaction, new: Declared[Policy]) -> None:
    old = tx.memory.policy(new.id)
    windows, place = schedules.windows_in(new.note), schedules.open_in(new.note)
    before, after = _numbers(schedules.in_force(old, tx.now)), _numbers(schedules.in_force(new, tx.now))
    different = [key for key in before if before[key] != after[key]]
    tx.put(new)  # what is declared stays, and so does its version
    tx.note(
        Kind.POLICY,
        new.id,
        "window closed" if place is None else "window opened",
        name=new.name,
        cause="" if place is None else str(windows[place]),
        before={key: before[key] for key in different},
        after={key: after[key] for key in different},
    )


def _numbers(policy: Policy) -> dict[str, Json]:
    return {
        "priority": policy.priority,
        "reserved": plain_vector(policy.reserved),
        "limit": plain_vector(policy.limit),
        "weight": plain(policy.weight),
        "grace_s": policy.grace_s,
    }


def _moment(at: Instant) -> str:
    return datetime.fromtimestamp(at // SECOND, UTC).strftime("%Y-%m-%d %H:%M UTC")
