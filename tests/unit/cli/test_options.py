"""Options that say an object: as pairs, as JSON, as YAML."""

from __future__ import annotations

from decimal import Decimal

import click
import pytest

from fairpool.cli.options import data


@pytest.mark.parametrize(
    "text", ["gpu=8,mcpu=0.5", '{"gpu": 8, "mcpu": 0.5}', "gpu: 8\nmcpu: 0.5", "{gpu: 8, mcpu: 0.5}"]
)
def test_amounts_may_be_said_in_four_ways(text: str) -> None:
    assert {key: Decimal(str(value)) for key, value in data(text, option="--capacity").items()} == {
        "gpu": 8,
        "mcpu": Decimal("0.5"),
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gpu=1,gpu=2", "the key 'gpu' is there twice"),
        ("gpu", "possible: gpu=8,mcpu=4000"),
        ("[1]", "possible: gpu=8,mcpu=4000"),
        ('{"gpu": 8', "line 1, column"),
    ],
)
def test_what_is_no_object_is_refused_with_what_is_possible(text: str, told: str) -> None:
    with pytest.raises(click.UsageError, match=told):
        data(text, option="--capacity")


def test_a_value_that_is_no_number_is_left_for_the_server_to_refuse() -> None:
    assert data("gpu=many", option="--capacity") == {"gpu": "many"}
