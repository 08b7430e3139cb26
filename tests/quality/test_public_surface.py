"""The public surface is what users build on: it changes on purpose, seen in a diff."""

from pathlib import Path

import fairpool

PINNED = Path(__file__).with_name("public_surface.txt")


def test_the_public_surface_is_the_pinned_one() -> None:
    """A removed name breaks someone; an added one is promised for long. Either way: edit public_surface.txt too."""
    pinned = [line for line in PINNED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert sorted(fairpool.__all__) == pinned


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    undocumented = [
        name for name in fairpool.__all__ if callable(thing := getattr(fairpool, name)) and not thing.__doc__
    ]
    assert not undocumented, f"public and without a docstring: {undocumented}"


def test_every_public_name_shows_up_in_completion() -> None:
    assert set(fairpool.__all__) <= set(dir(fairpool))
