"""The jobs that lose and gain most by a change of rules, each explained."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fairpool.core.amounts import show
from fairpool.core.ids import SECOND, Instant
from fairpool.sim.ledger import NEVER
from fairpool.sim.reports.comparing import NEVER_US, Difference, differences
from fairpool.sim.reports.explaining import Side, explained
from fairpool.sim.reports.figures import FATES, Change, Comparison, Fared
from fairpool.sim.reports.histories import histories
from fairpool.sim.reports.outcome import Listening, Outcome
from fairpool.sim.reports.parties import Parties
from fairpool.sim.reports.probing import ask_why
from fairpool.sim.reports.rule_changes import RuleChange, rule_changes
from fairpool.sim.reports.wording import moment


def comparison(
    first: tuple[Outcome, Parties], second: tuple[Outcome, Parties], *, asked: bool, listening: Listening
) -> Comparison:
    """The second outcome against the first. asked: replay both once more to hear why jobs waited.

    Raises InvalidInput where they are not of the same jobs.
    """
    found = differences(first[0].ledger, second[0].ledger)
    shown = {one.job for one in (*found.lose, *found.gain)}
    sides = [_side(outcome, parties, shown, asked=asked, listening=listening) for outcome, parties in (first, second)]
    changes = rule_changes(first[0].rules, second[0].rules)
    return Comparison(
        differences=[one.sentence for one in changes],
        later=found.later,
        sooner=found.sooner,
        same=found.same,
        unknown=found.unknown,
        mean_later_s=found.later_sum_us / found.both / SECOND if found.both else None,
        lose=[_change(one, sides[0], sides[1], changes) for one in found.lose],
        gain=[_change(one, sides[0], sides[1], changes) for one in found.gain],
    )


def _side(outcome: Outcome, parties: Parties, jobs: set[int], *, asked: bool, listening: Listening) -> Side:
    return Side(
        outcome=outcome,
        parties=parties,
        histories=histories(outcome.ledger, jobs),
        answers=ask_why(outcome, jobs, listening) if asked and jobs else {},
    )


def _change(one: Difference, first: Side, second: Side, changes: Sequence[RuleChange]) -> Change:
    job = first.outcome.ledger.jobs[one.job]
    runs_in_both = abs(one.later_us) < NEVER_US
    return Change(
        job=job.name,
        team=first.parties.of(job),
        asks=", ".join(f"{show(value)} {key}" for key, value in first.parties.asked(job)),
        submitted_at=moment(job.submitted_at),
        run_s=job.run_us / SECOND,
        first=_fared(one.job, first),
        second=_fared(one.job, second),
        later_s=one.later_us / SECOND if runs_in_both else None,
        at_least=one.at_least,
        explanation=explained(one.job, first, second, changes),
    )


def _fared(job: int, side: Side) -> Fared:
    ledger = side.outcome.ledger
    return Fared(
        fate=FATES[ledger.fate[job]],
        started_at=_moment(ledger.first_start[job]),
        ended_at=_moment(ledger.ended[job]),
        wait_s=ledger.wait_us(job) / SECOND,
        evictions=len(side.histories[job].evictions),
        pool=side.parties.pool_names(ledger)[ledger.pool[job]],
    )


def _moment(at: int) -> datetime | None:
    return None if at == NEVER else moment(Instant(at))
