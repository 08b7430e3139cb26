"""Small worlds of one to three pools and one key, judged by the letter of the semantics: naive, slow,
and sharing no code with the core.

Not what should be done is asked here, but whether what was done was allowed, and whether anything was left undone.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from random import Random

from fairpool.core import events as ev
from fairpool.core.amounts import of
from fairpool.core.errors import InvalidRules
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.planner import decide
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Pool
from fairpool.core.requests import Allocation, Because, Demand, Request, Status
from fairpool.core.world import World
from tests.property.worlds import thorough

SEEDS = thorough(600)
TEAMS = 3


def size(allocation: Allocation | Request) -> int:
    request = allocation.request if isinstance(allocation, Allocation) else allocation
    return sum(value for key, value in request.demand.total if key == "cpu")


class Letter:
    """The rules, read aloud. A policy's usage, reservation, limit and shares count over all of its pools; room, and
    whom one may evict, are a matter of one pool."""

    def __init__(self, world: World) -> None:
        self.capacity = {pool.id: dict(pool.capacity)["cpu"] for pool in world.pools.values()}
        self.policies = {policy.id: policy for policy in world.policies.values()}
        self.held = sorted(world.allocations.values(), key=lambda held: held.sequence)
        self.claims = [(world.request(claim.request), claim.pool) for claim in world.claims.values()]

    def of(self, request: Request) -> Policy:
        return next(policy for policy in self.policies.values() if policy.subject in request.subjects)

    def ways(self, request: Request) -> tuple[PoolId, ...]:
        return self.of(request).pools

    def reserved(self, policy: Policy) -> int:
        return dict(policy.reserved).get("cpu", 0)

    def limit(self, policy: Policy) -> int:
        return dict(policy.limit).get("cpu", 10**9)

    def used(self, policy: Policy, without: frozenset[str] = frozenset(), *, firm: bool = False) -> int:
        theirs = [held for held in self.held if held.policy == policy.id and held.request.id not in without]
        return sum(size(held) for held in theirs if not firm or not held.request.preemptible)

    def borrowing(self, policy: Policy, asking: Request | None = None) -> set[str]:
        """S20, with `asking` in place if it would then be in share itself, else as things are (S28)."""
        entries = [(h.request.preemptible, -h.request.priority, h.sequence, size(h), h.request.id) for h in self.held
                   if h.policy == policy.id and h.eviction is None]  # fmt: skip
        if asking is not None:
            with_it = sorted([*entries, (asking.preemptible, -asking.priority, 10**9, size(asking), asking.id)])
            if asking.id not in self._greedy(with_it, self.reserved(policy)):
                return self._greedy(with_it, self.reserved(policy))
        return self._greedy(sorted(entries), self.reserved(policy))

    def _greedy(self, entries: Sequence[tuple[bool, int, int, int, str]], left: int) -> set[str]:
        out = set()
        for *_, amount, name in entries:
            if amount <= left:
                left -= amount
            else:
                out.add(name)
        return out

    def may_evict(self, asking: Request, pool: PoolId, victims: frozenset[str]) -> bool:
        """S27, S28: the right to evict exactly these."""
        ours = self.of(asking)
        own = frozenset(h.request.id for h in self.held if h.policy == ours.id and h.request.id in victims)
        whole = self.used(ours, own | self.leaving()) + size(asking) + self._claimed(ours, asking)
        reclaims = whole <= self.reserved(ours)
        for held in self.held:
            if held.request.id not in victims:
                continue
            if not held.request.preemptible or held.eviction is not None or held.pool != pool:
                return False
            assert held.policy is not None
            if held.policy == ours.id:
                before = (asking.preemptible, -asking.priority) < (True, -held.request.priority)
                if not before or held.request.id not in self.borrowing(ours, asking):
                    return False
            else:
                theirs = self.policies[held.policy]
                outranked = asking.preemptible and theirs.priority < ours.priority
                if held.request.id not in self.borrowing(theirs) or not (reclaims or outranked):
                    return False
        return True

    def leaving(self) -> frozenset[str]:
        return frozenset(held.request.id for held in self.held if held.eviction is not None)

    def _claimed(self, policy: Policy, asking: Request) -> int:
        return sum(size(claim) for claim, _ in self.claims if claim.id != asking.id and self.of(claim) == policy)

    def fits(self, asking: Request, pool: PoolId, victims: frozenset[str]) -> bool:
        """Whether it could start there once these, and all who are leaving already, are gone."""
        gone, ours = victims | self.leaving(), self.of(asking)
        held = [each for each in self.held if each.pool == pool and each.request.id not in gone]
        free = self.capacity[pool] - sum(size(each) for each in held)
        free -= sum(size(claim) for claim, where in self.claims if claim.id != asking.id and where == pool)
        under = self.used(ours, gone) + self._claimed(ours, asking) + size(asking) <= self.limit(ours)
        owed = asking.preemptible or (self.used(ours, gone, firm=True) + size(asking) <= self.reserved(ours))
        return size(asking) <= free and under and owed


def test_whom_the_core_evicts_may_be_evicted_and_no_smaller_set_would_do() -> None:
    looked_at = 0
    for seed in range(SEEDS):
        for world, before, number in lives(seed):
            plan = decide(world, Instant(number))
            causes = {evict.cause for evict in plan.evictions}
            if plan.grants or len(causes) != 1:
                continue  # the letter judges one decision at a time
            if before.leaving():
                continue  # room that others are making goes by the order of all who wait, which is not judged here
            asking = world.request(next(cause for cause in causes if cause is not None))
            pool = world.claims[asking.id].pool
            victims = frozenset(str(evict.request) for evict in plan.evictions)
            assert before.fits(asking, pool, victims), f"seed {seed}: {victims} do not make room for {asking.id}"
            assert before.may_evict(asking, pool, victims), f"seed {seed}: {asking.id} may not evict {victims}"
            for count in range(len(victims)):
                for fewer in map(frozenset, combinations(sorted(victims), count)):
                    enough = before.fits(asking, pool, fewer) and before.may_evict(asking, pool, fewer)
                    assert not enough, f"seed {seed}: {set(fewer)} would have done instead of {set(victims)}"
            assert all(evict.because is not Because.CAPACITY for evict in plan.evictions)
            looked_at += 1
    assert looked_at > SEEDS / 10, "the worlds are too quiet to judge anything"


def test_nobody_waits_who_could_start_or_whom_an_eviction_would_help() -> None:
    """INV-6 and INV-7 by trying all subsets of victims."""
    for seed in range(SEEDS):
        for world, _, number in lives(seed):
            while not decide(world, Instant(number)).is_empty:
                pass
            letter = Letter(world)
            if letter.leaving():
                continue  # what is under way has to end first
            for request in world.queued.values():
                for pool in letter.ways(request):
                    _assert_helpless(letter, request, pool, seed)


def _assert_helpless(letter: Letter, request: Request, pool: PoolId, seed: int) -> None:
    assert not letter.fits(request, pool, frozenset()), f"seed {seed}: {request.id} could start in {pool}"
    others = [held.request.id for held in letter.held if held.request.preemptible and held.pool == pool]
    sets = (frozenset(map(str, some)) for n in range(1, len(others) + 1) for some in combinations(others, n))
    for victims in sets:
        helps = letter.fits(request, pool, victims) and letter.may_evict(request, pool, victims)
        assert not helps, f"seed {seed}: {request.id} waits though {set(victims)} may be evicted for it in {pool}"


def lives(seed: int) -> Iterator[tuple[World, Letter, int]]:
    """A world again and again, when something has happened and nothing is decided yet."""
    rng = Random(seed)
    world = small_world(rng)
    for number in range(12):
        happen(rng, world, number)
        yield world, Letter(world), number


def small_world(rng: Random) -> World:
    world = World()
    pools = [PoolId(name) for name in "pqr"[: rng.choice([1, 2, 2, 3])]]
    capacity = {pool: rng.randint(4, 9) if len(pools) == 1 else rng.randint(2, 5) for pool in pools}
    for pool in pools:
        amounts = of({"cpu": capacity[pool]})
        world.apply(ev.PoolSet(pool=Pool(id=pool, name=pool, capacity=amounts, max_bypass_s=10**6)), Instant(0))
    for team in range(TEAMS):
        span = rng.sample(pools, rng.randint(1, len(pools)))
        most = sum(capacity[pool] for pool in span)
        for most_reserved in (most, most // 2, 0):  # what would promise too much is refused
            policy = _policy(rng, team, span, rng.randint(0, most_reserved), most)
            try:
                world.apply(ev.PolicySet(policy=policy), Instant(0))
                break
            except InvalidRules:
                continue
    return world


def _policy(rng: Random, team: int, span: list[PoolId], reserved: int, most: int) -> Policy:
    return Policy(
        id=PolicyId(f"t{team}"),
        pool=span[0],
        also=tuple(span[1:]),
        subject=Subject.parse(f"team:t{team}"),
        priority=rng.choice([0, 0, 5]),
        reserved=of({"cpu": reserved}),
        limit=of({"cpu": rng.randint(max(reserved, 1), most)}) if rng.random() < 0.4 else (),
    )


def happen(rng: Random, world: World, number: int) -> None:
    now = Instant(number)
    if rng.random() < 0.3 and world.allocations:
        gone = rng.choice(sorted(world.allocations))
        world.apply(ev.Ended(request=gone, how=Status.RELEASED), now)
    request = Request(
        id=RequestId(f"r{number:03d}"),
        subjects=(Subject.parse(f"team:t{rng.randrange(TEAMS)}"),),
        demand=Demand.of(of({"cpu": rng.randint(1, 4)})),
        queued_at=now,
        preemptible=rng.random() < 0.75,
        priority=rng.choice([-1, 0, 0, 1]),
    )
    world.apply(ev.Submitted(request=request), now)
