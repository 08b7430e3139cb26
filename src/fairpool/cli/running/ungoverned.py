"""What a command is told that no policy speaks of (S15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairpool.sdk.uncounted import instead

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from fairpool.client.api import Client


def said_of_ungoverned(client: Client, subjects: Sequence[str]) -> str:
    """That it runs, and how it would be counted."""
    from fairpool.client.errors import ClientError

    try:
        known = {policy.subject for policy in client.policies()}
    except ClientError:
        known = set()
    if not known:
        return "running; no policy governs it, so nothing is counted (fairpool policy attach POOL SUBJECT)"
    named = [subject for subject in subjects if not subject.startswith("component:")] or list(subjects)
    return f"running; no policy is for {', '.join(named)}, so nothing is counted ({options_instead(named, known)})"


def options_instead(named: Sequence[str], known: Collection[str]) -> str:
    """What to type."""
    return instead(named, known, say=_option, options="--team or --as")


def _option(subject: str) -> str:
    """How that subject is said on the command line."""
    kind, _, name = subject.partition(":")
    return f"--{kind} {name}" if kind in ("team", "component") else f"--as {subject}"
