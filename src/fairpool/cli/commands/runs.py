"""``fairpool runs``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import connected, note, printed
from fairpool.cli.render import Column, Style
from fairpool.cli.watching import show, watch_option

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.runs import RunView, StepRequestView, StepView

COLUMNS = (
    Column("ID", lambda run: run.id),
    Column("NAME", lambda run: run.name),
    Column("KIND", lambda run: run.kind),
    Column("STATUS", lambda run: run.status.value),
    Column("STEPS", lambda run: ", ".join(f"{count} {status}" for status, count in run.counts.items())),
    Column("STACK", lambda run: run.stack),
    Column("AGE", lambda run: render.ago(run.created_at)),
    Column("USER", lambda run: run.user, wide=True),
    Column("ERROR", lambda run: run.error.partition("\n")[0], wide=True),
)


@click.group(cls=NounGroup)
def runs() -> None:
    """Runs of pipelines and commands, their steps, and what became of each step's requests."""


@runs.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=30, show_default=True, help="How many at most.")
@click.option("--label", multiple=True, metavar="KEY=VALUE", help="Only with this label; repeatable.")
@watch_option
@printed
@connected
def list_(client: Client, limit: int, label: tuple[str, ...], style: Style, *, watch: bool) -> None:
    """List runs, the newest first."""

    def once() -> None:
        render.print_list(list(client.runs(limit=limit, label=label)), COLUMNS, style, name="id")

    show(client, once, watch=watch)


@runs.command("describe")
@click.argument("run")
@printed
@connected
def describe(client: Client, run: str, style: Style) -> None:
    """Show one run: its steps, their attempts, how long each waited and ran, where, and on which devices."""
    found = client.run(run)
    render.print_one(found, _lines(found), style, name="id")
    if style.format not in ("table", "wide"):
        return
    rows = [row for step in found.steps for row in _rows(step)]
    if rows:
        click.echo()
        heading = ["STEP", "STATUS", "ATTEMPT", "REQUEST", "REQUEST-STATUS", "WAITED", "RAN", "POOL", "DEVICES"]
        render.print_table(heading, rows)


def _lines(found: RunView) -> list[tuple[str, object]]:
    return [
        ("Id", found.id),
        ("Name", found.name),
        ("Kind", found.kind),
        ("Status", found.status.value),
        ("Stack", found.stack),
        ("User", found.user),
        ("Created", found.created_at),
        ("Ended", found.ended_at),
        ("Error", found.error),
    ]


def _rows(step: StepView) -> list[list[str]]:
    label = f"{step.name}-{step.index}" if step.index else step.name
    if not step.requests:
        return [[label, step.status.value, str(step.attempt or ""), *[""] * 6]]
    return [_row(label, step, at + 1, request) for at, request in enumerate(step.requests)]


def _row(label: str, step: StepView, attempt: int, request: StepRequestView) -> list[str]:
    last = attempt == len(step.requests)
    return [
        label,
        step.status.value if last else "",
        str(attempt),
        request.id,
        request.status.value,
        render.duration(request.waited_s),
        render.duration(request.ran_s),
        request.pool or "",
        " ".join(request.devices),
    ]


@runs.command("logs")
@click.argument("run")
@click.option("--step", help="Only this step (NAME or NAME-INDEX).")
@connected
def logs(client: Client, run: str, step: str | None) -> None:
    """Print what the steps of a run have printed (kept on the machine that ran them)."""
    found = client.run(run)
    shown = [each for each in found.steps if step in (None, each.name, f"{each.name}-{each.index}")]
    if not shown:
        known = ", ".join(dict.fromkeys(each.name for each in found.steps)) or "none"
        raise click.UsageError(f"run {found.name} has no step {step!r}; possible: {known}")
    missing = 0
    for each in shown:
        if not each.log:
            note(f"{each.name}: no log was kept (a command's output went to its terminal)")
            continue
        path = Path(each.log)
        if not path.is_file():
            missing += 1
            note(f"{each.name}: {path} is not on this machine")
            continue
        if len(shown) > 1:
            click.echo(click.style(f"==> {each.name}-{each.index} <==", bold=True))
        with path.open("r", encoding="utf-8", errors="replace") as file:
            for line in file:
                sys.stdout.write(line)
    if missing == len(shown):
        raise click.exceptions.Exit(1)
