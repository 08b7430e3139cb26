"""What happened to single jobs, stretch by stretch."""

from fairpool.sim.owners import Owners, Progress
from fairpool.sim.reports.histories import History, histories
from tests.unit.sim.reports.worlds import BEGIN_S, job, outcome, rules


def told(history: History) -> list[tuple[str, float, float]]:
    return [
        ("runs" if one.running else "waits", one.since / 1e6 - BEGIN_S, one.until / 1e6 - BEGIN_S)
        for one in history.stretches
    ]


def test_an_evicted_job_runs_waits_and_runs_again() -> None:
    found = outcome(
        rules(2, v=1, w=1),
        job("w", "w", 0, 100, gpus=2),
        job("v", "v", 30, 50),
        owners=Owners(progress=Progress.LOST),
    )
    history = histories(found.ledger, [0])[0]
    assert told(history) == [("waits", 0, 0), ("runs", 0, 30), ("waits", 30, 80), ("runs", 80, 180)]
    longest = history.longest_wait
    assert longest is not None and longest.length_us == 50_000_000
    assert [(one.cause, one.lost_us) for one in history.evictions] == [(1, 30_000_000)]


def test_what_is_cut_short_goes_on_until_the_replays_end() -> None:
    found = outcome(rules(1, v=1), job("a", "v", 0, 100), job("b", "v", 10, 5), until_s=60)
    both = histories(found.ledger, [0, 1])
    assert told(both[0]) == [("waits", 0, 0), ("runs", 0, 60)]
    assert told(both[1]) == [("waits", 10, 60)]


def test_what_goes_away_unserved_only_waits() -> None:
    found = outcome(rules(1, v=1), job("a", "v", 0, 100), job("b", "v", 10, 5, wait_timeout_s=20))
    assert told(histories(found.ledger, [1])[1]) == [("waits", 10, 30)]
