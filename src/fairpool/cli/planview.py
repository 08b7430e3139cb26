"""A plan of changes as people read it: what is created, changed and deleted, and what that does to work."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from fairpool.cli import render

if TYPE_CHECKING:
    from fairpool.wire.manifests.plans import ApplyResult, ChangeView, EffectView

_SIGNS = {"create": ("+", "green"), "change": ("~", "yellow"), "delete": ("-", "red"), "adopt": ("=", "cyan")}
_COUNTED = {"create": "to create", "change": "to change", "delete": "to delete", "adopt": "to adopt"}
_OUTCOMES = {
    "evicted": "told to let go",
    "rejected": "rejected: can never run then",
    "cancelled": "cancelled: loses its right",
    "expired": "expired",
    "unaccounted": "runs on, counted nowhere",
    "starts": "starts",
}


def lines(plan: ApplyResult, *, most: int) -> Iterator[str]:
    """The whole plan. most: how many requests of each effect are named."""
    for change in plan.changes:
        yield from _change(change)
    if plan.along:
        yield "Along with that:"
        yield from (f"  {_signed(one.action)} {one.kind} {one.name}" for one in plan.along)
    if plan.changes:
        yield from _effects(plan.effects, most)
    yield from (f"{click.style('Warning:', fg='yellow', bold=True)} {warning}." for warning in plan.warnings)
    yield summary(plan)


def summary(plan: ApplyResult) -> str:
    """``1 to create, 2 to change; 5 unchanged``."""
    counts = {action: sum(change.action == action for change in plan.changes) for action in _COUNTED}
    told = ", ".join(f"{count} {_COUNTED[action]}" for action, count in counts.items() if count)
    return f"{told or 'no changes'}; {plan.unchanged} unchanged"


def _change(change: ChangeView) -> Iterator[str]:
    yield f"{_signed(change.action)} {change.kind} {change.name}"
    for field in change.fields:
        old, new = _value(field.old), _value(field.new)
        if change.action == "create":
            yield f"    {field.field}: {new}"
        else:
            yield f"    {field.field}: {old} → {new}"


def _signed(action: str) -> str:
    sign, colour = _SIGNS.get(action, ("?", "white"))
    return click.style(sign, fg=colour, bold=True)


def _value(value: object) -> str:
    """A value on one line."""
    import json

    if value is None:
        return "nothing"
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _effects(effects: Sequence[EffectView], most: int) -> Iterator[str]:
    if not effects:
        yield "No work that waits or runs is affected."
        return
    yield "Work that waits or runs:"
    for effect in effects:
        yield f"  {effect.count} {_OUTCOMES.get(effect.outcome, effect.outcome)}"
        for one in effect.requests[:most]:
            where = f" in {one.pool}" if one.pool else ""
            why = f": {one.why}" if one.why else ""
            named = f"{one.name} ({one.id})" if one.name else one.id
            asked = render.amounts({key: value for key, value in one.demand.items() if key != "step_run"})
            yield f"    {named} of {one.subject or 'nobody'}, {asked}{where}{why}"
        if effect.count > min(most, len(effect.requests)):
            yield f"    and {effect.count - min(most, len(effect.requests))} more"


def difference(change: ChangeView) -> Iterator[str]:
    """A change as a unified diff of documents."""
    old, new = _document(change.before), _document(change.after)
    there, wanted = f"server/{change.kind}/{change.name}", f"files/{change.kind}/{change.name}"
    for line in difflib.unified_diff(old, new, there, wanted, lineterm=""):
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        yield click.style(line, fg=colour) if colour else line


def _document(document: object) -> list[str]:
    import yaml

    if document is None:
        return []
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return text.splitlines()
