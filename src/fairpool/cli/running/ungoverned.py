"""What is said of work that no policy speaks of (S15): who thought that it was counted hears that it is not."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fairpool.client.api import Client

MOST_NAMED = 5


def said_of_ungoverned(client: Client, subjects: Sequence[str]) -> str:
    """That it runs, and how it would be counted."""
    from fairpool.client.errors import ClientError

    try:
        known = sorted({policy.subject for policy in client.policies()})
    except ClientError:
        known = []
    if not known:
        return "running; no policy governs it, so nothing is counted (fairpool policy attach POOL SUBJECT)"
    named = [subject for subject in subjects if not subject.startswith("component:")] or list(subjects)
    return f"running; no policy is for {', '.join(named)}, so nothing is counted ({instead(named, known)})"


def instead(named: Sequence[str], known: Collection[str]) -> str:
    """What was meant, if it looks like a slip; else what there is."""
    for subject in named:
        if meant := get_close_matches(subject, known, n=1, cutoff=0.75):
            return f"did you mean {_option(meant[0])}?"
    shown = [*list(known)[:MOST_NAMED], *(["…"] if len(known) > MOST_NAMED else [])]
    return f"there are policies for {', '.join(shown)}: --team or --as says whose you use"


def _option(subject: str) -> str:
    """How that subject is said on the command line."""
    kind, _, name = subject.partition(":")
    return f"--{kind} {name}" if kind in ("team", "component") else f"--as {subject}"
