"""Ids sort in the order in which they were drawn; the clock never goes back."""

import time

import pytest

from fairpool.app.records import Kind
from fairpool.bootstrap.sources import SystemClock, TimeOrderedIds


def test_ids_are_different_sorted_and_made_of_letters_and_digits() -> None:
    ids = TimeOrderedIds()
    drawn = [ids.new(Kind.REQUEST) for _ in range(20_000)]
    assert drawn == sorted(set(drawn))
    assert {len(found) for found in drawn} == {19}
    assert all(found.isalnum() and found == found.lower() for found in drawn)


def test_two_sources_do_not_draw_the_same() -> None:
    one, two = TimeOrderedIds(), TimeOrderedIds()
    assert not {one.new(Kind.RUN) for _ in range(100)} & {two.new(Kind.RUN) for _ in range(100)}


def test_a_clock_that_is_set_back_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SystemClock()
    before = clock.now()
    monkeypatch.setattr(time, "time_ns", lambda: (before - 5_000_000) * 1000)
    assert clock.now() == before
    monkeypatch.setattr(time, "time_ns", lambda: (before + 7) * 1000)
    assert clock.now() == before + 7
