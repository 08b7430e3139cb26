"""What a replay makes of jobs: worlds small enough to be worked out by hand."""

from __future__ import annotations

from typing import Any

from fairpool.app.ports import Stored
from fairpool.app.use_cases import stacks, teams, users
from fairpool.core.amounts import vector
from fairpool.core.ids import SECOND, Instant
from fairpool.core.policies import Subject
from fairpool.core.reasons import Code
from fairpool.core.requests import Because, Demand
from fairpool.sim.jobs import Job
from fairpool.sim.ledger import NEVER, Fate, Ledger
from fairpool.sim.owners import Owners, Progress
from fairpool.sim.replay import Replay
from fairpool.sim.rulebook import rulebook, without_work
from fairpool.store.memory import MemoryStore
from fairpool.testing.builders import policy, pool
from tests.unit.app.office import Office


def job(at_s: int, run_s: int, subject: str = "team:red", gpus: object = 1, **said: Any) -> Job:
    return Job(
        name=f"{at_s}",
        submitted_at=Instant(at_s * SECOND),
        run_us=run_s * SECOND,
        subjects=tuple(Subject.parse(each) for each in subject.split()),
        demand=Demand.of(vector({"gpu": gpus})),
        **said,
    )


def played(rules: Stored, *jobs: Job, until_s: int | None = None, **owners: Any) -> Ledger:
    replay = Replay(rules, jobs, owners=Owners(**owners), reader=MemoryStore().reader)
    return replay.run(None if until_s is None else Instant(until_s * SECOND))


ONE_GPU = rulebook([pool("p", {"gpu": 1})], [policy("team:red"), policy("team:blue", {"gpu": 1})])


def seconds(moments: Any) -> list[int]:
    return [at // SECOND if at != NEVER else NEVER for at in moments]


def test_who_comes_second_starts_when_the_first_has_ended() -> None:
    ledger = played(ONE_GPU, job(0, 10), job(1, 10))
    assert (seconds(ledger.first_start), seconds(ledger.ended)) == ([0, 10], [10, 20])
    assert [ledger.wait_us(number) // SECOND for number in range(2)] == [0, 9]
    assert list(ledger.fate) == [Fate.DONE, Fate.DONE]


def test_an_owner_gets_back_what_is_reserved_and_the_evicted_job_goes_on_where_it_was() -> None:
    ledger = played(ONE_GPU, job(0, 10), job(4, 3, "team:blue"))
    assert seconds(ledger.ended) == [13, 7]
    [evicted] = ledger.evictions
    assert (evicted.job, evicted.cause, evicted.because, evicted.lost_us) == (0, 1, Because.RECLAIM, 0)


def test_work_that_no_checkpoint_holds_is_done_again() -> None:
    jobs = (job(0, 10), job(7, 3, "team:blue"))
    assert seconds(played(ONE_GPU, *jobs, progress=Progress.LOST).ended) == [20, 10]
    saved = played(ONE_GPU, *jobs, checkpoint_interval_s=5)
    assert seconds(saved.ended) == [15, 10], "five of seven seconds were saved"
    assert seconds(saved.lost_us) == [2, 0]


def test_an_owner_that_takes_its_time_keeps_the_gpu_until_its_grace_period_ends() -> None:
    assert seconds(played(ONE_GPU, job(0, 100), job(10, 5, "team:blue"), release_after_s=8).first_start) == [0, 18]
    assert seconds(played(ONE_GPU, job(0, 100), job(10, 5, "team:blue"), release_after_s=99).first_start) == [0, 40]


def test_what_can_never_run_is_refused_with_its_reason() -> None:
    ledger = played(ONE_GPU, job(0, 1, gpus=2))
    assert list(ledger.fate) == [Fate.REJECTED]
    assert [reason.code for reason in ledger.refusals[0]] == [Code.EXCEEDS_POOL_CAPACITY]


def test_a_replay_that_is_cut_leaves_jobs_running_and_waiting() -> None:
    ledger = played(ONE_GPU, job(0, 100), job(10, 100), until_s=50)
    assert list(ledger.fate) == [Fate.RUNNING, Fate.WAITING]
    assert [ledger.wait_us(number) // SECOND for number in range(2)] == [0, 40]


def test_somebody_brings_their_teams_along_where_the_trace_names_none() -> None:
    office = Office()
    office.do(stacks.ensure_defaults)
    office.do(users.create, "ann")
    office.do(teams.create, "red", members=["ann"])
    office.pool("p", {"gpu": 1})
    office.policy("team:red", {"gpu": 1})
    ledger = played(without_work(office.store.load()), job(0, 1, "user:ann"))
    assert list(ledger.fate) == [Fate.DONE]


def test_a_trace_that_names_a_team_is_taken_at_its_word() -> None:
    ledger = played(ONE_GPU, job(0, 1, "team:red user:nobody"))
    assert list(ledger.fate) == [Fate.DONE]
