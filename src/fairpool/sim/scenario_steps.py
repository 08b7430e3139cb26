"""Reading what happens in a scenario: submissions, ends, changes of supply and rights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fairpool.core import amounts
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.policies import Subject
from fairpool.core.pools import NodeState
from fairpool.core.requests import Demand, Request, Status
from fairpool.sim.scenario_reading import Item
from fairpool.sim.scenario_rules import Names, read_policy, read_pools, read_profile, read_subject
from fairpool.sim.scenario_values import (
    Action,
    Deed,
    DrainPool,
    DropPolicy,
    DropPool,
    DropProfile,
    End,
    EvictBorrowers,
    GivePolicy,
    Redirect,
    SetCapacity,
    SetNode,
    SetPolicy,
    SetProfile,
    Submit,
)

SUBMIT_FIELDS = (
    "id",
    "subject",
    "demand",
    "preemptible",
    "node_count",
    "parts",
    "priority",
    "profile",
    "pool",
    "max_runtime_s",
    "wait_timeout_s",
    "count",
)
RESERVED_WORDS = ("only_allocated", "allocated", "usage")
MAX_PARTS = 10_000  # more nodes than any one job of today; a slip of the pen should not eat the memory
MAX_COUNT = 10_000  # likewise


def read_action(kind: str, item: Item, names: Names) -> list[Deed]:
    """What one key of a step lets happen."""
    return [Deed(action=action, line=at.line, key=at.key) for action, at in ACTIONS[kind](item, names)]


def _submit(item: Item, names: Names) -> list[tuple[Action, Item]]:
    return [(Submit(request=request), each) for each in item.one_or_more() for request in _requests(each, names)]


def _requests(item: Item, names: Names) -> list[Request]:
    """One request, or as many equal ones as `count` says, numbered so that their ids sort as they came."""
    found = item.fields(SUBMIT_FIELDS, required=("id", "subject"))
    name = found["id"].text()
    if not name or name in RESERVED_WORDS:
        raise found["id"].wrong(f"a request cannot be called {name!r}")
    request = _request(item, found, names)
    if "count" not in found:
        names.requests.add(name)
        return [request]
    count = found["count"].integer(minimum=1)
    if count > MAX_COUNT:
        raise found["count"].wrong(f"{count} requests are too many", f"1 to {MAX_COUNT}")
    numbered = [RequestId(f"{name}-{number:0{len(str(count))}d}") for number in range(1, count + 1)]
    names.requests.update(numbered)
    names.counted[name] = frozenset({*numbered, *names.counted.get(name, ())})
    return [replace(request, id=each) for each in numbered]


def _request(item: Item, found: dict[str, Item], names: Names) -> Request:
    return Request(
        id=RequestId(found["id"].text()),
        subjects=tuple(read_subject(each) for each in found["subject"].one_or_more()),
        demand=_demand(item, found, names),
        queued_at=Instant(0),
        preemptible=found["preemptible"].flag() if "preemptible" in found else True,
        priority=found["priority"].integer() if "priority" in found else 0,
        profile=found["profile"].known("profile", names.profiles) if "profile" in found else "",
        pool=found["pool"].known("pool", names.pools) if "pool" in found else "",
        max_runtime_s=_whole_seconds(found.get("max_runtime_s")),
        wait_timeout_s=_whole_seconds(found.get("wait_timeout_s")),
    )


def _whole_seconds(item: Item | None) -> int | None:
    if item is None or item.is_empty:
        return None
    length = item.seconds()
    if length % SECOND:
        raise item.wrong(f"{item.text()} is no whole number of seconds")
    return length // SECOND


def _demand(item: Item, found: dict[str, Item], names: Names) -> Demand:
    """`demand` (of one part, `node_count` times), or a list of `parts`, or what the profile asks for."""
    if "parts" in found:
        for other in ("demand", "node_count"):
            if other in found:
                raise found[other].wrong(f"a request has either 'parts' or {other!r}")
        parts = found["parts"].elements()
        if not parts:
            raise found["parts"].wrong("a request has one part at least")
        return _refusing(found["parts"], lambda: Demand(tuple(amounts.of(each.amounts()) for each in parts)))
    if "demand" in found:
        part, at = amounts.of(found["demand"].amounts()), found["demand"]
    elif "profile" in found:
        part, at = names.profiles[found["profile"].known("profile", names.profiles)].demand, found["profile"]
    else:
        raise item.wrong("'demand' is missing", "demand, parts, or a profile that has one")
    count = found["node_count"].integer(minimum=1) if "node_count" in found else 1
    if count > MAX_PARTS:
        raise found["node_count"].wrong(f"{count} parts are too many", f"1 to {MAX_PARTS}")
    return _refusing(at, lambda: Demand.of(part, count))


def _refusing(item: Item, build: Callable[[], Demand]) -> Demand:
    try:
        return build()
    except InvalidInput as error:
        raise item.refused(error) from None


def _end(how: Status) -> Callable[[Item, Names], list[tuple[Action, Item]]]:
    def read(item: Item, names: Names) -> list[tuple[Action, Item]]:
        return [(End(request=each.known("request", names.requests), how=how), each) for each in item.one_or_more()]

    return read


def _set_capacity(item: Item, names: Names) -> list[tuple[Action, Item]]:
    found: list[tuple[Action, Item]] = []
    for name, each in item.pairs().items():
        if name not in names.pools:
            raise each.wrong(f"no pool {name!r} here; there is {', '.join(sorted(names.pools))}")
        found.append((SetCapacity(pool=name, capacity=tuple(each.amounts().items())), each))
    return found


def _set_policy(item: Item, names: Names) -> list[tuple[Action, Item]]:
    found: list[tuple[Action, Item]] = []
    for each in item.one_or_more():
        policy = read_policy(each, names)
        found.append((SetPolicy(policy=names.identified(policy)), each))
    return found


def _drop_policy(item: Item, names: Names) -> list[tuple[Action, Item]]:
    found: list[tuple[Action, Item]] = []
    for each in item.one_or_more():
        key = _policy_of(each, each.fields(("pool", "also", "pools", "subject"), required=("subject",)), names)
        found.append((DropPolicy(policy=names.policies[key]), each))
    return found


def _give_policy(item: Item, names: Names) -> list[tuple[Action, Item]]:
    found: list[tuple[Action, Item]] = []
    for each in item.one_or_more():
        fields = each.fields(("pool", "also", "pools", "subject", "to"), required=("subject", "to"))
        key, to = _policy_of(each, fields, names), read_subject(fields["to"])
        policy = names.policies[key[0], to] = names.policies.pop(key)
        found.append((GivePolicy(policy=policy, to=to), each))
    return found


def _policy_of(item: Item, fields: dict[str, Item], names: Names) -> tuple[frozenset[str], Subject]:
    pools, subject = read_pools(item, fields, names), read_subject(fields["subject"])
    if (frozenset(pools), subject) not in names.policies:
        named = ", ".join(map(repr, pools))
        raise item.wrong(f"{subject} has no policy on pool{'s' if len(pools) > 1 else ''} {named}")
    return frozenset(pools), subject


def _set_profile(item: Item, names: Names) -> list[tuple[Action, Item]]:
    found: list[tuple[Action, Item]] = []
    for name, each in item.pairs().items():
        names.profiles[name] = read_profile(name, each, names)
        found.append((SetProfile(profile=names.profiles[name]), each))
    return found


def _drop_profile(item: Item, names: Names) -> list[tuple[Action, Item]]:
    return [(DropProfile(name=each.known("profile", names.profiles)), each) for each in item.one_or_more()]


def _redirect(item: Item, names: Names) -> list[tuple[Action, Item]]:
    found: list[tuple[Action, Item]] = []
    for each in item.one_or_more():
        fields = each.fields(("id", "subject", "profile", "pool"), required=("id",))
        subjects = fields.get("subject")
        action = Redirect(
            request=fields["id"].known("request", names.requests),
            subjects=tuple(read_subject(one) for one in subjects.one_or_more()) if subjects is not None else None,
            profile=fields["profile"].known("profile", names.profiles) if "profile" in fields else None,
            pool=fields["pool"].known("pool", names.pools) if "pool" in fields else None,
        )
        found.append((action, each))
    return found


def _node(item: Item, names: Names) -> list[tuple[Action, Item]]:
    found: list[tuple[Action, Item]] = []
    for each in item.one_or_more():
        fields = each.fields(("pool", "name", "state"), required=("pool", "name", "state"))
        pool = fields["pool"].known("pool", names.pools)
        node = fields["name"].known("node", [node.name for node in names.pools[pool].nodes])
        state = NodeState(fields["state"].one_of(list(NodeState)))
        found.append((SetNode(pool=pool, name=node, state=state), each))
    return found


def _on_pool(build: Callable[[str], Action]) -> Callable[[Item, Names], list[tuple[Action, Item]]]:
    def read(item: Item, names: Names) -> list[tuple[Action, Item]]:
        return [(build(each.known("pool", names.pools)), each) for each in item.one_or_more()]

    return read


ACTIONS: dict[str, Callable[[Item, Names], list[tuple[Action, Item]]]] = {
    "submit": _submit,
    "release": _end(Status.RELEASED),
    "cancel": _end(Status.CANCELLED),
    "set_capacity": _set_capacity,
    "set_policy": _set_policy,
    "drop_policy": _drop_policy,
    "give_policy": _give_policy,
    "set_profile": _set_profile,
    "drop_profile": _drop_profile,
    "redirect": _redirect,
    "node": _node,
    "evict_borrowers": _on_pool(lambda pool: EvictBorrowers(pool=pool)),
    "drain_pool": _on_pool(lambda pool: DrainPool(pool=pool)),
    "drop_pool": _on_pool(lambda pool: DropPool(pool=pool)),
}
"""What a step can let happen, by its key."""
