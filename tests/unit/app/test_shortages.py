"""What a pool has too little of is told when somebody changes it, before and after."""

from __future__ import annotations

from dataclasses import replace

from fairpool.app import queries
from fairpool.app.sentences import shortage
from fairpool.app.shortages import shortages
from fairpool.app.use_cases import policies, pools
from fairpool.core import amounts
from fairpool.core.pools import Node, NodeState
from fairpool.server.presenting import pool_view
from tests.unit.app.office import Office, opened, policy
from tests.unit.server.applying import attempt

SMALLER = {"kind": "pool", "name": "p", "capacity": {"gpu": 5}}
IN_USE = "pool p has 5 gpu, and 7 in use: it grants no gpu until that fits; nobody is evicted for it"
PROMISED = "pool p has 4 gpu on what is ready, and 6 reserved: who is entitled waits for the rest"


def told(office: Office) -> list[str]:
    return [shortage(each) for each in office.ask(shortages)]


def of_nodes() -> Office:
    """A pool of two machines of four GPUs each, six of which are reserved."""
    office = Office()
    nodes = tuple(Node(name=name, capacity=amounts.vector({"gpu": 4})) for name in ("n1", "n2"))
    office.pool(capacity={"license/x": 1}, nodes=nodes)
    office.policy("team:red", {"gpu": 6})
    return office


def down(node: Node) -> Node:
    return replace(node, state=NodeState.DOWN)


def cordoned(node: Node) -> Node:
    return replace(node, state=NodeState.CORDONED)


def test_a_plan_warns_of_a_capacity_below_what_is_in_use() -> None:
    office = opened()
    office.submit("team:red", 7)
    assert attempt(office, SMALLER).warnings == (IN_USE,)
    assert attempt(office, {**SMALLER, "capacity": {"gpu": 7}}).warnings == ()
    assert told(office) == []


def test_trying_out_a_change_of_a_pool_warns_and_so_does_doing_it() -> None:
    office = opened()
    office.submit("team:red", 7)
    change = pools.PoolChange(capacity=amounts.vector({"gpu": 5}))
    tried = office.do(pools.update, "p", change, dry_run=True)
    assert office.ask(lambda memory, now: pool_view(memory, now, tried)).warnings == [IN_USE]
    done = office.do(pools.update, "p", change)
    assert office.ask(lambda memory, now: pool_view(memory, now, done)).warnings == [IN_USE]
    assert attempt(office, {"kind": "policy", "pool": "p", "subject": "team:new"}).warnings == (), "that was so before"


def test_machines_that_fail_leave_less_than_is_reserved() -> None:
    office = of_nodes()
    office.do(pools.update_node, "p", "n1", down)
    assert told(office) == [PROMISED]
    more = {"kind": "policy", "pool": "p", "subject": "team:blue", "reserved": {"gpu": 1}}
    assert attempt(office, more).warnings == (PROMISED.replace("and 6", "and 7"),)


def test_work_on_a_machine_that_takes_no_more_uses_nothing_of_what_is_left() -> None:
    office = of_nodes()
    for gpus in (4, 1):
        office.submit("team:red", gpus)
    office.do(policies.update, "p/team:red", policies.PolicyChange(reserved=()))
    tried = office.do(pools.update_node, "p", "n1", cordoned, dry_run=True)
    assert office.ask(lambda memory, now: pool_view(memory, now, tried)).warnings == []
    office.do(pools.update_node, "p", "n1", cordoned)
    assert told(office) == []
    assert office.submit("team:red", 3).status == "allocated"
    half = Node(name="n2", capacity=amounts.vector({"gpu": 2}))
    office.do(pools.update, "p", pools.PoolChange(nodes=(half,)))
    assert [text.partition(":")[0] for text in told(office)] == ["pool p has 2 gpu, and 4 in use"]
    assert office.ask(lambda memory, now: queries.pool_status(memory, now, "p")).state == "over capacity"


def test_a_key_that_goes_while_it_is_in_use_is_one_that_the_pool_has_nothing_of() -> None:
    office = opened()
    office.pool("q", {"tpu": 2, "step_run": 4})
    office.policy("team:red", pool="q")
    office.submit("team:red", demand=amounts_of({"tpu": 1, "step_run": 1}))
    gone = {"kind": "pool", "name": "q"}
    assert [text.partition(",")[0] for text in attempt(office, gone).warnings] == ["pool q has 0 tpu"]


def amounts_of(vector: dict[str, int]) -> object:
    from fairpool.core.requests import Demand

    return Demand.of(amounts.vector(vector))


def test_what_is_reserved_over_several_pools_is_short_in_none_of_them_by_a_number() -> None:
    office = of_nodes()
    office.pool("q", {"gpu": 2})
    office.do(policies.attach, "p", policy("team:wide", {"gpu": 4}), also=["q"])
    assert told(office) == []
    office.do(pools.update_node, "p", "n1", down)
    assert told(office) == [PROMISED]
    office.do(policies.update, "p/team:red", policies.PolicyChange(reserved=amounts.vector({"gpu": 4})))
    assert told(office) == ["pool p has less on what is ready than is reserved over it and other pools together"]
