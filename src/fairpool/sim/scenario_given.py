"""Rules that a scenario is given from elsewhere: the files that a server's pools and policies are applied from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from fairpool.core import events as ev
from fairpool.core.errors import InvalidInput
from fairpool.core.policies import Policy, Profile
from fairpool.core.pools import Pool
from fairpool.sim.scenario_reading import ScenarioFileError
from fairpool.sim.scenario_rules import Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A pool, profile or policy, and where it is written. In place of ids stand names."""

    spec: Pool | Profile | Policy
    file: str
    line: int

    @property
    def rank(self) -> int:
        """Each after those that it names."""
        return 0 if isinstance(self.spec, Pool) else 1 if isinstance(self.spec, Profile) else 2

    def wrong(self, error: InvalidInput) -> ScenarioFileError:
        """A complaint about it, at its place."""
        text = f"{error.message}; possible: {error.possible}" if error.possible else error.message
        return ScenarioFileError(text, file=self.file, line=self.line, key=error.field)


class RulesFault(Exception):
    """Files of rules that cannot be used. faults: all that is wrong."""

    def __init__(self, faults: Sequence[ScenarioFileError]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)


RulesReader = Callable[[Sequence[Path]], Sequence[Given]]
"""Reads files and folders of rules. Raises RulesFault."""


def no_reader(paths: Sequence[Path]) -> NoReturn:
    """For where no files of rules can be read."""
    raise RulesFault([ScenarioFileError("rules are not read from files here", file=str(paths[0]))])


def event_of(given: Given, names: Names) -> ev.Event:
    """What brings it into force. From then on the scenario may speak of it. Raises ScenarioFileError."""
    spec = given.spec
    match spec:
        case Pool():
            names.pools[spec.name] = spec
            return ev.PoolSet(pool=spec)
        case Profile():
            for pool in spec.pools:
                _check_known(given, pool, names)
            names.profiles[spec.name] = spec
            return ev.ProfileSet(profile=spec)
        case Policy():
            for pool in spec.pools:
                _check_known(given, pool, names)
            if (pool_named := names.governed(spec)) is not None:
                told = f"{spec.subject} already has a policy on pool {pool_named!r} (S13)"
                raise ScenarioFileError(told, file=given.file, line=given.line, key="subject")
            return ev.PolicySet(policy=names.identified(spec))


def _check_known(given: Given, pool: str, names: Names) -> None:
    if pool not in names.pools:
        possible = ", ".join(sorted(names.pools)) or "none"
        raise ScenarioFileError(
            f"no pool {pool!r} in these files; there is {possible}", file=given.file, line=given.line, key="pool"
        )
