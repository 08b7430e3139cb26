"""Where axes have their marks, and how numbers are told."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool.sim.reports.calendar_axis import time_ticks
from fairpool.sim.reports.drawing import Frame, duration_ticks, level_ticks, line, steps, text_of
from fairpool.sim.reports.wording import duration, number, percent, shown

BEGIN = datetime(2017, 10, 1, 7, 20, tzinfo=UTC)
DAY = 86_400


@pytest.mark.parametrize(
    ("length_s", "first"),
    [
        (60, (0.0, "07:20:00")),
        (3_600, (0.0, "07:20")),
        (DAY, (6_000.0, "09:00")),
        (30 * DAY, (232_800.0, "4 Oct")),
    ],
)
def test_marks_of_time_stand_at_round_moments(length_s: float, first: tuple[float, str]) -> None:
    assert time_ticks(BEGIN, length_s, 12)[0] == first


@given(st.floats(1, 10 * 365 * DAY), st.integers(3, 12))
def test_there_are_marks_of_time_but_not_too_many(length_s: float, wanted: int) -> None:
    assert len(time_ticks(BEGIN, length_s, wanted)) <= wanted + 1


@given(st.floats(0.001, 1e9))
def test_levels_are_round_reach_the_most_and_are_few(most: float) -> None:
    levels = level_ticks(most)
    assert levels[0] == 0 and levels[-1] >= most * (1 - 1e-9)
    assert 3 <= len(levels) <= 6


def test_marks_of_lengths_are_those_in_reach() -> None:
    assert [told for _, told in duration_ticks(1, 4000, 9)] == ["1 s", "10 s", "1 m", "10 m", "1 h"]
    assert len(duration_ticks(1, 1e9, 4)) <= 5


def test_a_stair_holds_each_height_until_the_next_place() -> None:
    assert steps([(0, 1), (5, 2)], 9) == [(0, 1), (5, 1), (5, 2), (9, 2)]


def test_points_that_say_nothing_are_not_drawn() -> None:
    assert line([(0, 1), (1, 1), (2, 1), (2, 5)], "x") == '<path d="M0.0 1.0L2.0 1.0L2.0 5.0" class="x"/>'


def test_a_frame_puts_the_least_at_the_left_and_bottom() -> None:
    frame = Frame(width=100, height=50, left=10, right=10, top=5, bottom=5, x_to=4, y_to=2)
    assert (frame.x(0), frame.x(4), frame.y(0), frame.y(2)) == (10, 90, 45, 5)


@pytest.mark.parametrize(
    ("length_s", "told"),
    [
        (0, "0s"),
        (0.25, "0.25s"),
        (59.6, "1m"),
        (61, "1m1s"),
        (3_600, "1h"),
        (90_061, "1d1h"),
        (-30, "-30s"),
        (86_401, "1d"),
    ],
)
def test_lengths_of_time_are_told_in_two_units(length_s: float, told: str) -> None:
    assert duration(length_s) == told


@pytest.mark.parametrize(
    ("share", "told"),
    [(0, "0 %"), (1, "100 %"), (0.5, "50 %"), (0.875, "87.5 %"), (0.99999, "99.999 %"), (0.0000001, "under 0.0001 %")],
)
def test_what_is_not_quite_all_never_reads_as_all(share: float, told: str) -> None:
    assert percent(share) == told


def test_numbers_have_three_figures_or_are_whole() -> None:
    assert [number(value) for value in (0, 0.1234, 12.34, 1234.5, 2.0)] == ["0", "0.123", "12.3", "1,234", "2"]


def test_names_are_shown_on_one_line_and_not_for_ever() -> None:
    assert shown("a\nb\x1b\u202e") == "a\ufffdb\ufffd\ufffd"
    assert len(shown("x" * 500)) == 60
    assert text_of("<a&b>") == "&lt;a&amp;b&gt;"
