"""Two replays of the same jobs: who ends later, and what is said of it."""

import pytest

from fairpool.core.errors import InvalidInput
from fairpool.sim import replay
from fairpool.sim.ledger import Ledger
from fairpool.sim.owners import Owners, Progress
from fairpool.sim.reports.as_html import as_html
from fairpool.sim.reports.comparing import NEVER_US, differences
from fairpool.sim.reports.making import compare
from fairpool.sim.reports.outcome import Enough, Outcome
from fairpool.sim.reports.rule_changes import rule_changes
from fairpool.sim.rulebook import rulebook
from tests.unit.sim.reports.worlds import ABOUT, a_policy, a_pool, job, outcome, rules

LOST = Owners(progress=Progress.LOST)


def pair() -> tuple[Outcome, Outcome]:
    """v's jobs come first and take both devices; with nothing reserved for w, its job waits for them."""
    jobs = (job("v1", "v", 0, 100), job("v2", "v", 0, 200), job("w1", "w", 10, 50))
    with_, without = rules(2, v=1, w=1), rules(2, v=1, w=0)
    return outcome(with_, *jobs, name="now", owners=LOST), outcome(without, *jobs, name="next", owners=LOST)


def test_differences_are_of_the_moments_of_ending() -> None:
    """With its reservation w evicts v2 at 10 s, ends at 60 s, v2 begins anew; without, w waits for v1 until 100 s."""
    now, after = pair()
    found = differences(now.ledger, after.ledger)
    assert (found.later, found.sooner, found.same, found.unknown) == (1, 1, 1, 0)
    assert [(one.job, one.later_us / 1e6) for one in found.lose] == [(2, 150 - 60)]
    assert [(one.job, one.later_us / 1e6) for one in found.gain] == [(1, 200 - 260)]
    assert found.later_sum_us / 1e6 == 90 - 60


def test_the_longest_differences_come_first_and_twenty_are_shown() -> None:
    jobs = tuple(job(f"j{n}", "v", 0, 10 + n) for n in range(30))
    found = differences(outcome(rules(30, v=1), *jobs).ledger, outcome(rules(1, v=1), *jobs).ledger)
    assert len(found.lose) == 20
    assert [one.later_us for one in found.lose] == sorted((one.later_us for one in found.lose), reverse=True)
    assert found.lose[0].job == 29


def test_a_job_that_can_never_run_in_one_of_them_loses_or_gains_more_than_any() -> None:
    jobs = (job("small", "v", 0, 10), job("big", "v", 0, 10, gpus=4))
    roomy, narrow = outcome(rules(4, v=1), *jobs), outcome(rules(2, v=1), *jobs)
    assert [(one.job, one.later_us) for one in differences(roomy.ledger, narrow.ledger).lose] == [(1, NEVER_US)]
    assert [(one.job, one.later_us) for one in differences(narrow.ledger, roomy.ledger).gain] == [(1, -NEVER_US)]
    report = compare(roomy, narrow, ABOUT, alone=False)
    assert report.comparison is not None
    assert report.comparison.lose[0].later_s is None
    assert "it could never run: 4 gpu is asked for, pool p has 2 in all" in report.comparison.lose[0].explanation[1]


def test_of_a_job_that_one_replay_did_not_bring_to_its_end_the_least_is_said() -> None:
    jobs = (job("a", "v", 0, 100), job("b", "v", 0, 100))
    whole, cut = outcome(rules(2, v=1), *jobs), outcome(rules(1, v=1), *jobs, until_s=150)
    found = differences(whole.ledger, cut.ledger)
    assert [(one.job, one.later_us / 1e6, one.at_least) for one in found.lose] == [(1, 50, True)]
    assert differences(cut.ledger, cut.ledger).unknown == 1


def test_replays_of_other_jobs_are_refused() -> None:
    one, other = outcome(rules(1, v=1), job("a", "v", 0, 1)), outcome(rules(1, v=1), job("b", "v", 0, 1))
    with pytest.raises(InvalidInput, match="'a' in one replay and 'b' in the other"):
        differences(one.ledger, other.ledger)


def test_each_of_those_that_lose_and_gain_is_explained() -> None:
    now, after = pair()
    found = compare(now, after, ABOUT).comparison
    assert found is not None
    (lost,) = found.lose
    assert (lost.job, lost.team, lost.asks, lost.later_s) == ("w1", "w", "1 gpu", 90)
    why = "1st in line for pool p: pool p has 0 gpu free of 2, 1 asked for"
    assert lost.explanation == [
        "Under now it started at once.",
        f"Under next it waited 1m30s. Queued 2023-11-14 22:13 UTC it was {why}; v used 2 (1 borrowed).",
        "What differs: policy of w on p: reserved nothing instead of 1 gpu.",
    ]
    (gained,) = found.gain
    assert gained.job == "v2"
    assert "Evicted once, for w1 of w (its reservation); 10s of its work was done again" in gained.explanation[0]
    assert gained.explanation[1] == "Under next it started at once."


def test_asking_why_changes_nothing() -> None:
    """The replay that is asked ends as the one that was not."""
    now, after = pair()
    asked, unasked = compare(now, after, ABOUT), compare(now, after, ABOUT, explained=False)
    assert asked.comparison is not None and unasked.comparison is not None
    assert [one.later_s for one in asked.comparison.lose] == [one.later_s for one in unasked.comparison.lose]
    assert "in line for pool" not in unasked.comparison.lose[0].explanation[1]


def test_who_has_heard_enough_gets_the_report_of_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told of each moment, and enough after the first: no team has been alone, and nobody was asked why."""
    monkeypatch.setattr(replay, "TOLD_EVERY", 1)

    def heard(what: str, ledger: Ledger) -> None:
        raise Enough

    now, after = pair()
    report = compare(now, after, ABOUT, heard=heard)
    assert report.cut_short
    assert [one.fairness for one in report.replays] == [[], []]
    assert report.comparison is not None
    assert [one.job for one in report.comparison.lose] == ["w1"]
    assert report.comparison.lose[0].explanation[1] == "Under next it waited 1m30s."
    assert "The report was stopped" in as_html(report)
    assert not compare(now, after, ABOUT, heard=lambda what, ledger: None).cut_short


def test_rules_that_differ_are_told_by_what_differs() -> None:
    first = rulebook([a_pool(8), a_pool(2, "old")], [a_policy("v", 3), a_policy("w", 1, priority=5)])
    second = rulebook([a_pool(6), a_pool(4, "new")], [a_policy("v", 2, dedicated=True), a_policy("x", 1)])
    like = "ordering fair, backfill yes, placement pack, max_bypass 1000000000 s, state active, components any"
    assert [one.sentence for one in rule_changes(first, second)] == [
        f"pool new: is new (capacity 4 gpu, {like})",
        f"pool old: is gone (capacity 2 gpu, {like})",
        "pool p: capacity 6 gpu instead of 8 gpu",
        "policy of v on p: reserved 2 gpu instead of 3 gpu",
        "policy of v on p: dedicated yes instead of no",
        "policy of w on p: is gone (reserved 1 gpu, priority 5, weight 1, grace 0 s, min_runtime 0 s, profiles all)",
        "policy of x on p: is new (reserved 1 gpu, priority 0, weight 1, grace 0 s, min_runtime 0 s, profiles all)",
    ]
    assert rule_changes(first, first) == []
