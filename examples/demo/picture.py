"""What is shown: the live view while it runs, and the timeline at the end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from records import Records, Work, devices
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairpool.wire.policies import PolicyView
from fairpool.wire.requests import RequestView
from fairpool.wire.values import RequestStatus

IN_SHARE, BORROWED, LEAVING, WAITING = "green", "yellow", "red", "bright_black"
BAR = 16


def live(records: Records, policies: Sequence[PolicyView], told: Sequence[str], width: int) -> RenderableType:
    """One frame of the live view."""
    return Group(_legend(), Text(), _policies(policies), Text(), _works(records, width), Text(), *_story(told))


def _legend() -> Text:
    return Text.assemble(("pool gpus: 4 pretend GPUs  ", "bold"), *_key())


def _key() -> list[str | tuple[str, str]]:
    signs = {"█": (IN_SHARE, "in its share"), "▓": (BORROWED, "borrowed"), "▒": (LEAVING, "letting go")}
    signs["·"] = (WAITING, "waiting")
    return [part for sign, (style, word) in signs.items() for part in ((sign, style), f" {word}  ")]


def _policies(policies: Sequence[PolicyView]) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for heading in ("POLICY", "RESERVED", "USES", "BORROWS", "QUEUED", "PRIORITY"):
        table.add_column(heading, no_wrap=True, justify="left" if heading == "POLICY" else "right")
    for policy in policies:
        amounts = (policy.reserved, policy.used, policy.borrowed)
        cells = [str(amount.get("gpu", 0)) for amount in amounts]
        table.add_row(policy.subject.removeprefix("component:"), *cells, str(policy.queued), str(policy.priority))
    return table


def _works(records: Records, width: int) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    for heading, least in (("WORK", 9), ("GPU", 3), ("EPOCHS", BAR + 6), ("RIGHT", 5)):
        table.add_column(heading, no_wrap=True, min_width=least)
    table.add_column("STATE", no_wrap=True, overflow="ellipsis", ratio=1)
    for work in records.works:
        style, state = _state(records, work)
        gpus = "" if work.now.status.is_final else ",".join(map(str, devices(work.now)))
        done = round(BAR * work.epoch / work.epochs) if work.epochs else 0
        bar = Text.assemble(("━" * done, style), ("━" * (BAR - done), "grey23"))
        epochs = bar.append(f" {work.epoch}/{work.epochs}" if work.epochs else "")
        table.add_row(work.name, gpus, epochs, f"{work.accuracy:.0%}" if work.epochs else "", Text(state, style=style))
    table.width = width
    return table


def _state(records: Records, work: Work) -> tuple[str, str]:
    request = work.now
    if request.status is RequestStatus.QUEUED:
        return WAITING, records.summaries.get(request.id, "waiting")
    if request.status is RequestStatus.PREEMPTING:
        return LEAVING, "letting go: saves its checkpoint"
    if request.status is RequestStatus.ALLOCATED:
        again = f", attempt {len(work.requests)}" if len(work.requests) > 1 else ""
        if request.allocation is not None and request.allocation.in_share is False:
            return BORROWED, f"runs on what it borrowed{again}"
        return IN_SHARE, f"runs in its share{again}"
    return ("cyan", "done") if request.status is RequestStatus.RELEASED else (WAITING, str(request.status))


def _story(told: Sequence[str]) -> list[Text]:
    return [Text(line, style="dim" if line.startswith("$") else "", no_wrap=True, overflow="ellipsis") for line in told]


# ---- the end -------------------------------------------------------------------------------------------------------


def timeline(records: Records, width: int) -> RenderableType:
    """Who held what when: one row per piece of work, from the records of its requests."""
    begin = min(work.requests[0].created_at for work in records.works)
    end = max(work.now.ended_at or begin for work in records.works)
    columns = max(30, width - 27)
    each = (end - begin) / columns
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="bold")
    table.add_column("WHO", no_wrap=True)
    table.add_column("WORK", no_wrap=True)
    table.add_column(_scale(end - begin, columns), no_wrap=True)
    for work in records.works:
        cells = [_cell(records, work, begin + each * (column + 0.5)) for column in range(columns)]
        for request in work.requests:  # the GPU's number, where a grant begins
            if request.allocation is not None:
                at = min(columns - 1, int((request.allocation.granted_at - begin) / each))
                for offset, index in enumerate(devices(request)):
                    if at + offset < columns:
                        cells[at + offset] = (str(index), f"bold reverse {cells[at + offset][1]}".strip())
        table.add_row(work.subject.removeprefix("team:"), work.name, Text.assemble(*cells))
    title = Text("Who held what, and when (seconds across; the figures in the bars are GPUs)", style="bold")
    return Group(title, Text.assemble(*_key()), table)


def _scale(lasted: timedelta, columns: int) -> Text:
    marks = [" "] * columns
    for second in range(0, int(lasted.total_seconds()) + 1, 5):
        at = int(second / lasted.total_seconds() * columns)
        for offset, sign in enumerate(str(second)):
            if at + offset < columns:
                marks[at + offset] = sign
    return Text("".join(marks), style="dim")


def _cell(records: Records, work: Work, at: datetime) -> tuple[str, str]:
    for request in work.requests:
        ended_at = request.ended_at or at
        held = request.allocation
        if request.created_at <= at <= ended_at:
            if held is None or at < held.granted_at:
                return "·", WAITING
            leaves_at = told_at(records, request)
            if leaves_at is not None and at >= leaves_at:
                return "▒", LEAVING
            return ("█", IN_SHARE) if _inside(records, request, at) else ("▓", BORROWED)
    return " ", ""


def _inside(records: Records, request: RequestView, at: datetime) -> bool:
    """What the server said of the request last before that moment, or first after it."""
    seen = records.shares.get(request.id, [])
    before = [inside for moment, inside in seen if moment <= at]
    return before[-1] if before else seen[0][1] if seen else True


def told_at(records: Records, request: RequestView) -> datetime | None:
    """When the request was told to let go, by its history."""
    if request.eviction is None:
        return None
    return next((entry.at for entry in records.history(request) if entry.what == RequestStatus.PREEMPTING), None)


def self_contained(svg: str) -> str:
    """Without the fonts that it would fetch from elsewhere: whoever looks has a monospaced one."""
    return re.sub(r"@font-face\s*\{.*?\}\s*", "", svg, flags=re.DOTALL)
