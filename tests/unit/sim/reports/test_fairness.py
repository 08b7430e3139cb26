"""Finish-time fairness: each team alone on its reservation, by hand."""

from fairpool.core.amounts import vector
from fairpool.core.ids import PoolId
from fairpool.core.policies import Policy
from fairpool.sim.reports.fairness import Soloists, fairness, rules_alone
from fairpool.sim.reports.figures import Fairness
from fairpool.sim.reports.outcome import Listening, Outcome
from fairpool.sim.reports.parties import Parties
from fairpool.sim.rulebook import rulebook
from tests.unit.sim.reports.worlds import a_policy, a_pool, job, outcome, rules


def told(found: Outcome) -> dict[str, Fairness]:
    return {one.team: one for one in fairness(found, Parties(found.rules), Soloists(Listening()))}


def test_a_team_that_borrows_is_done_sooner_than_alone() -> None:
    """Alone on one device, two jobs of 100 s end after 100 and 200 s; borrowing the other device, both after 100 s."""
    found = told(outcome(rules(2, v=1, w=1), job("a", "v", 0, 100), job("b", "v", 0, 100)))["v"]
    assert found.reservation == "1 gpu on p"
    assert (found.jobs, found.left_out, found.within, found.later_jobs) == (2, 0, 1.0, 0)
    assert (found.mean, found.worst, found.median) == (0.75, 1.0, 0.75)


def test_a_job_that_ends_later_than_alone_is_counted() -> None:
    """w borrows v's device and is spared for 300 s; so v's job of 100 s, asked for at 10 s, takes 390 s."""
    stored = rulebook([a_pool(2)], [a_policy("v", 1), a_policy("w", 1, min_runtime_s=1000)])
    found = told(outcome(stored, job("w", "w", 0, 300, gpus=2), job("v", "v", 10, 100)))
    assert (found["v"].worst, found["v"].later_jobs, found["v"].within) == (3.9, 1, 0.0)
    assert (found["w"].jobs, found["w"].left_out) == (0, 1), "two devices are more than is reserved for w"


def test_a_team_without_a_reservation_is_said_to_have_none() -> None:
    found = told(outcome(rules(2, v=2, w=0), job("a", "w", 0, 100)))["w"]
    assert (found.reservation, found.jobs, found.left_out, found.within, found.mean) == ("", 0, 1, None, None)


def test_alone_means_exactly_the_reservation_and_nothing_reserved_in_it() -> None:
    stored = rulebook([a_pool(8), a_pool(4, "q")], [a_policy("v", 3), a_policy("w", 5)])
    alone = rules_alone(stored, stored.snapshot.policies[:1])
    assert {pool.name: pool.capacity for pool in alone.snapshot.pools} == {"p": vector({"gpu": 3}), "q": ()}
    assert [(one.reserved, one.limit) for one in alone.snapshot.policies] == [((), ())]
    assert all(not pool.backfill and not pool.nodes for pool in alone.snapshot.pools)


def test_a_reservation_over_two_pools_is_a_limit_over_both() -> None:
    """Three jobs at once, two devices reserved over p and q: the third waits for one of the others."""
    span: Policy = a_policy("v", 2, also=(PoolId("q"),))
    stored = rulebook([a_pool(2), a_pool(2, "q")], [span])
    found = told(outcome(stored, *(job(f"j{n}", "v", 0, 100) for n in range(3))))["v"]
    assert found.reservation == "2 gpu on p + q"
    assert (found.worst, found.mean) == (1.0, (1 + 1 + 0.5) / 3)


def test_what_has_not_ended_here_is_left_out() -> None:
    found = told(outcome(rules(1, v=1), job("a", "v", 0, 100), job("b", "v", 0, 100), until_s=150))["v"]
    assert (found.jobs, found.left_out) == (1, 1)


def test_a_team_is_replayed_alone_once_for_two_outcomes_in_which_it_has_the_same() -> None:
    heard: list[str] = []

    class Counting(Soloists):
        def replayed(self, team, rules, jobs):
            before = self._known.get(team)
            ledger = super().replayed(team, rules, jobs)
            if before is None or before[2] is not ledger:
                heard.append(team)
            return ledger

    jobs = (job("a", "v", 0, 100), job("b", "w", 0, 100))
    soloists = Counting(Listening())
    for found in (outcome(rules(4, v=1, w=1), *jobs), outcome(rules(4, v=1, w=2), *jobs)):
        fairness(found, Parties(found.rules), soloists)
    assert heard == ["v", "w", "w"]
