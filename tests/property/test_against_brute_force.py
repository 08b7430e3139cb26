"""The core beside the plain model of `brute_force.py`, decision by decision, on small worlds of one pool and two keys.

What is one unit to the model is a thousandth to the core, the least that there is: who counts one too many shows.

Left to others: nodes and devices, several pools (`test_against_the_letter.py`), capacity held for the first blocked
request (S25), and dedicated reservations.
"""

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from fairpool.core import events as ev
from fairpool.core.amounts import of
from fairpool.core.errors import InvalidRules
from fairpool.core.ids import SECOND, Instant, PolicyId, PoolId, RequestId
from fairpool.core.plan import Plan
from fairpool.core.planner import decide
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Pool
from fairpool.core.requests import Demand, Request, Status
from fairpool.core.world import World
from tests.property.following import Following
from tests.property.plain_values import Ask, Team, Told, Units
from tests.property.worlds import thorough

POOL = PoolId("p")
NAMES = ("a", "b", "c")
MOST_ROUNDS = 20
randoms = st.randoms(use_true_random=True)  # seeded by the example: the worlds are livelier for it


def random_team(rng: Random, name: str) -> Team:
    reserved = {"cpu": rng.choice([0, 1, 2, 3]), "lic": rng.choice([0, 0, 1])}
    return Team(
        name=name,
        priority=rng.choice([0, 0, 5]),
        reserved={key: value for key, value in reserved.items() if value},
        limit={key: rng.randint(max(1, value), 5) for key, value in reserved.items() if rng.random() < 0.1},
        weight=rng.choice([1, 1, 2, 3]),
        grace_s=rng.choice([0, 5, 5]),
        min_runtime_s=rng.choice([0, 0, 0, 4]),
    )


class CoreAndModel(RuleBasedStateMachine):
    """Whatever happens, both decide the same."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.teams: dict[str, Team] = {}
        self.model = Following(capacity={})
        self.now = 0
        self.number = 0

    @initialize(rng=randoms)
    def set_up(self, rng: Random) -> None:
        self._try_capacity({"cpu": rng.randint(4, 8), "lic": rng.randint(1, 3)})
        for name in NAMES:
            while not self._try_team(random_team(rng, name)):
                pass

    @rule(rng=randoms)
    def submit_one(self, rng: Random) -> None:
        self._submit(rng, 1)

    @rule(rng=randoms)
    def submit_several(self, rng: Random) -> None:
        self._submit(rng, rng.randint(2, 5))

    def _submit(self, rng: Random, count: int) -> None:
        for _ in range(count):
            needs = {"cpu": rng.choice([1, 1, 2, 3, 4])} | ({"lic": 1} if rng.random() < 0.2 else {})
            self._ask(rng.choice(NAMES), needs, firm=rng.random() < 0.12, priority=rng.choice([0, 0, 1, 2]))
        self._decide()

    @rule(rng=randoms)
    def have_an_owner_come_back(self, rng: Random) -> None:
        """To a pool that others have filled meanwhile: several of them may have to give way."""
        owner = rng.choice(NAMES)
        for _ in range(rng.randint(2, 6)):
            name = rng.choice([name for name in NAMES if name != owner])
            self._ask(name, {"cpu": rng.choice([1, 1, 2])}, firm=False, priority=rng.choice([0, 0, 1]))
        self._decide()
        self._ask(owner, {"cpu": max(1, self.teams[owner].reserved.get("cpu", 0))}, firm=rng.random() < 0.1, priority=0)
        self._decide()

    def _ask(self, name: str, needs: Units, *, firm: bool, priority: int) -> None:
        self.number += 1
        ask = Ask(id=f"r{self.number:03d}", team=self.teams[name], needs=needs, firm=firm, priority=priority,
                  queued_at=self.now)  # fmt: skip
        self.model.waiting[ask.id] = ask
        request = Request(id=RequestId(ask.id), subjects=(Subject.parse(f"team:{name}"),), preemptible=not firm,
                          demand=Demand.of(of(needs)), queued_at=self._instant(), priority=priority)  # fmt: skip
        self.world.apply(ev.Submitted(request=request), self._instant())

    @precondition(lambda self: self.model.running)
    @rule(rng=randoms)
    def release(self, rng: Random) -> None:
        name = rng.choice(sorted(self.model.running))
        del self.model.running[name]
        self.world.apply(ev.Ended(request=RequestId(name), how=Status.RELEASED), self._instant())
        self._decide()

    @precondition(lambda self: self.model.waiting)
    @rule(rng=randoms)
    def cancel(self, rng: Random) -> None:
        name = rng.choice(sorted(self.model.waiting))
        del self.model.waiting[name]
        self.model.kept.pop(name, None)
        self.world.apply(ev.Ended(request=RequestId(name), how=Status.CANCELLED), self._instant())
        self._decide()

    @rule(passed_s=st.sampled_from([1, 4, 5]))
    def let_time_pass(self, passed_s: int) -> None:
        self.now += passed_s
        self._decide()

    @rule(rng=randoms)
    def change_the_rules(self, rng: Random) -> None:
        if rng.random() < 0.5:
            self._try_capacity(self.model.capacity | {"cpu": rng.randint(3, 8)})
        else:
            self._try_team(random_team(rng, rng.choice(NAMES)))
        self._decide()

    # ---- both at once -----------------------------------------------------------------------------------------------

    def _instant(self) -> Instant:
        return Instant(self.now * SECOND)

    def _try_capacity(self, capacity: Units) -> None:
        pool = Pool(id=POOL, name="p", capacity=of(capacity), max_bypass_s=10**6)
        if self._applied(ev.PoolSet(pool=pool)):
            self.model.capacity = capacity
            self.model.keep_anew()

    def _try_team(self, team: Team) -> bool:
        policy = Policy(
            id=PolicyId(team.name),
            pool=POOL,
            subject=Subject.parse(f"team:{team.name}"),
            priority=team.priority,
            reserved=of(team.reserved),
            limit=of(team.limit),
            weight=team.weight * 1000,
            grace_s=team.grace_s,
            min_runtime_s=team.min_runtime_s,
        )
        if not self._applied(ev.PolicySet(policy=policy)):
            return False
        self.teams[team.name] = team
        for ask in [*self.model.waiting.values(), *self.model.running.values()]:
            if ask.team.name == team.name:
                ask.team = team
        self.model.keep_anew()
        return True

    def _applied(self, event: ev.RuleEvent) -> bool:
        try:
            self.world.apply(event, self._instant())
        except InvalidRules:
            return False
        return True

    def _decide(self) -> None:
        """Until nothing changes any more."""
        for _ in range(MOST_ROUNDS):
            plan = decide(self.world, self._instant())
            self.model.follow(_told(plan), self.now)
            assert set(self.world.allocations) == set(self.model.running)
            assert set(self.world.queued) == set(self.model.waiting)
            assert set(self.world.claims) == set(self.model.kept)
            if plan.is_empty:
                return
        raise AssertionError("the world does not come to rest")


def _told(plan: Plan) -> Told:
    evicted: dict[str, set[str]] = {}
    for evict in plan.evictions:
        evicted.setdefault(str(evict.cause), set()).add(evict.request)
    return Told(
        ended={finish.request for finish in plan.finishes},
        rejected={reject.request for reject in plan.rejects},
        granted={grant.request for grant in plan.grants},
        evicted=evicted,
    )


TestTheCoreDecidesAsTheRulesSay = CoreAndModel.TestCase
TestTheCoreDecidesAsTheRulesSay.settings = settings(
    max_examples=thorough(100), stateful_step_count=30, deadline=None, derandomize=True, database=None
)
