"""What ``fairpool simulate`` and ``fairpool apply --replay`` call: from their options to a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

from fairpool.admin.recorded_jobs import recorded_jobs
from fairpool.admin.replaying import Course, Demand, NothingToSimulate, Rules, Told, replay, stoppable
from fairpool.core.amounts import MCPU
from fairpool.sim.jobs import Order
from fairpool.sim.ledger import Ledger
from fairpool.sim.owners import Owners, Progress
from fairpool.sim.reports import making
from fairpool.sim.reports.as_text import Table
from fairpool.sim.reports.figures import Report
from fairpool.sim.reports.outcome import About, Enough, Outcome
from fairpool.sim.scenario_given import RulesFault
from fairpool.sim.traces.formats import FORMATS
from fairpool.sim.traces.reading import TraceFault, instant_of
from fairpool.wire.manifests.kinds import read_document
from fairpool.wire.requests import RequestView

FAULTS = (TraceFault, RulesFault, NothingToSimulate)
"""What is wrong with what somebody asked for, in words."""

FORMAT_NAMES = tuple(FORMATS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody asks to be simulated, as the command line has it.

    trace: a file; or recorded, requests as the API tells them, read at `read_at`. rules, against: files and folders;
    or documents, as a server shows them. since, until: ISO 8601. scale: how much of the demand, as text. command: what
    repeats this.
    """

    trace: str = ""
    recorded: Sequence[RequestView] = ()
    read_at: datetime | None = None
    rules: Sequence[str] = ()
    against: Sequence[str] = ()
    documents: Sequence[object] = ()
    documents_against: Sequence[object] = ()
    format: str = ""
    processors_as: str = MCPU
    since: str = ""
    until: str = ""
    cut: bool = False
    scale: str = "1"
    seed: int = 0
    order: str = Order.TRACE.value
    progress: str = Progress.KEPT.value
    checkpoint_interval_s: int = 0
    release_after_s: int = 0
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What came of it."""

    report: Report
    outcomes: Sequence[Outcome]
    tables: Sequence[Table] = field(default_factory=tuple)
    stopped: bool = False


def simulate(asked: Asked, told: Told) -> Simulated:
    """Replay, and report. Raises FAULTS."""
    outcomes, stopped = replay(_demand(asked), _rules(asked), _course(asked), told)

    report = _report(outcomes, _about(asked, stopped=stopped), told)
    stopped = stopped or report.cut_short
    return Simulated(report=report, outcomes=outcomes, tables=making.tables(report), stopped=stopped)


def _report(outcomes: Sequence[Outcome], about: About, told: Told) -> Report:
    """The report, which replays again: Ctrl-C asks for what is known by then."""
    with stoppable() as stopping:

        def heard(what: str, ledger: Ledger) -> None:
            told(what, len(outcomes[0].ledger.jobs), len(ledger.jobs))
            if stopping:
                raise Enough

        if len(outcomes) > 1:
            return making.compare(outcomes[0], outcomes[1], about, heard=heard, explained=not about.stopped)
        return making.summarise(outcomes[0], about, heard=heard)


def simulated_or_told(asked: Asked, told: Told) -> Simulated | str:
    """The same, or what is wrong with what was asked for, for people."""
    try:
        return simulate(asked, told)
    except FAULTS as error:
        return str(error)


def write(found: Simulated, paths: Mapping[str, str | None]) -> list[Path]:
    """Write the report to the files that were named, by kind (json, csv, html). Returns all that were written.

    Raises OSError.
    """
    done: list[Path] = []
    if json_to := paths.get("json"):
        making.write_json(Path(json_to), found.report)
        done.append(Path(json_to))
    if csv_to := paths.get("csv"):
        done.extend(making.write_csv(Path(csv_to), found.report, found.outcomes))
    if html_to := paths.get("html"):
        making.write_html(Path(html_to), found.report)
        done.append(Path(html_to))
    return done


def _demand(asked: Asked) -> Demand:
    jobs = recorded_jobs(asked.recorded, instant_of(asked.read_at)) if asked.read_at is not None else ()
    if asked.read_at is not None and not jobs:
        raise NothingToSimulate("nothing that has run was recorded in that time")
    return Demand(
        path=Path(asked.trace) if asked.trace else None,
        recorded=jobs,
        named=asked.format,
        processors_as=asked.processors_as,
        since=instant_of(datetime.fromisoformat(asked.since)) if asked.since else None,
        until=instant_of(datetime.fromisoformat(asked.until)) if asked.until else None,
        scale=_scale(asked.scale),
        seed=asked.seed,
        order=Order(asked.order),
    )


def _scale(said: str) -> Fraction:
    try:
        found = Fraction(said)
    except (ValueError, ZeroDivisionError):
        raise NothingToSimulate(f"--scale-demand {said}: no number; possible: 0.5, 2, 4/3") from None
    if not 0 < found <= 1000:
        raise NothingToSimulate(f"--scale-demand {said}: possible: more than 0, up to 1000")
    return found


def _rules(asked: Asked) -> list[Rules]:
    first = _one("rules now", asked.rules, asked.documents)
    second = _one("rules then", asked.against, asked.documents_against)
    found = [rules for rules in (first, second) if rules is not None]
    if len(found) == 2 and found[0].name == found[1].name:
        raise NothingToSimulate(f"--rules and --against are both {found[0].name}: there is nothing to compare")
    return found


def _one(name: str, paths: Sequence[str], documents: Sequence[object]) -> Rules | None:
    if paths:
        return Rules(name=", ".join(paths), paths=tuple(Path(path) for path in paths))
    if documents:
        return Rules(name=name, documents=tuple(read_document(document) for document in documents))
    return None


def _course(asked: Asked) -> Course:
    owners = Owners(
        progress=Progress(asked.progress),
        checkpoint_interval_s=asked.checkpoint_interval_s,
        release_after_s=asked.release_after_s,
    )
    return Course(owners=owners, cut=asked.cut)


def _about(asked: Asked, *, stopped: bool) -> About:
    return About(
        title=f"Simulation of {Path(asked.trace).name if asked.trace else 'recorded demand'}",
        trace=asked.trace or "recorded history",
        command=asked.command,
        version=version("fairpool"),
        seed=asked.seed if asked.scale != "1" else None,
        options=_said(asked),
        stopped=stopped,
    )


def _said(asked: Asked) -> Mapping[str, str]:
    """What was asked for besides, where it is not what goes without saying."""
    plain = Asked()
    names = ("since", "until", "scale", "order", "progress", "checkpoint_interval_s", "release_after_s")
    return {name: str(value) for name in names if (value := getattr(asked, name)) != getattr(plain, name)}
