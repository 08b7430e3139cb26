"""Waits, ends and evictions: figures worked out by hand."""

import statistics
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from fairpool.sim.owners import Owners, Progress
from fairpool.sim.reports.figures import Group
from fairpool.sim.reports.measures import groups
from fairpool.sim.reports.outcome import Outcome
from fairpool.sim.reports.parties import Parties
from fairpool.sim.reports.quantiles import MEDIAN, P95, distribution, mean, quantile
from tests.unit.sim.reports.worlds import job, outcome, rules

NUMBERS = st.lists(st.integers(min_value=0, max_value=10**13), min_size=2, max_size=60)


def told(found: Outcome) -> dict[tuple[str, str], Group]:
    return {(group.kind, group.name): group for group in groups(found.ledger, Parties(found.rules), "gpu")}


def test_three_jobs_on_one_device_wait_for_each_other() -> None:
    """They run 100 s each: the first at once, the second after 100 - 10 s, the third after 200 - 20 s."""
    found = told(outcome(rules(1, v=1), *(job(f"j{n}", "v", 10 * n, 100) for n in range(3))))
    waits = found["team", "v"].waits
    assert waits is not None
    assert (waits.jobs, waits.mean_s, waits.median_s, waits.worst_s) == (3, 90, 90, 180)
    assert waits.p95_s == 90 + 0.9 * 90, "95 of 100 lies nine tenths of the way from the second to the third"
    assert waits.at_once == 1 / 3
    assert found["pool", "p"].waits is not None and found["pool", "p"].waits.mean_s == 90


def test_jobs_count_for_their_team_pool_and_profile_and_once_for_all() -> None:
    found = told(outcome(rules(4, v=2, w=2), job("a", "v", 0, 10), job("b", "w", 0, 10), job("c", "w", 5, 10)))
    assert {key: group.jobs for key, group in found.items()} == {
        ("all", ""): 3,
        ("team", "v"): 1,
        ("team", "w"): 2,
        ("pool", "p"): 3,
        ("profile", ""): 3,
    }


def test_what_could_never_run_is_counted_and_has_no_wait() -> None:
    group = told(outcome(rules(2, v=2), job("big", "v", 0, 10, gpus=3)))["team", "v"]
    assert (group.refused, group.finished, group.waits) == (1, 0, None)


def test_what_has_not_ended_waits_until_the_replay_ends() -> None:
    found = told(outcome(rules(1, v=1), job("a", "v", 0, 100), job("b", "v", 10, 100), until_s=50))["all", ""]
    assert (found.running, found.waiting, found.finished) == (1, 1, 0)
    assert found.waits is not None and found.waits.worst_s == 40


def test_an_evicted_job_waits_again_and_what_it_does_again_is_counted() -> None:
    """w borrows both devices for 100 s; v reclaims one at 30 s and has it for 50 s. All that w had done is lost."""
    lost = Owners(progress=Progress.LOST)
    found = told(outcome(rules(2, v=1, w=1), job("w", "w", 0, 100, gpus=2), job("v", "v", 30, 50), owners=lost))
    evicted = found["team", "w"]
    assert evicted.evictions == 1
    assert evicted.lost_hours == 2 * 30 / 3600
    assert evicted.waits is not None and evicted.waits.worst_s == 50
    assert found["team", "v"].evictions == 0


@given(NUMBERS)
def test_quantiles_are_those_of_statistics(numbers: list[int]) -> None:
    ordered = sorted(numbers)
    exact = [Fraction(number) for number in ordered]
    assert quantile(ordered, MEDIAN) == statistics.median(exact)
    assert quantile(ordered, P95) == statistics.quantiles(exact, n=20, method="inclusive")[18]
    assert mean(ordered) == statistics.mean(exact)
    assert quantile(ordered, Fraction(1)) == ordered[-1]


@given(NUMBERS)
def test_a_distribution_grows_to_all_and_never_overstates(numbers: list[int]) -> None:
    ordered = sorted(numbers)
    points = distribution(ordered)
    assert points == sorted(points)
    assert points[-1][1] == 1
    for length, share in points:
        assert share == Fraction(sum(number <= length for number in ordered), len(ordered))
