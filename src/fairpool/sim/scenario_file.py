"""Scenario files: YAML (JSON is YAML); one scenario per document; several documents, or one list, per file.

Every complaint names the file, the line and the key. What a scenario may say is in docs/reference/scenario-format.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairpool.core import events as ev
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import Instant
from fairpool.core.world import World
from fairpool.sim.scenario_expectations import read_expectations
from fairpool.sim.scenario_given import Given, RulesReader, event_of, no_reader
from fairpool.sim.scenario_reading import Item, ScenarioFileError, documents
from fairpool.sim.scenario_rules import Names, read_policy, read_pool, read_profile
from fairpool.sim.scenario_steps import ACTIONS, read_action
from fairpool.sim.scenario_values import Deed, Scenario, Step

SCENARIO_FIELDS = ("scenario", "rules", "pools", "policies", "profiles", "require_policy", "steps")
STEP_FIELDS = ("at", "advance", *ACTIONS, "expect")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a scenario is played in besides what it says itself.

    rules: those that every scenario is given. reader: of the files of rules that a scenario names.
    """

    rules: tuple[Given, ...] = ()
    reader: RulesReader = no_reader


ALONE = Surroundings()


def read_file(path: Path, surroundings: Surroundings = ALONE) -> tuple[Scenario, ...]:
    """The scenarios of a file. Raises ScenarioFileError, RulesFault."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioFileError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except UnicodeDecodeError as error:
        raise ScenarioFileError(f"is no UTF-8 text (byte {error.start})", file=str(path)) from None
    return read_text(text, file=str(path), surroundings=surroundings)


def read_text(text: str, *, file: str = "<text>", surroundings: Surroundings = ALONE) -> tuple[Scenario, ...]:
    """The scenarios of a text. `file` is what complaints call it, and where the rules that it names are looked for.

    Raises ScenarioFileError, RulesFault.
    """
    found = tuple(_scenario(item, surroundings) for item in documents(text, file))
    if not found:
        raise ScenarioFileError("holds no scenario", file=file)
    return found


def _scenario(item: Item, surroundings: Surroundings) -> Scenario:
    found = item.fields(SCENARIO_FIELDS, required=("scenario", "steps"))
    given = [*surroundings.rules, *(_named(found["rules"], surroundings.reader) if "rules" in found else ())]
    if not given and "pools" not in found:
        raise item.wrong("'pools' is missing", "pools here, rules: [FILE, …], or --rules FILE")
    names = Names()
    setup = _setup(found, names, given)
    steps = tuple(_step(number, each, names) for number, each in enumerate(found["steps"].elements(), start=1))
    return Scenario(title=found["scenario"].text(), file=item.file, line=item.line, setup=setup, steps=steps)


def _named(item: Item, reader: RulesReader) -> Sequence[Given]:
    """The rules in the files and folders that a scenario names, from where it lies."""
    here = Path(item.file).parent
    paths = [here / each.text() for each in item.one_or_more()]
    return reader(paths) if paths else ()


def _setup(found: dict[str, Item], names: Names, given: Sequence[Given]) -> tuple[ev.Event, ...]:
    """The rules as events, tried out once so that a contradiction is told where it is written."""
    events: list[ev.Event] = []
    world = World()

    def happen(event: ev.Event, at: Item | Given) -> None:
        _tried(lambda: world.apply(event, Instant(0)), at)
        events.append(event)

    for each in sorted(given, key=lambda given: given.rank):
        happen(event_of(each, names), each)
    for name, item in found["pools"].pairs().items() if "pools" in found else ():
        if name in names.pools:
            raise item.wrong(f"pool {name!r} is in the rules already")
        names.pools[name] = read_pool(name, item)
        happen(ev.PoolSet(pool=names.pools[name]), item)
    for name, item in found["profiles"].pairs().items() if "profiles" in found else ():
        if name in names.profiles:
            raise item.wrong(f"profile {name!r} is in the rules already")
        profile = names.profiles[name] = read_profile(name, item, names)
        happen(ev.ProfileSet(profile=profile), item)
    for item in found["policies"].elements() if "policies" in found else ():
        policy = read_policy(item, names)
        if (pool := names.governed(policy)) is not None:
            raise item.wrong(f"{policy.subject} already has a policy on pool {pool!r} (S13)")
        happen(ev.PolicySet(policy=names.identified(policy)), item)
    if "require_policy" in found:
        happen(ev.SettingsChanged(require_policy=found["require_policy"].flag()), found["require_policy"])
    return tuple(events)


def _tried(attempt: Callable[[], object], at: Item | Given) -> None:
    try:
        attempt()
    except InvalidInput as error:
        raise (at.wrong(error) if isinstance(at, Given) else at.refused(error)) from None


def _step(number: int, item: Item, names: Names) -> Step:
    found = item.fields(STEP_FIELDS)
    if not found:
        raise item.wrong("says nothing", ", ".join(STEP_FIELDS))
    if "at" in found and "advance" in found:
        raise found["advance"].wrong("a step has either 'at' or 'advance'")
    deeds: list[Deed] = []
    for key, each in found.items():
        if key in ACTIONS:
            deeds.extend(read_action(key, each, names))
    return Step(
        number=number,
        line=item.line,
        at=found["at"].seconds() if "at" in found else None,
        advance=found["advance"].seconds() if "advance" in found else 0,
        deeds=tuple(deeds),
        expectations=read_expectations(found["expect"], names) if "expect" in found else (),
    )
