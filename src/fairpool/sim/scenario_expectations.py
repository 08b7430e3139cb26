"""Reading what a scenario expects."""

from __future__ import annotations

from fairpool.core.reasons import Code
from fairpool.core.requests import Because, Status
from fairpool.sim.scenario_reading import Item
from fairpool.sim.scenario_rules import Names, read_subject
from fairpool.sim.scenario_values import ExpectAllocated, Expectation, ExpectOnlyAllocated, ExpectRequest, ExpectUsage

EXPECT_FIELDS = ("status", "pool", "policy", "node", "nodes", "devices", "for", "because", "reasons")


def read_expectations(item: Item, names: Names) -> tuple[Expectation, ...]:
    """All that one `expect` asks for."""
    found: list[Expectation] = []
    for name, each in item.pairs().items():
        if name == "only_allocated":
            allocated = frozenset(one.known("request", names.requests) for one in each.one_or_more())
            found.append(ExpectOnlyAllocated(line=each.line, requests=allocated))
        elif name == "allocated":
            found.extend(_allocated(each, names))
        elif name == "usage":
            found.extend(_usage(each, names))
        elif name not in names.requests:
            raise each.wrong(_unknown(name, names))
        else:
            found.append(_request(name, each, names))
    if not found:
        raise item.wrong("expects nothing")
    return tuple(found)


def _unknown(name: str, names: Names) -> str:
    if name in names.counted:
        return f"{name!r} stands for several requests: name one, as {min(names.counted[name])!r}, or count them"
    return f"no request {name!r} was submitted before"


def _allocated(item: Item, names: Names) -> list[Expectation]:
    found: list[Expectation] = []
    for name, each in item.pairs().items():
        if name not in names.counted:
            raise each.wrong(f"nothing called {name!r} was submitted with 'count'")
        count = each.integer(minimum=0)
        found.append(ExpectAllocated(line=each.line, name=name, requests=names.counted[name], count=count))
    return found


def _usage(item: Item, names: Names) -> list[Expectation]:
    found: list[Expectation] = []
    for pool, each in item.pairs().items():
        if pool not in names.pools:
            raise each.wrong(f"no pool {pool!r} here; there is {', '.join(sorted(names.pools))}")
        found.append(ExpectUsage(line=each.line, pool=pool, usage=tuple(each.amounts().items())))
    return found


def _request(name: str, item: Item, names: Names) -> ExpectRequest:
    if not item.is_mapping:
        return ExpectRequest(line=item.line, request=name, status=Status(item.one_of(list(Status))))
    found = item.fields(EXPECT_FIELDS)
    if not found:
        raise item.wrong("expects nothing", ", ".join(EXPECT_FIELDS))
    reasons = found.get("reasons")
    return ExpectRequest(
        line=item.line,
        request=name,
        status=Status(found["status"].one_of(list(Status))) if "status" in found else None,
        pool=found["pool"].known("pool", names.pools) if "pool" in found else None,
        policy=read_subject(found["policy"]) if "policy" in found else None,
        node=found["node"].text() if "node" in found else None,
        nodes=tuple(sorted(each.text() for each in found["nodes"].one_or_more())) if "nodes" in found else None,
        devices=found["devices"].integer(minimum=0) if "devices" in found else None,
        evicted_for=found["for"].known("request", names.requests) if "for" in found else None,
        because=Because(found["because"].one_of(list(Because))) if "because" in found else None,
        reasons=frozenset(Code(each.one_of(list(Code))) for each in reasons.one_or_more())
        if reasons is not None
        else None,
    )
