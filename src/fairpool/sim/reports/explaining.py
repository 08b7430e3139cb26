"""Why a job fares differently under two sets of rules, in a few sentences for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairpool.app.sentences import ordinal
from fairpool.app.sentences import reason as sentence_of
from fairpool.core.amounts import show
from fairpool.core.ids import SECOND, Instant, PolicyId, RequestId
from fairpool.core.reasons import Code
from fairpool.core.requests import Because
from fairpool.sim.ledger import NEVER, Evicted, Fate
from fairpool.sim.reports.histories import History
from fairpool.sim.reports.outcome import Outcome
from fairpool.sim.reports.parties import Parties
from fairpool.sim.reports.probing import Answer, Use, closest
from fairpool.sim.reports.rule_changes import RuleChange
from fairpool.sim.reports.wording import duration, many, moment, shown, told_moment

MOST_RULES = 3
MOST_USERS = 3
MOST_CAUSES = 2

_BECAUSE = {
    Because.RECLAIM: "its reservation",
    Because.PRIORITY: "its priority",
    Because.CAPACITY: "as an operator wished",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two replays, with what has been found out about the jobs that are explained."""

    outcome: Outcome
    parties: Parties
    histories: Mapping[int, History]
    answers: Mapping[tuple[int, Instant], Answer]


def explained(job: int, first: Side, second: Side, changes: Sequence[RuleChange]) -> list[str]:
    """How the job fared under the first rules and why, how under the second, and what of them differs for it."""
    told = [f"Under {shown(side.outcome.name)} {_fared(job, side)}." for side in (first, second)]
    return [*told, _of_rules(job, first, second, changes)]


def _fared(job: int, side: Side) -> str:
    ledger = side.outcome.ledger
    fate = Fate(ledger.fate[job])
    if fate in (Fate.REJECTED, Fate.CANCELLED):
        return _refused(job, side, fate)
    history = side.histories[job]
    told = [
        _waited(job, side, history),
        _asked(job, side, history),
        _evicted(job, side, history),
        _AT_THE_END.get(fate),
    ]
    return ". ".join(sentence for sentence in told if sentence)


_AT_THE_END = {
    Fate.WAITING: "It still waits when the replay ends",
    Fate.RUNNING: "It still runs when the replay ends",
    Fate.EXPIRED: "It was ended after as long as it had said that it runs",
}


def _refused(job: int, side: Side, fate: Fate) -> str:
    reasons = side.outcome.ledger.refusals.get(job, ())
    told = "; ".join(_named(sentence_of(fact, side.parties.names), side, fact.blocker) for fact in reasons)
    what = "it could never run" if fate is Fate.REJECTED else "it lost its right to wait"
    if any(fact.code is Code.WAIT_TIMEOUT for fact in reasons):
        what = "it went away"
    return f"{what}: {told}" if told else what


def _waited(job: int, side: Side, history: History) -> str:
    wait_us = side.outcome.ledger.wait_us(job)
    longest = history.longest_wait
    if not wait_us or longest is None:
        return "it started at once"
    waits = sum(1 for stretch in history.stretches if not stretch.running and stretch.length_us)
    told = f"it waited {duration(wait_us / SECOND)}"
    return f"{told} in {waits} stretches, the longest {duration(longest.length_us / SECOND)}" if waits > 1 else told


def _asked(job: int, side: Side, history: History) -> str:
    """What the core said when its longest wait began: its place and what was missing, where it came closest, and who
    used most of that."""
    longest = history.longest_wait
    answer = side.answers.get((job, longest.since)) if longest is not None else None
    view = closest(answer.explanation) if answer is not None else None
    if answer is None or view is None:
        return ""
    reasons = "; ".join(_named(sentence_of(fact, side.parties.names), side, fact.blocker) for fact in view.reasons)
    place = f"{ordinal(view.position)} in line for pool {side.parties.names.pool(view.pool)}"
    used = ", ".join(_use(use, side) for use in answer.uses[:MOST_USERS])
    told = f"Queued {told_moment(moment(answer.at))} it was {place}: {reasons}"
    return f"{told}; {used}" if used else told


def _use(use: Use, side: Side) -> str:
    above = use.used - use.reserved
    borrowed = f" ({show(above)} borrowed)" if above > 0 else ""
    return f"{_policy(use.policy, side)} used {show(use.used)}{borrowed}"


def _policy(policy: PolicyId, side: Side) -> str:
    return side.parties.names.policy(policy).removeprefix("team:")


def _named(sentence: str, side: Side, blocker: RequestId | None) -> str:
    """The sentence with the job's name and team in place of the request's id."""
    if blocker is None:
        return sentence
    return sentence.replace(f"request {blocker}", f"job {_job(int(blocker[:8]), side)}")


def _job(number: int, side: Side) -> str:
    job = side.outcome.ledger.jobs[number]
    return f"{shown(job.name)} of {shown(side.parties.of(job))}"


def _evicted(job: int, side: Side, history: History) -> str:
    """How often it was evicted, and for whom at first."""
    count = len(history.evictions)
    if not count:
        return ""
    times = {1: "once", 2: "twice"}.get(count, f"{count} times")
    first = "first " if count > MOST_CAUSES else ""
    causes = " and ".join(_cause(evicted, side) for evicted in history.evictions[:MOST_CAUSES])
    lost_s = side.outcome.ledger.lost_us[job] / SECOND
    lost = f"; {duration(lost_s)} of its work was done again" if lost_s else ""
    return f"Evicted {times}, {first}{causes}{lost}"


def _cause(evicted: Evicted, side: Side) -> str:
    if evicted.cause == NEVER:
        return _BECAUSE[evicted.because]
    return f"for {_job(evicted.cause, side)} ({_BECAUSE[evicted.because]})"


def _of_rules(job: int, first: Side, second: Side, changes: Sequence[RuleChange]) -> str:
    """What differs for the job: its own team's rules first, then its profile and its pools, then others'."""
    what = first.outcome.ledger.jobs[job]
    teams = {side.parties.of(what) for side in (first, second)}
    pools = {side.parties.pool_names(side.outcome.ledger)[side.outcome.ledger.pool[job]] for side in (first, second)}
    own = [one for one in changes if one.team in teams and one.team]
    around = [
        one
        for one in changes
        if one not in own and ((one.profile and one.profile == what.profile) or one.pools & pools)
    ]
    found = [*own, *around]
    if not found:
        return "No rule of its own differs: others wait or run otherwise." if changes else "The rules are the same."
    told = "; ".join(one.sentence for one in found[:MOST_RULES])
    more = f"; and {many(len(found) - MOST_RULES, 'other difference')}" if len(found) > MOST_RULES else ""
    return f"What differs: {told}{more}."
