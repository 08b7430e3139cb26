"""Finish-time fairness: each team's jobs under the rules, against the same jobs with the team alone on its reservation.

Alone means: pools that have exactly what is reserved for the team, as one bucket without nodes; first come, first
served in strict order; nobody else there. What a policy with several pools reserves is its limit over all of them.
Of a policy with a schedule its own numbers count, not those of its windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from fairpool.app.ports import Stored
from fairpool.app.records import Kind
from fairpool.core.amounts import NOTHING, Amounts, get, show, total
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Ordering, Placement, Pool, nominal_capacity
from fairpool.sim.jobs import Job
from fairpool.sim.ledger import Fate, Ledger
from fairpool.sim.owners import Owners
from fairpool.sim.replay import Replay
from fairpool.sim.reports.figures import Fairness
from fairpool.sim.reports.outcome import Enough, Listening, Outcome
from fairpool.sim.reports.parties import Parties, called
from fairpool.sim.reports.quantiles import MEDIAN, P95
from fairpool.sim.rulebook import rulebook
from fairpool.store.memory import MemoryStore

ENDED = (Fate.DONE, Fate.EXPIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A team's jobs as the ledger numbers them, and how they fared alone."""

    team: str
    reservation: str
    numbers: tuple[int, ...]
    ledger: Ledger | None


class Soloists:
    """Teams that have been replayed alone, for the next time that one is asked for with the same jobs and rules."""

    def __init__(self, listening: Listening) -> None:
        self.listening = listening
        self._known: dict[str, tuple[Stored, list[Job], Ledger]] = {}

    def replayed(self, team: str, rules: Stored, jobs: list[Job]) -> Ledger:
        """What becomes of the jobs of a team that is alone under these rules. Raises Enough."""
        known = self._known.get(team)
        if known is not None and known[0] == rules and known[1] == jobs:
            return known[2]
        replay = Replay(rules, jobs, owners=Owners(), reader=MemoryStore().reader)
        ledger = replay.run(told=self.listening.hears_of(f"team {team} alone"))
        self._known[team] = (rules, jobs, ledger)
        return ledger


def fairness(outcome: Outcome, parties: Parties, soloists: Soloists) -> list[Fairness]:
    """The figures of every team that has jobs, by name; of those whose turn came, where there is enough before."""
    found: list[Fairness] = []
    try:
        found.extend(told(outcome.ledger, alone) for alone in each_alone(outcome, parties, soloists))
    except Enough:
        soloists.listening.enough = True
    return found


def each_alone(outcome: Outcome, parties: Parties, soloists: Soloists) -> Iterable[Alone]:
    """Each team alone on its reservation, by name. Raises Enough."""
    numbers: dict[str, list[int]] = {}
    for number, job in enumerate(outcome.ledger.jobs):
        numbers.setdefault(parties.of(job), []).append(number)
    policies: dict[str, list[Policy]] = {}
    for policy in outcome.rules.snapshot.policies:
        if policy.reserved:
            policies.setdefault(called(policy.subject), []).append(policy)
    for team in sorted(numbers):
        mine = policies.get(team, [])
        ledger = None
        if mine:
            jobs = [_as_one_of(mine[0].subject, outcome.ledger.jobs[number]) for number in numbers[team]]
            ledger = soloists.replayed(team, rules_alone(outcome.rules, mine), jobs)
        yield Alone(team=team, reservation=_reservation(mine, parties), numbers=tuple(numbers[team]), ledger=ledger)


def rules_alone(rules: Stored, policies: Sequence[Policy]) -> Stored:
    """Rules in which these policies of one subject are alone on what is reserved for them.

    Nothing is reserved there, since everything is theirs: order is that of arrival, without regard to what fits.
    """
    pools = tuple(_pool_alone(pool, policies) for pool in rules.snapshot.pools)
    alone = [
        replace(policy, reserved=NOTHING, limit=policy.reserved if policy.also else (), possible=None, dedicated=False)
        for policy in policies
    ]
    made = rulebook(pools, alone)
    others = tuple(declared for declared in rules.declared if declared.kind not in (Kind.POOL, Kind.POLICY))
    return replace(
        made,
        snapshot=replace(made.snapshot, profiles=rules.snapshot.profiles),
        declared=(*made.declared, *others),
    )


def _pool_alone(pool: Pool, policies: Sequence[Policy]) -> Pool:
    capacity = total(_held_in(pool, policy) for policy in policies)
    return replace(
        pool,
        capacity=capacity,
        nodes=(),
        ordering=Ordering.FIFO,
        backfill=False,
        placement=Placement.PACK,
        components=frozenset(),
    )


def _held_in(pool: Pool, policy: Policy) -> Amounts:
    """As much of a reservation as can be used in that pool."""
    if pool.id not in policy.pools:
        return NOTHING
    there = nominal_capacity(pool)
    return tuple((key, min(value, get(there, key))) for key, value in policy.reserved if get(there, key))


def _as_one_of(subject: Subject, job: Job) -> Job:
    """The job of a team that is alone: nobody is there to be asked before, or to give way to."""
    return replace(job, subjects=(subject,), priority=0, preemptible=True)


def _reservation(policies: Iterable[Policy], parties: Parties) -> str:
    told = []
    for policy in policies:
        amounts = ", ".join(f"{show(value)} {key}" for key, value in policy.reserved)
        told.append(f"{amounts} on {' + '.join(parties.names.pool(pool) for pool in policy.pools)}")
    return "; ".join(told)


def ratios(ledger: Ledger, alone: Alone) -> list[tuple[int, int]]:
    """Of each job that ended both here and alone: how long that took here, and alone; microseconds."""
    found = []
    if alone.ledger is not None:
        for there, here in enumerate(alone.numbers):
            if ledger.fate[here] in ENDED and alone.ledger.fate[there] in ENDED:
                submitted_at = ledger.jobs[here].submitted_at
                found.append((ledger.ended[here] - submitted_at, alone.ledger.ended[there] - submitted_at))
    return found


def told(ledger: Ledger, alone: Alone) -> Fairness:
    """The figures of one team."""
    pairs = ratios(ledger, alone)
    later = sum(here > there for here, there in pairs)
    ordered = sorted(here / there for here, there in pairs)
    return Fairness(
        team=alone.team,
        reservation=alone.reservation,
        jobs=len(pairs),
        left_out=len(alone.numbers) - len(pairs),
        within=(len(pairs) - later) / len(pairs) if pairs else None,
        mean=sum(ordered) / len(pairs) if pairs else None,
        median=_quantile(ordered, MEDIAN),
        p95=_quantile(ordered, P95),
        worst=ordered[-1] if pairs else None,
        later_jobs=later,
    )


def _quantile(ordered: Sequence[float], share: Fraction) -> float | None:
    if not ordered:
        return None
    place = float(share) * (len(ordered) - 1)
    below = min(int(place), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
