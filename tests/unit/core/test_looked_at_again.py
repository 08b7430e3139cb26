"""What happens in one pool that lets somebody start in another: nobody has to wait for the next event there (INV-7)."""

from __future__ import annotations

from dataclasses import replace

from fairpool.core import events as ev
from fairpool.core.audit import audit
from fairpool.core.ids import SECOND, Instant, RequestId
from fairpool.core.plan import Plan
from fairpool.core.planner import decide
from fairpool.core.pools import NodeState
from fairpool.core.requests import Because, Eviction, Request, Status
from fairpool.core.world import World
from fairpool.testing import builders as make

A, B = make.pool("a", {"cpu": 8}), make.pool("b", {"cpu": 8})


def _ask(name: str, cpus: float = 1, subject: str = "team:t", *, pool: str = "", priority: int = 0) -> Request:
    return make.request(name, subject, {"cpu": cpus}, pool=pool, priority=priority)


def _ends(world: World, name: str, how: Status = Status.RELEASED) -> Plan:
    world.apply(ev.Ended(request=RequestId(name), how=how), make.START)
    made = decide(world, make.START)
    assert audit(world, make.START) == ()
    return made


def _granted(made: Plan) -> dict[str, str | None]:
    return {str(grant.request): grant.allocation.pool for grant in made.grants}


# ---- one policy over two pools (S19) ---------------------------------------------------------------------------------

WIDE = make.policy("team:t", None, {"cpu": 4}, pool="a", also=("b",))


def test_what_ends_in_one_pool_makes_room_under_the_limit_in_the_other() -> None:
    world = make.settled(A, B, WIDE, _ask("there", 4, pool="a"), later=[_ask("w", pool="b")])
    assert RequestId("w") in world.queue
    assert _granted(_ends(world, "there")) == {"w": "b"}


def test_a_pool_where_nobody_waits_is_not_looked_at() -> None:
    world = make.settled(A, B, WIDE, _ask("there", 4, pool="a"))
    world.apply(ev.Ended(request=RequestId("there"), how=Status.RELEASED), make.START)
    assert not world.touched


def test_what_is_kept_no_longer_in_one_pool_makes_room_under_the_limit_in_the_other() -> None:
    """S31: `w` is withdrawn while room is being made for it in `a`."""
    guest = make.policy("team:g", pool="a")
    owner = make.policy("team:t", {"cpu": 4}, {"cpu": 4}, pool="a", also=("b",))
    world = make.settled(
        A, B, owner, guest, _ask("g", 8, "team:g"), later=[_ask("w", 4, pool="a"), _ask("x", pool="b")]
    )
    assert list(world.claims) == ["w"]
    assert RequestId("x") in world.queue
    assert _granted(_ends(world, "w", Status.CANCELLED)) == {"x": "b"}


def test_what_is_kept_waits_for_what_leaves_in_the_policy_s_other_pools() -> None:
    """S31: `w` makes room under the limit with own work in `a`; the rest of it leaves `b` for somebody else. Until then
    nobody may take what is freed in `a`, and be evicted for `w` at once."""
    owner = make.policy("team:o", {"cpu": 8}, pool="b")
    own = [_ask(f"t{pool}", 2, pool=pool) for pool in "ab"]
    reclaims = _ask("o2", 2, "team:o", pool="b")
    later = [reclaims, _ask("w", 4, pool="a", priority=9), _ask("x", 2, pool="a")]
    world = make.settled(A, B, WIDE, owner, *own, _ask("o1", 6, "team:o"), later=later)
    assert sorted(world.claims) == ["o2", "w"]
    made = _ends(world, "ta")
    assert (made.grants, made.evictions, made.unclaims) == ((), (), ())
    assert _granted(_ends(world, "tb")) == {"w": "a", "o2": "b"}


# ---- one request with candidates in two pools (S26) ------------------------------------------------------------------


def test_who_starts_in_one_pool_leaves_the_line_of_the_other_to_those_behind() -> None:
    """S25: in `b`, which keeps strict order, `big` stood before `small`."""
    strict = replace(B, backfill=False)
    policies = [make.policy("team:t", pool=name, priority=5) for name in "ab"]
    others = [make.policy("team:x", {"cpu": 8}, pool=name) for name in "ab"]
    firm = [make.request(f"x{name}", "team:x", {"cpu": 4}, pool=name, preemptible=False) for name in "ab"]
    small = make.policy("team:s", pool="b")
    world = make.settled(
        A, strict, *policies, *others, small, *firm, later=[_ask("big", 6), _ask("small", 2, "team:s")]
    )
    assert set(world.queued) == {"big", "small"}
    assert _granted(_ends(world, "xa")) == {"big": "a", "small": "b"}


def test_whom_room_is_made_for_in_one_pool_holds_nobody_back_in_the_other() -> None:
    """`big` may evict `g` from ten seconds on; then it waits for that, and `small` need not wait for `big` in `b`."""
    strict = replace(B, backfill=False)
    policies = [make.policy("team:t", pool=name, priority=5) for name in "ab"]
    young = make.policy("team:g", pool="a", min_runtime_s=10)
    owner, small = make.policy("team:x", {"cpu": 8}, pool="b"), make.policy("team:s", pool="b")
    firm = make.request("x", "team:x", {"cpu": 4}, preemptible=False)
    asks = [_ask("big", 6), _ask("small", 2, "team:s")]
    world = make.settled(A, strict, *policies, young, owner, small, firm, _ask("g", 8, "team:g"), later=asks)
    assert set(world.queued) == {"big", "small"}
    made = decide(world, Instant(10 * SECOND))
    assert [(evict.request, evict.cause) for evict in made.evictions] == [("g", "big")]
    assert _granted(made) == {"small": "b"}


def test_where_preferences_run_in_a_circle_everybody_still_starts_where_it_prefers() -> None:
    """S26: `t` prefers b, `u` prefers a; whichever pool is served first, one of them is looked at there too early."""
    t = [make.policy("team:t", pool="a", priority=1), make.policy("team:t", pool="b", priority=5)]
    u = [make.policy("team:u", pool="a", priority=5), make.policy("team:u", pool="b", priority=1)]
    asks = [_ask(f"{name}{number}", 1, f"team:{name}") for number in range(2) for name in "tu"]
    world = make.world(A, B, *t, *u, *asks)
    assert _granted(decide(world, make.START)) == {"t0": "b", "t1": "b", "u0": "a", "u1": "a"}


# ---- what is kept, when the pool changes (S31) -----------------------------------------------------------------------

NODES = make.pool(nodes={"n1": {"gpu": 2, "mcpu": 8}, "n2": {"gpu": 2, "mcpu": 8}})


def _gpus(name: str, subject: str, *, preemptible: bool = True, at_s: int = 0) -> Request:
    queued_at = Instant(at_s * SECOND)
    return make.request(name, subject, {"gpu": 2, "mcpu": 4}, preemptible=preemptible, queued_at=queued_at)


def _claiming() -> World:
    """Room is being made for `w` on n1, and `rival`, which has waited longer, would come first."""
    policies = [
        make.policy("team:t", priority=5),
        make.policy("team:rival", priority=5),
        make.policy("team:g"),
        make.policy("team:x", {"gpu": 2, "mcpu": 8}),
    ]
    running = [_gpus("g", "team:g"), _gpus("x", "team:x", preemptible=False)]
    world = make.settled(NODES, *policies, later=[*running, _gpus("w", "team:t", at_s=1), _gpus("rival", "team:rival")])
    assert [(claim.request, claim.parts[0].node) for claim in world.claims.values()] == [("w", "n1")]
    assert RequestId("rival") in world.queue
    return world


def test_what_is_kept_moves_with_its_rank_to_another_node_when_its_own_fails() -> None:
    """S23, criterion 1: so `rival` does not slip in; and who has started has nothing kept for it."""
    world = _claiming()
    failed = tuple(replace(node, state=NodeState.DOWN) if node.name == "n1" else node for node in NODES.nodes)
    world.apply(ev.PoolSet(pool=replace(NODES, nodes=failed)), make.START)
    world.apply(ev.Ended(request=RequestId("x"), how=Status.RELEASED), make.START)
    made = decide(world, make.START)
    assert _granted(made) == {"w": "p"}
    assert (made.claims, made.unclaims) == ((), ())


def test_what_is_kept_moves_when_its_node_lacks_one_key_only() -> None:
    """The GPUs of n1 would still do; of its CPUs too few are left. Both nodes are being emptied."""
    world = _claiming()
    world.apply(ev.Ended(request=RequestId("rival"), how=Status.CANCELLED), make.START)
    until = Instant(30 * SECOND)
    world.evict(RequestId("x"), Eviction(cause=None, because=Because.CAPACITY, deadline_at=until))
    shrunk = make.pool(nodes={"n1": {"gpu": 2, "mcpu": 2}, "n2": {"gpu": 2, "mcpu": 8}})
    world.apply(ev.PoolSet(pool=shrunk), make.START)
    made = decide(world, make.START)
    assert [(claim.request, claim.parts[0].node) for claim in made.claims] == [("w", "n2")]
    assert made.unclaims == ()


def test_what_is_kept_for_one_in_vain_does_not_cost_another_what_is_kept_for_it() -> None:
    """S31: n1, which alone is large enough for `w1`, fails; n2 is still being emptied for `w2`."""
    pool = make.pool(nodes={"n1": {"gpu": 3}, "n2": {"gpu": 2}})
    policies = [make.policy("team:t", priority=5), make.policy("team:g")]
    sizes = [("g1", "team:g", 3), ("g2", "team:g", 2), ("w1", "team:t", 3), ("w2", "team:t", 2)]
    asks = [make.request(name, subject, {"gpu": gpus}) for name, subject, gpus in sizes]
    world = make.settled(pool, *policies, later=asks)
    assert [claim.parts[0].node for claim in world.claims.values()] == ["n1", "n2"]
    failed = (replace(pool.nodes[0], state=NodeState.DOWN), pool.nodes[1])
    world.apply(ev.PoolSet(pool=replace(pool, nodes=failed)), make.START)
    made = decide(world, make.START)
    assert made.unclaims == ("w1",)
    assert list(world.claims) == ["w2"]


def test_for_whom_room_is_made_elsewhere_nothing_is_held_any_more() -> None:
    """S25: `w` is the first that is blocked in `b`, which it prefers; then `g` is evicted for it in `a`."""
    preferred = replace(B, max_bypass_s=0)
    policies = [make.policy("team:t", pool="b", priority=9), make.policy("team:t", pool="a", priority=5)]
    others = [make.policy("team:g", pool="a"), make.policy("team:x", {"cpu": 8}, pool="b")]
    world = make.settled(A, preferred, *policies, *others, _ask("g", 8, "team:g"), _ask("x", 8, "team:x"))
    world.apply(ev.Submitted(request=_ask("w", 2)), make.START)
    made = decide(world, make.START)
    assert [(claim.request, claim.pool) for claim in made.claims] == [("w", "a")]
    assert made.holds == ()


def test_for_whom_room_is_made_through_another_policy_nothing_is_held_any_more() -> None:
    """The same in one pool: through `team:a` it is blocked, and `team:b` has less important work of its own."""
    pool = make.pool("p", {"cpu": 4}, max_bypass_s=0)
    policies = [make.policy("team:a", priority=1), make.policy("team:b", {"cpu": 4})]
    world = make.settled(pool, *policies, _ask("own", 4, "team:b"))
    request = make.request("w", ("team:a", "team:b"), {"cpu": 4}, priority=9)
    world.apply(ev.Submitted(request=request), make.START)
    made = decide(world, make.START)
    assert [(claim.request, claim.policy) for claim in made.claims] == [("w", "p/team:b")]
    assert made.holds == ()


def test_pools_of_which_nobody_prefers_one_are_served_by_their_ids() -> None:
    """INV-9: which came first must not hang on anything else."""
    world = make.world(A, B, make.policy(pool="a"), make.policy(pool="b"), _ask("1", pool="b"), _ask("2", pool="a"))
    assert list(_granted(decide(world, make.START)).items()) == [("2", "a"), ("1", "b")]
