"""Experience: run times by step, profile and owner, what comes first, what is forgotten, and what a restart recalls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fairpool.app import experience
from fairpool.app.experience import FEWEST, HALF_LIFE_S, KEPT, Experience, Work, owner_of
from fairpool.app.store_errors import StoreUnavailable
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import requests
from fairpool.core.ids import SECOND, Instant
from fairpool.core.outlook import Estimate
from fairpool.core.policies import Subject
from fairpool.core.usual import Basis, Usual
from tests.unit.app.office import START, Office, ask, opened

TRAIN = Work(owner="team:a", step="train", profile="small")
DAY = 86_400 * SECOND


def _saw(seen: Experience, work: Work, *lengths_s: int, at: int = START) -> None:
    for length_s in lengths_s:
        seen.saw(work, length_s * SECOND, Instant(at))


def test_nothing_is_said_of_what_was_seen_too_rarely() -> None:
    seen = Experience()
    _saw(seen, TRAIN, *[60] * (FEWEST - 1))
    assert seen.usual(TRAIN) is None
    _saw(seen, TRAIN, 60)
    assert seen.usual(TRAIN) is not None


def test_the_step_comes_before_the_owners_profile_the_owner_and_everybodys_profile() -> None:
    """S37: what is most like it."""
    seen = Experience()
    _saw(seen, TRAIN, *[60] * FEWEST)

    def basis(owner: str, step: str, profile: str) -> tuple[Basis, str] | None:
        found = seen.usual(Work(owner=owner, step=step, profile=profile))
        return None if found is None else (found.basis, found.name)

    assert basis("team:a", "train", "small") == (Basis.STEP, "train")
    assert basis("team:a", "other", "small") == (Basis.PROFILE, "small")
    assert basis("team:a", "other", "large") == (Basis.OWNER, "team:a")
    assert basis("team:b", "train", "small") == (Basis.PROFILE, "small")
    assert basis("team:b", "train", "large") is None


def test_another_teams_step_of_the_same_name_is_another_step() -> None:
    seen = Experience()
    _saw(seen, Work(owner="team:b", step="train"), *[60] * FEWEST)
    assert seen.usual(Work(owner="team:a", step="train")) is None


def test_older_run_times_count_for_less() -> None:
    seen, later = Experience(), START + 3 * HALF_LIFE_S * SECOND
    _saw(seen, TRAIN, *[600] * 6)
    _saw(seen, TRAIN, *[60] * 3, at=later)
    usual = seen.usual(TRAIN)
    assert usual is not None
    assert usual.finished == 9
    assert usual.length_us(500) == 60 * SECOND  # three of 1 each against six of an eighth


def test_of_each_kind_the_newest_are_kept() -> None:
    seen = Experience()
    _saw(seen, TRAIN, *[600] * KEPT, *[60] * KEPT)
    usual = seen.usual(TRAIN)
    assert usual is not None
    assert set(usual.lengths_us) == {60 * SECOND}


def test_kinds_are_bounded_and_the_one_unheard_of_for_longest_goes() -> None:
    seen = Experience()
    for number in range(experience.MOST_KINDS):
        seen.saw(Work(owner=f"team:{number}"), SECOND, START)
    _saw(seen, Work(owner="team:0"), *[60] * FEWEST)
    seen.saw(Work(owner="team:new"), SECOND, START)
    assert len(seen._seen) == experience.MOST_KINDS
    assert seen.usual(Work(owner="team:0")) is not None


def test_work_is_its_teams_else_its_users_else_its_components() -> None:
    def owner(*subjects: str) -> str:
        return owner_of([Subject.parse(subject) for subject in subjects])

    assert owner("component:local", "user:alice", "team:z", "team:b") == "team:b"
    assert owner("component:local", "user:alice") == "user:alice"
    assert owner("component:local") == "component:local"


# ---- fed by what ends ------------------------------------------------------------------------------------------------


def _runs(office: Office, name: str, *lengths_s: int) -> None:
    for length_s in lengths_s:
        made = office.do(requests.submit, ask("team:red", 8, name=name, lease_s=DAY // SECOND))
        office.pass_time(length_s)
        office.do(requests.release, made.id)


def _usual(office: Office, name: str) -> Usual | None:
    return office.ask(lambda memory, now: memory.experience.usual(Work(owner="team:red", step=name)))


def test_ends_are_remembered_and_a_restart_recalls_the_same() -> None:
    office = opened()
    _runs(office, "train", 60, 120, 180, 240, 300)
    _runs(office, "eval", 10, 20, 30, 40, 50)
    known = _usual(office, "train")
    assert known is not None
    assert (known.basis, known.lengths_us[0], known.finished) == (Basis.STEP, 60 * SECOND, 5)
    after = office.restarted()
    assert [_usual(after, name) for name in ("train", "eval", "new")] == [
        _usual(office, name) for name in ("train", "eval", "new")
    ]


def test_what_waited_only_or_was_evicted_says_nothing() -> None:
    office = opened()
    running = [office.submit(gpus=8, preemptible=True, lease_s=DAY // SECOND)]
    for _ in range(FEWEST):
        waited = office.submit(gpus=8)
        office.do(requests.cancel, waited.id)
    office.submit("team:blue", 2)
    office.pass_time(40)
    assert office.status(running[0].id) == "preempted"
    assert office.ask(lambda memory, now: memory.experience.usual(Work(owner="team:red"))) is None


def test_a_commit_that_fails_neither_loses_nor_doubles_what_was_seen() -> None:
    office = opened()
    _runs(office, "train", 60, 60, 60, 60)
    made = office.do(requests.submit, ask("team:red", 8, name="train"))
    office.pass_time(30)
    office.store.refusals = [StoreUnavailable("down")]
    office.round(partial(_release, made.id))
    office.do(requests.release, made.id)
    known = _usual(office, "train")
    assert known is not None
    assert known.lengths_us == (30 * SECOND, *[60 * SECOND] * 4)


def _release(request: str, tx: Transaction) -> Callable[[], object]:
    return requests.release(tx, request)


def test_an_estimate_comes_true_when_work_takes_what_it_usually_does() -> None:
    """S37: all that ran so far took a minute; the request starts when the estimate said it would."""
    office = opened()
    _runs(office, "train", *[60] * FEWEST)
    office.do(requests.submit, ask("team:red", 8, name="train", lease_s=DAY // SECOND))
    office.pass_time(20)
    waiting = office.submit("team:red", 8, lease_s=DAY // SECOND)
    foreseen = office.foresee(waiting.id)
    assert foreseen is not None
    told = foreseen.estimate
    assert isinstance(told, Estimate)
    assert [ground.basis for ground in told.grounds] == [Basis.STEP]
    running = office.ask(lambda memory, now: next(iter(memory.world.allocations)))
    office.pass_time(39)
    assert office.status(waiting.id) == "queued"
    office.pass_time(1)
    office.do(requests.release, running)
    assert office.get(waiting.id).state.grant is not None
    assert told.low == told.about == told.high == office.clock.now()
