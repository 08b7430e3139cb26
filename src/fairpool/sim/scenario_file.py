"""Scenario files: YAML (JSON is YAML); one scenario per document; several documents, or one list, per file.

Every complaint names the file, the line and the key. What a scenario may say is in docs/reference/scenario-format.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fairpool.core import events as ev
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import Instant
from fairpool.core.world import World
from fairpool.sim.scenario_expectations import read_expectations
from fairpool.sim.scenario_reading import Item, ScenarioFileError, documents
from fairpool.sim.scenario_rules import Names, read_policy, read_pool, read_profile
from fairpool.sim.scenario_steps import ACTIONS, read_action
from fairpool.sim.scenario_values import Deed, Scenario, Step

SCENARIO_FIELDS = ("scenario", "pools", "policies", "profiles", "require_policy", "steps")
STEP_FIELDS = ("at", "advance", *ACTIONS, "expect")


def read_file(path: Path) -> tuple[Scenario, ...]:
    """The scenarios of a file. Raises ScenarioFileError."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioFileError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except UnicodeDecodeError as error:
        raise ScenarioFileError(f"is no UTF-8 text (byte {error.start})", file=str(path)) from None
    return read_text(text, file=str(path))


def read_text(text: str, *, file: str = "<text>") -> tuple[Scenario, ...]:
    """The scenarios of a text. `file` is what complaints call it. Raises ScenarioFileError."""
    found = tuple(_scenario(item) for item in documents(text, file))
    if not found:
        raise ScenarioFileError("holds no scenario", file=file)
    return found


def _scenario(item: Item) -> Scenario:
    found = item.fields(SCENARIO_FIELDS, required=("scenario", "pools", "steps"))
    names = Names()
    setup = _setup(found, names)
    steps = tuple(_step(number, each, names) for number, each in enumerate(found["steps"].elements(), start=1))
    return Scenario(title=found["scenario"].text(), file=item.file, line=item.line, setup=setup, steps=steps)


def _setup(found: dict[str, Item], names: Names) -> tuple[ev.Event, ...]:
    """The rules as events, tried out once so that a contradiction is told where it is written."""
    events: list[ev.Event] = []
    world = World()

    def happen(event: ev.Event, item: Item) -> None:
        _tried(lambda: world.apply(event, Instant(0)), item)
        events.append(event)

    for name, item in found["pools"].pairs().items():
        names.pools[name] = read_pool(name, item)
        happen(ev.PoolSet(pool=names.pools[name]), item)
    for name, item in found["profiles"].pairs().items() if "profiles" in found else ():
        profile = names.profiles[name] = read_profile(name, item, names)
        happen(ev.ProfileSet(profile=profile), item)
    for item in found["policies"].elements() if "policies" in found else ():
        policy = read_policy(item, names)
        if (policy.pool, policy.subject) in names.policies:
            raise item.wrong(f"{policy.subject} already has a policy on pool {policy.pool!r} (S13)")
        happen(ev.PolicySet(policy=names.identified(policy)), item)
    if "require_policy" in found:
        happen(ev.SettingsChanged(require_policy=found["require_policy"].flag()), found["require_policy"])
    return tuple(events)


def _tried(attempt: Callable[[], object], item: Item) -> None:
    try:
        attempt()
    except InvalidInput as error:
        raise item.refused(error) from None


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
