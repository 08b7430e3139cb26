"""Windows of time: when they are open, across summer time too, what is in force, and what can meet."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool.app import schedules
from fairpool.app.schedules import Scheduled, Window, combinations, next_edge, open_at
from fairpool.core.amounts import vector
from fairpool.core.errors import InvalidInput, InvalidRules
from fairpool.core.ids import SECOND, Instant
from tests.unit.app.office import policy

BERLIN = ZoneInfo("Europe/Berlin")
NIGHTS = Window(start="0 20 * * 1-5", duration_s=36_000, timezone="Europe/Berlin", reserved=vector({"gpu": 6}))
"""Weekdays from eight in the evening, for ten hours."""


def at(text: str, zone: dt.tzinfo = BERLIN) -> Instant:
    return Instant(round(dt.datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()) * SECOND)


def told(moment: Instant | None) -> str:
    assert moment is not None
    return dt.datetime.fromtimestamp(moment / SECOND, BERLIN).isoformat(timespec="minutes")


def edges(window: Window, begin: str, count: int) -> list[str]:
    """The next turns, in local time."""
    found, moment = [], at(begin)
    for _ in range(count):
        following = next_edge((window,), moment)
        assert following is not None
        found.append(told(following))
        moment = following
    return found


# ---- when they are open ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moment", "is_open"),
    [
        ("2026-11-20T19:59:59", False),  # a Friday
        ("2026-11-20T20:00:00", True),
        ("2026-11-21T05:59:59", True),
        ("2026-11-21T06:00:00", False),
        ("2026-11-21T20:00:00", False),  # Saturday
        ("2026-11-23T20:00:00", True),
    ],
)
def test_a_window_is_open_from_its_start_for_its_duration(moment: str, is_open: bool) -> None:
    assert (open_at((NIGHTS,), at(moment)) == 0) is is_open


def test_edges_come_one_after_the_other() -> None:
    assert edges(NIGHTS, "2026-11-20T12:00", 4) == [
        "2026-11-20T20:00+01:00",
        "2026-11-21T06:00+01:00",
        "2026-11-23T20:00+01:00",
        "2026-11-24T06:00+01:00",
    ]


def test_a_duration_is_elapsed_time_when_the_clocks_turn() -> None:
    """In the night to the 29th of March an hour is missing, in that to the 25th of October there is one more."""
    every_night = Window(start="0 20 * * *", duration_s=36_000, timezone="Europe/Berlin", priority=1)
    assert edges(every_night, "2026-03-28T12:00", 2) == ["2026-03-28T20:00+01:00", "2026-03-29T07:00+02:00"]
    assert edges(every_night, "2026-10-24T12:00", 2) == ["2026-10-24T20:00+02:00", "2026-10-25T05:00+01:00"]


def test_a_start_in_the_hour_that_is_missing_or_there_twice_happens_once() -> None:
    early = Window(start="30 2 * * *", duration_s=3_600, timezone="Europe/Berlin", priority=1)
    begun = edges(early, "2026-03-28T12:00", 4)[::2]
    assert [edge[:10] for edge in begun] == ["2026-03-29", "2026-03-30"]
    begun = edges(early, "2026-10-24T12:00", 4)[::2]
    assert [edge[:10] for edge in begun] == ["2026-10-25", "2026-10-26"]


def test_of_several_open_windows_the_first_that_was_written_counts() -> None:
    weekend = Window(start="0 0 * * 6", duration_s=2 * 86_400, timezone="Europe/Berlin", priority=7)
    both = (weekend, NIGHTS)
    assert open_at(both, at("2026-11-20T21:00")) == 1
    assert open_at(both, at("2026-11-21T01:00")) == 0  # Friday's night is open too
    assert open_at((NIGHTS, weekend), at("2026-11-21T01:00")) == 0
    assert schedules.effective(policy(priority=1), both, 0).priority == 7
    assert schedules.effective(policy(priority=1), both, None).priority == 1


def test_a_window_that_meets_itself_stays_open() -> None:
    always = Window(start="0 * * * *", duration_s=7_200, priority=1)
    assert open_at((always,), at("2026-11-20T12:34:56")) == 0


def test_a_start_that_never_comes_again_has_no_edge() -> None:
    assert next_edge((), at("2026-11-20T12:00")) is None


@given(
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    duration_s=st.integers(60, 3 * 86_400),
    moment=st.integers(1_750_000_000, 1_850_000_000),
)
def test_between_two_edges_nothing_turns(minute: int, hour: int, duration_s: int, moment: int) -> None:
    window = Window(start=f"{minute} {hour} * * *", duration_s=duration_s, timezone="Europe/Berlin", priority=1)
    now = Instant(moment * SECOND)
    following = next_edge((window,), now)
    assert following is not None
    assert following > now
    before = open_at((window,), now)
    for part in (1, 2, 3):
        between = Instant(now + (following - now) * part // 4)
        assert open_at((window,), between) == before
    assert open_at((window,), Instant(following - 1)) == before


# ---- nonsense --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"start": "every evening"}, "schedule.1.start", "has not five fields"),
        ({"start": "* * * * * *"}, "schedule.1.start", "has not five fields"),
        ({"start": "0 25 * * *"}, "schedule.1.start", "is no cron expression: bad hour"),
        ({"start": "0 0 31 2 *"}, "schedule.1.start", "is no cron expression"),
        ({"timezone": "Europe/Brelin"}, "schedule.1.timezone", "no time zone 'Europe/Brelin'"),
        ({"timezone": "../../etc/passwd"}, "schedule.1.timezone", "no time zone"),
        ({"timezone": ""}, "schedule.1.timezone", "no time zone"),
        ({"duration_s": 59}, "schedule.1.duration_s", "a window of 59 s"),
        ({"duration_s": 400 * 86_400}, "schedule.1.duration_s", "a window of"),
        ({"reserved": None}, "schedule.1.start", "the window changes nothing"),
    ],
)
def test_nonsense_is_refused_with_its_field(fields: dict[str, Any], field: str, words: str) -> None:
    wrong = Window(**{"start": "0 20 * * *", "duration_s": 3600, "timezone": "UTC", "reserved": (), **fields})
    with pytest.raises(InvalidInput, match=words) as raised:
        schedules.check_windows((NIGHTS, wrong))
    assert raised.value.field == field
    assert raised.value.possible


def test_too_many_windows_and_too_many_starts_are_refused() -> None:
    with pytest.raises(InvalidInput, match="21 windows"):
        schedules.check_windows((NIGHTS,) * 21)
    often = Scheduled(policy=policy(), windows=(Window(start="*/10 * * * *", duration_s=60, priority=1),))
    with pytest.raises(InvalidRules, match="more than once an hour"):
        list(combinations([often], at("2026-11-20T12:00")))


# ---- what can meet ---------------------------------------------------------------------------------------------------


def reserved(combination: Iterator[Any]) -> set[tuple[int, ...]]:
    return {tuple(dict(one.reserved).get("gpu", 0) // 1000 for one in policies) for _, policies in combination}


def test_all_combinations_that_occur_are_found_and_no_others() -> None:
    day = Window(start="0 8 * * *", duration_s=43_200, reserved=vector({"gpu": 8}))
    night = Window(start="0 20 * * *", duration_s=43_200, reserved=vector({"gpu": 8}))
    service = Scheduled(policy=policy(), windows=(day,))
    research = Scheduled(policy=policy("team:blue"), windows=(night,))
    assert reserved(combinations([service, research], at("2026-11-20T12:00"))) == {(8, 0), (0, 8)}
    late = Scheduled(policy=policy("team:blue"), windows=(Window(**_fields(night, duration_s=43_260)),))
    assert reserved(combinations([service, late], at("2026-11-20T12:00"))) == {(8, 0), (0, 8), (8, 8)}


def test_what_meets_once_a_year_is_found() -> None:
    new_year = Window(start="0 0 1 1 *", duration_s=86_400, reserved=vector({"gpu": 8}))
    sundays = Window(start="0 0 * * 0", duration_s=86_400, reserved=vector({"gpu": 4}))
    both = [Scheduled(policy=policy(), windows=(new_year,)), Scheduled(policy=policy("team:b"), windows=(sundays,))]
    assert (8, 4) not in reserved(combinations(both, at("2026-11-20T12:00", dt.UTC)))  # 2027 begins on a Friday
    assert (8, 4) in reserved(combinations(both, at("2033-06-20T12:00", dt.UTC)))  # 2034 begins on a Sunday


def test_without_windows_there_is_one_combination() -> None:
    found = list(combinations([Scheduled(policy=policy(), windows=())], at("2026-11-20T12:00")))
    assert [policies for _, policies in found] == [(policy(),)]


def _fields(window: Window, **changes: Any) -> dict[str, Any]:
    return {name: getattr(window, name) for name in ("start", "duration_s", "timezone", "reserved")} | changes


def test_windows_come_back_from_a_note_as_they_were() -> None:
    windows = (
        NIGHTS,
        Window(start="0 0 1 * *", duration_s=60, limit=(("gpu", 0),), priority=-3, weight=1500, grace_s=0),
    )
    note = schedules.note_with({"description": "x"}, windows, 1)
    assert schedules.windows_in(note) == windows
    assert schedules.open_in(note) == 1
    assert schedules.note_with(note, (), None) == {"description": "x"}
