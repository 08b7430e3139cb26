"""From what is wanted and what there is to what changes. Pure: the same input gives the same plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fairpool.app.errors import Conflict
from fairpool.app.manifests.values import Action, Change, Changes, FieldChange, Key, Known, Scope, Wanted
from fairpool.app.memory import Memory
from fairpool.app.records import Document, Json, Kind

ORDER: tuple[Kind, ...] = (
    Kind.COMPONENT,
    Kind.USER,
    Kind.TEAM,
    Kind.SERVICE_ACCOUNT,
    Kind.POOL,
    Kind.PROFILE,
    Kind.VAULT,
    Kind.POLICY,
    Kind.STACK,
    Kind.WEBHOOK,
)
"""Each kind after those that it names: so they are created; deleted the other way round."""


class NotOurs(Conflict):
    """Applying would change what belongs to another set of documents, or what somebody else has labelled.

    problems: index of the document, field, and what is wrong with it.
    """

    def __init__(self, problems: Sequence[tuple[int | None, str, str]]) -> None:
        super().__init__("; ".join(message for _, _, message in problems))
        self.problems = tuple(problems)


def changes(known: Iterable[Known], wanted: Sequence[Wanted], scope: Scope) -> Changes:
    """What applying these documents changes. Raises NotOurs."""
    there = {found.key: found for found in known}
    if scope.delete:
        return _deleted(there, wanted, scope)
    found = [_change(there.get(document.key), document, scope) for document in wanted]
    if scope.prune:
        found.extend(_pruned(there, wanted, scope))
    _check_ours(found, scope)
    kept = tuple(change for change in found if change.action is Action.KEEP)
    return Changes(pending=tuple(sorted((c for c in found if c.action is not Action.KEEP), key=_rank)), kept=kept)


def _change(known: Known | None, wanted: Wanted, scope: Scope) -> Change:
    if known is None:
        said = {key: value for key, value in wanted.said.items() if key != "name"}
        action, fields = Action.CREATE, tuple(leaves(said))
    else:
        fields = tuple(differences(known.body, wanted.body))
        adopted = scope.adopt and known.managed != scope.set_name
        action = Action.CHANGE if fields else Action.ADOPT if adopted else Action.KEEP
    return Change(
        action=action,
        kind=wanted.kind,
        name=wanted.name,
        known=known,
        body=wanted.body,
        index=wanted.index,
        fields=fields,
    )


def _pruned(there: Mapping[Key, Known], wanted: Sequence[Wanted], scope: Scope) -> Iterator[Change]:
    named = {document.key for document in wanted}
    for key, known in there.items():
        if key not in named and known.managed == scope.set_name and (not scope.kinds or known.kind in scope.kinds):
            yield _gone(known, None)


def _deleted(there: Mapping[Key, Known], wanted: Sequence[Wanted], scope: Scope) -> Changes:
    """A document whose object is gone already asks for nothing more."""
    gone = [_gone(there[document.key], document.index) for document in wanted if document.key in there]
    _check_ours(gone, scope)
    return Changes(pending=tuple(sorted(gone, key=_rank)))


def _gone(known: Known, index: int | None) -> Change:
    return Change(action=Action.DELETE, kind=known.kind, name=known.name, known=known, body=None, index=index)


def _rank(change: Change) -> tuple[bool, int, str]:
    """Deletions first: they make room. Then what is named before who names it."""
    goes, place = change.action is Action.DELETE, ORDER.index(change.kind)
    return not goes, -place if goes else place, change.name


# ---- what a plan rests on -------------------------------------------------------------------------------------------

DECIDING = (Kind.POOL, Kind.POLICY, Kind.PROFILE, Kind.SETTINGS)
"""Kinds that decide what happens to work: a plan that was shown rests on all of them."""


def versions(memory: Memory, kinds: Iterable[Kind]) -> dict[str, int]:
    """The versions of everything that a plan with documents of these kinds rests on, by ``kind/name``."""
    found = sorted({*DECIDING, *kinds})
    return {f"{kind.value}/{declared.name}": declared.version for kind in found for declared in memory.all(kind)}


def check_unchanged(expected: Mapping[str, int], now: Mapping[str, int]) -> None:
    """Raise Conflict where something is not as it was when the plan was made."""
    told = []
    for name in sorted({*expected, *now}):
        if expected.get(name) != now.get(name):
            kind, _, rest = name.partition("/")
            what = "is new" if name not in expected else "is gone" if name not in now else "has changed"
            told.append(f"{kind} {rest!r} {what}")
    if told:
        more = f" and {len(told) - 5} more" if len(told) > 5 else ""
        raise Conflict(f"since the plan was made: {', '.join(told[:5])}{more}; nothing was changed")


# ---- whose it is -----------------------------------------------------------------------------------------------------


def _check_ours(found: Iterable[Change], scope: Scope) -> None:
    if scope.overwrite:
        return
    problems: list[tuple[int | None, str, str]] = []
    for change in found:
        if change.known is None or change.action is Action.KEEP:
            continue
        owner = change.known.managed
        if owner and owner != scope.set_name:
            told = f"{change.kind} {change.name!r} belongs to the set {owner!r}, not to {scope.set_name!r}"
            problems.append((change.index, "", told))
        elif not owner:
            problems.extend((change.index, path, told) for path, told in _labels_of_others(change))
    if problems:
        raise NotOurs(problems)


def _labels_of_others(change: Change) -> Iterator[tuple[str, str]]:
    """Labels of nodes that this set did not put there, and would replace or take away."""
    for field in change.fields:
        parts = field.field.split(".")
        if parts[0] == "nodes" and "labels" in parts[2:] and field.old is not None:
            yield field.field, f"{field.field} is {field.old!r}, and was not set by this set of documents"


# ---- what differs ----------------------------------------------------------------------------------------------------


def differences(old: Document, new: Document, path: str = "") -> Iterator[FieldChange]:
    """The fields that differ. Lists of things that have names are compared by name; other lists as a whole."""
    for key in [*old, *(key for key in new if key not in old)]:
        yield from _difference(f"{path}{key}", old.get(key), new.get(key))


def _difference(path: str, old: Json, new: Json) -> Iterator[FieldChange]:
    before, after = _by_name(old), _by_name(new)
    if before is not None and after is not None and (before or after):
        yield from differences(before, after, f"{path}.")
    elif old != new:
        yield FieldChange(field=path, old=old, new=new)


def leaves(said: Document, path: str = "") -> Iterator[FieldChange]:
    """Every field of something new."""
    for key, value in said.items():
        inner = _by_name(value)
        if inner:
            yield from leaves(inner, f"{path}{key}.")
        else:
            yield FieldChange(field=f"{path}{key}", old=None, new=value)


def _by_name(value: Json) -> Document | None:
    """A mapping, or a list of named things as one; None for anything else."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list) and all(isinstance(part, Mapping) and "name" in part for part in value):
        named: dict[str, Json] = {}
        for part in value:
            assert isinstance(part, Mapping)
            named[str(part["name"])] = {key: inner for key, inner in part.items() if key != "name"}
        return named
    return None
