"""When a waiting request may start, in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from fairpool.wire.explanations import EstimateView


def start(found: EstimateView, show: Callable[[datetime], str]) -> str:
    """The estimate as a sentence without a full stop. show: how a moment is written."""
    if found.about is None:
        known = "start unknown" if found.low is None else f"starts later than {show(found.low)}"
        return f"{known}: {found.basis}"
    about = f"starts at about {show(found.about)}"
    if found.high is None:
        about += f", or later (not before {show(found.low)})" if found.low is not None else ", or later"
    elif found.low is not None and show(found.low) != show(found.high):
        about += f", most likely between {show(found.low)} and {show(found.high)}"
    return f"{about}, if {found.basis}"


def dated(found: EstimateView, show: Callable[[datetime], str]) -> str:
    """The same, and of which moment it speaks."""
    told = start(found, show)
    return told if found.as_of is None else f"{told} (as of {show(found.as_of)})"
