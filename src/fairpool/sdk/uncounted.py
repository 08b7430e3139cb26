"""What is said of work that no policy speaks of (S15): who thought that it was counted hears that it is not."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from fairpool.sdk import console
from fairpool.sdk.api import Api
from fairpool.sdk.errors import ServerError
from fairpool.sdk.granting import SUBJECTS_ENV

MOST_NAMED: Final = 5


def note(api: Api, label: str, subjects: Sequence[str]) -> None:
    """Tell that the GPUs of `label` are not counted, and what would change it."""
    if not console.tells():
        return
    try:
        known = api.policy_subjects()
    except ServerError:
        known = []
    how = instead(subjects, known, say=str, options=SUBJECTS_ENV)
    console.note(
        f"{label}: no policy is for {', '.join(subjects)}, so no GPUs are counted or chosen "
        f"({how or 'fairpool policy attach POOL SUBJECT changes that'})"
    )


def instead(named: Iterable[str], known: Iterable[str], *, say: Callable[[str], str], options: str) -> str:
    """What was meant, if it looks like a slip; else whom policies are for; nothing where there are none."""
    possible = sorted(set(known))
    for subject in named:
        # Names of one kind are compared: the word before the colon would make any two of them alike.
        kind, _, name = subject.partition(":")
        names = [other.removeprefix(f"{kind}:") for other in possible if other.startswith(f"{kind}:")]
        if meant := difflib.get_close_matches(name, names, n=1, cutoff=0.7):
            return f"did you mean {say(f'{kind}:{meant[0]}')}?"
    if not possible:
        return ""
    shown = [*possible[:MOST_NAMED], *(["…"] if len(possible) > MOST_NAMED else [])]
    return f"there are policies for {', '.join(shown)}: {options} says whose you use"
