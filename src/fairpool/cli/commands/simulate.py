"""``fairpool simulate``."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from typing import Any

import click

from fairpool.cli.options import Duration, Moment, client_of, note
from fairpool.cli.simulation import documents_of, print_tables, recorded, simulated, written_to

FORMATS = ("csv", "philly", "openb", "swf")

INTERRUPTED = 130


@click.command("simulate")
@click.argument("trace", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--history", is_flag=True, help="Instead of a trace: what the server has recorded.")
@click.option("--rules", multiple=True, metavar="PATH", help="Files or folders as for apply, or a scenario.")
@click.option("--against", multiple=True, metavar="PATH", help="Other rules to compare with; repeatable.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Of the trace (told by its beginning).")
@click.option("--processors-as", default="mcpu", show_default=True, metavar="KEY", help="What swf's processors are.")
@click.option("--since", type=Moment(), metavar="TIME", help="Only jobs asked for from then on.")
@click.option("--until", type=Moment(), metavar="TIME", help="Only jobs asked for before then.")
@click.option("--cut", is_flag=True, help="End with --until, rather than when the last job has.")
@click.option("--scale-demand", "scale", default="1", metavar="N", help="Each job N times, as 0.5, 2 or 4/3 (1).")
@click.option("--seed", type=int, default=0, show_default=True, help="Which jobs --scale-demand draws.")
@click.option(
    "--order",
    type=click.Choice(("trace", "oldest", "shortest")),
    default="trace",
    show_default=True,
    help="Whose turn it is inside a policy: as the trace has it, oldest first whatever runs, or shortest first.",
)
@click.option(
    "--progress",
    type=click.Choice(("kept", "lost")),
    default="kept",
    show_default=True,
    help="Whether an evicted job goes on where it was, or begins anew.",
)
@click.option("--checkpoint-interval", type=Duration(), default="0", help="How often jobs save (when told to let go).")
@click.option("--release-after", type=Duration(), default="0", help="How long an evicted job takes to let go (0).")
@click.option("--json", "json_to", type=click.Path(dir_okay=False, writable=True), help="Write the report as JSON.")
@click.option("--csv", "csv_to", type=click.Path(dir_okay=False, writable=True), help="Write a row for each job.")
@click.option("--html", "html_to", type=click.Path(dir_okay=False, writable=True), help="Write one page with charts.")
@click.pass_context
def simulate(ctx: click.Context, /, trace: str | None, **said: Any) -> None:
    """Replay demand under given rules, with the real decisions on a virtual clock.

    TRACE: a table of jobs (docs/reference/trace-formats.md), Microsoft's Philly, Alibaba's openb, or the Standard
    Workload Format; --history takes what the server has recorded instead. Nothing on any server changes.
    """
    _check(trace, said)
    asked: dict[str, Any] = {
        "trace": trace or "",
        "rules": said["rules"],
        "against": said["against"],
        "format": said["form"] or "",
        "processors_as": said["processors_as"],
        "since": said["since"] or "",
        "until": said["until"] or "",
        "cut": said["cut"],
        "scale": said["scale"],
        "seed": said["seed"],
        "order": said["order"],
        "progress": said["progress"],
        "checkpoint_interval_s": said["checkpoint_interval"],
        "release_after_s": said["release_after"],
        "command": shlex.join(["fairpool", *sys.argv[1:]]),
    }
    if said["history"]:
        client = client_of(ctx)
        found = recorded(client, said["since"] or "", said["until"] or "")
        asked |= {"recorded": found, "read_at": datetime.now(UTC)}
        if not said["rules"]:
            asked["documents"] = documents_of(client)
    _told(asked, said)


def _check(trace: str | None, said: dict[str, Any]) -> None:
    if (trace is None) != said["history"]:
        raise click.UsageError("name a TRACE, or --history for what the server has recorded")
    if trace is not None and not said["rules"]:
        raise click.UsageError("--rules is missing: files or folders as for 'fairpool apply', or a scenario file")
    if said["cut"] and not said["until"]:
        raise click.UsageError("--cut needs --until TIME: when to end")


def _told(asked: dict[str, Any], said: dict[str, Any]) -> None:
    found = simulated(asked)
    try:  # before the tables: whoever pages through them may stop reading, which ends the command
        written = written_to(found, {"json": said["json_to"], "csv": said["csv_to"], "html": said["html_to"]})
    finally:
        print_tables(found.tables)
    for path in written:
        note(f"wrote {path}")
    if found.stopped:
        note("stopped before the end: the figures are of what was reached")
        raise SystemExit(INTERRUPTED)
