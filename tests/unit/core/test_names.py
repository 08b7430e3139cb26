"""Names and keys: nothing that hides a control character or could be taken for an option."""

from __future__ import annotations

import pytest

from fairpool.core.errors import InvalidName
from fairpool.core.ids import check_key, check_name, seconds


@pytest.mark.parametrize("name", ["a", "A1", "team-a", "a.b_c@d+e", "0", "x" * 63])
def test_a_name_may_be_what_people_call_things(name: str) -> None:
    assert check_name(name, what="pool") == name


@pytest.mark.parametrize(
    "name",
    ["-a", "a-", ".a", "a b", "a/b", "a:b", "a\n", "\n", "a\x00b", "a\x1b[0m", "ä", "ａ", "a\u200bb", "team,x"],
)
def test_a_name_may_not_hide_anything(name: str) -> None:
    with pytest.raises(InvalidName, match="holds characters that it may not") as refusal:
        check_name(name, what="pool")
    assert refusal.value.value == name
    assert "letters, digits" in refusal.value.possible


def test_an_empty_name_is_refused_as_empty() -> None:
    with pytest.raises(InvalidName, match="a pool may not be empty"):
        check_name("", what="pool")


def test_a_name_of_64_characters_is_refused_and_quoted_in_part() -> None:
    with pytest.raises(InvalidName, match="has 64 characters") as refusal:
        check_name("x" * 64, what="pool")
    assert refusal.value.possible == "1 to 63 characters"


def test_a_key_may_have_a_slash_inside_and_a_name_may_not() -> None:
    assert check_key("license/matlab") == "license/matlab"
    for odd in ("/gpu", "gpu/", "a@b", "a+b"):
        with pytest.raises(InvalidName, match="resource key"):
            check_key(odd)


@pytest.mark.parametrize(("length_s", "microseconds"), [(0, 0), (1, 10**6), (0.5, 500_000), (1e-7, 0), (6e-7, 1)])
def test_seconds_become_whole_microseconds_the_nearest(length_s: float, microseconds: int) -> None:
    assert seconds(length_s) == microseconds
