"""What happened, told from the server's records and the trainings' own logs; each promise is checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from installation import Installation
from records import Records, Work
from rich.console import Console

from fairpool.wire.values import RequestStatus

SAVED = re.compile(r"abort callback: saved epoch (\d+), ([\d.]+) s left")
ROUNDING_S = 0.5


@dataclass(frozen=True)
class Finding:
    """One promise, and whether it was kept."""

    kept: bool
    told: str


def give(records: Records, here: Installation, console: Console, *, grace_s: float) -> bool:
    """Print what was promised and what happened; whether all of it was kept."""
    console.print("What happened", style="bold")
    trained = json.loads(here.said("research").splitlines()[-1])
    found = [*_lent(records), *_taken_back(records, grace_s), *_resumed(records, trained), _ended(records)]
    for finding in found:
        mark, style = ("✓", "green") if finding.kept else ("✗", "bold red")
        console.print(f"[{style}]{mark}[/] {finding.told}", highlight=False)
    return all(finding.kept for finding in found)


def _lent(records: Records) -> Iterator[Finding]:
    borrowed = [work for work in records.works if work.subject == "research-box" and records.borrowed(work.requests[0])]
    names = " and ".join(work.name for work in borrowed) or "nobody"
    yield Finding(len(borrowed) >= 2, f"Lent: research has 2 GPUs reserved; {names} ran on production's idle ones.")


def _taken_back(records: Records, grace_s: float) -> Iterator[Finding]:
    works = {request.id: work for work in records.works for request in work.requests}
    evicted = [request for work in records.works for request in work.requests if request.eviction is not None]
    for request in evicted:
        assert request.eviction is not None
        cause = works.get(request.eviction.cause or "")
        for_whom = f"{cause.name} ({cause.subject})" if cause else "nobody known"
        told = f"Evicted: {works[request.id].name} gave back what it had borrowed, for {for_whom}"
        kept = request.eviction.because == "reclaim" and cause is not None and cause.subject == "prod-cluster"
        yield Finding(kept, f"{told}: {request.eviction.because}.")
    yield Finding(len(evicted) == 2, f"Two evictions made the room, no more: {len(evicted)}.")
    for work in records.works:
        if work.subject == "prod-cluster":
            first = work.requests[0]
            waited_s = (
                (first.allocation.granted_at - first.created_at).total_seconds() if first.allocation else float("inf")
            )
            told = f"Taken back: {work.name} had its two GPUs {waited_s:.1f} s after asking; the grace period is"
            yield Finding(waited_s <= grace_s + ROUNDING_S, f"{told} {grace_s:g} s.")
            kept = len(work.requests) == 1 and first.status is RequestStatus.RELEASED
            yield Finding(kept, f"Promised to finish: {work.name} was not interrupted.")


def _resumed(records: Records, trained: list[dict[str, Any]]) -> Iterator[Finding]:
    results = {result["step"]: result for result in trained}
    for work in records.works:
        if len(work.requests) > 1:
            yield _went_on(work, results[work.name]["log"], SAVED.findall(records.log(work)))


def _went_on(work: Work, log: list[dict[str, Any]], saved: list[tuple[str, str]]) -> Finding:
    """That each attempt began with the epoch after the one that the attempt before it had saved."""
    epochs = [line["epoch"] for line in log]
    begun = [line["epoch"] for before, line in pairwise(log) if line["attempt"] != before["attempt"]]
    saved_at = [int(epoch) for epoch, _ in saved]
    kept = epochs == list(range(1, len(log) + 1)) and bool(begun) and begun == [epoch + 1 for epoch in saved_at]
    left = f" with {saved[0][1]} s left" if saved else ""
    told = (
        f"Resumed: {work.name} saved epoch {', '.join(map(str, saved_at))}{left}, waited, and went on with epoch "
        f"{', '.join(map(str, begun))}; {len(epochs)} epochs in all, {log[-1]['accuracy']:.0%} right."
    )
    return Finding(kept, told)


def _ended(records: Records) -> Finding:
    done = [work for work in records.works if work.now.status is RequestStatus.RELEASED]
    used = [pool.used.get("gpu", 0) for pool in records.client.pools()]
    kept = len(done) == len(records.works) and not any(used)
    return Finding(kept, f"Finished: {len(done)} of {len(records.works)} pieces of work; {sum(used)} GPUs in use.")
