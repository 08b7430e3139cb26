"""Rules for a simulation: files as for ``fairpool apply``, carried out by the same code on a store in memory; or the
pools, policies and profiles of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from fairpool.admin.rule_files import misplaced
from fairpool.app.manifests import planning
from fairpool.app.manifests.carrying_out import Refusal, Refusals, carry_out
from fairpool.app.manifests.values import Scope
from fairpool.app.manifests.what_if import frozen
from fairpool.app.memory import Memory
from fairpool.app.ports import Stored
from fairpool.app.records import Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import windows
from fairpool.app.use_cases.vaults import Keyless
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import Instant
from fairpool.core.world import World
from fairpool.server import declaring
from fairpool.sim.rulebook import rulebook
from fairpool.sim.scenario_file import Surroundings, read_file
from fairpool.sim.scenario_given import RulesFault
from fairpool.sim.scenario_reading import ScenarioFileError
from fairpool.sim.scenario_reading import documents as texts
from fairpool.store.memory import MemoryStore
from fairpool.wire.manifests.files import SUFFIXES, Written, read_files
from fairpool.wire.manifests.kinds import Document
from fairpool.wire.manifests.places import MisplacedText

DECIDING = frozenset({Kind.COMPONENT, Kind.USER, Kind.TEAM, Kind.SERVICE_ACCOUNT, Kind.POOL, Kind.PROFILE, Kind.POLICY})
"""Kinds of documents that decide what becomes of a job. The others are passed over: no secret is needed to simulate."""


class _Numbered:
    """Ids for what appears with the rules. They sort as the objects were made."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self, kind: Kind) -> str:
        """See `ports.IdSource`."""
        return f"{kind.value}-{next(self._numbers):06d}"


def read_rules(paths: Sequence[Path], at: Instant) -> Stored:
    """What these files and folders put in force at that moment. Raises RulesFault with everything that is wrong."""
    if len(paths) == 1 and (scenario := _scenario(paths[0])) is not None:
        return scenario
    try:
        written = [one for one in read_files([str(path) for path in paths]) if Kind(one.document.kind) in DECIDING]
    except MisplacedText as error:
        raise RulesFault([misplaced(place, told) for place, told in error.problems]) from None
    return _in_force([one.document for one in written], at, lambda index, field: _at(written[index], field))


def rules_of(documents: Sequence[Document], at: Instant, origin: str) -> Stored:
    """What these documents put in force at that moment. origin: where they come from, for complaints.

    Raises RulesFault.
    """
    deciding = [document for document in documents if Kind(document.kind) in DECIDING]

    def place(index: int, field: str) -> tuple[str, int]:
        return f"{origin}, {deciding[index].kind} {deciding[index].name}", 0

    return _in_force(deciding, at, place)


def _at(written: Written, field: str) -> tuple[str, int]:
    place = written.place(field)
    return place.file, place.line


def _in_force(documents: Sequence[Document], at: Instant, place: Callable[[int, str], tuple[str, int]]) -> Stored:
    store = MemoryStore()
    memory = Memory(store.load(), at)
    tx = Transaction(memory, _Numbered(), store.reader, at)
    scope = Scope(set_name="")
    changes = planning.changes((), declaring.wanted(memory, list(documents)), scope)
    try:
        carry_out(tx, changes, scope, declaring.uses(Keyless(), lambda url: url))
    except Refusals as error:
        raise RulesFault([_refused(one, place) for one in error.refusals]) from None
    windows.turn(tx)
    return frozen(memory)


def _refused(refusal: Refusal, place: Callable[[int, str], tuple[str, int]]) -> ScenarioFileError:
    error, index = refusal.error, refusal.change.index
    assert index is not None, "every change comes from a document: nothing is pruned"
    field = error.field if isinstance(error, InvalidInput) else ""
    file, line = place(index, field)
    return ScenarioFileError(str(error), file=file, line=line, key=field)


def _scenario(path: Path) -> Stored | None:
    """The rules of a scenario file; None where the path is none. Its steps are passed over."""
    if not path.is_file() or path.suffix not in SUFFIXES or not _is_scenario(path):
        return None
    world = World()
    for event in read_file(path, Surroundings())[0].setup:
        world.apply(event, Instant(0))
    snapshot = world.snapshot()
    return rulebook(snapshot.pools, snapshot.policies, snapshot.profiles, require_policy=snapshot.require_policy)


def _is_scenario(path: Path) -> bool:
    try:
        items = texts(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError):
        return False
    first = next(iter(items), None)
    return first is not None and first.is_mapping and "scenario" in first.pairs()
