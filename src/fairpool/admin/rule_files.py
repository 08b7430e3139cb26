"""Files that pools and policies are applied from, as the rules of scenarios."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from fairpool.core.errors import InvalidInput
from fairpool.core.ids import PoolId, ProfileId
from fairpool.core.policies import Policy, Profile
from fairpool.core.pools import Pool
from fairpool.server.bodies import policy_of, pool_of, profile_of
from fairpool.sim.scenario_given import Given, RulesFault
from fairpool.sim.scenario_reading import ScenarioFileError
from fairpool.sim.scenario_rules import policy_id
from fairpool.wire.manifests.files import Written, read_files
from fairpool.wire.manifests.places import MisplacedText, Place
from fairpool.wire.policies import PolicyCreate, ProfileCreate
from fairpool.wire.pools import PoolCreate


def read_rules(paths: Sequence[str | Path]) -> list[Given]:
    """The pools, profiles and policies of these files and folders; what else they hold decides nothing in a scenario.

    Raises RulesFault with everything that is wrong.
    """
    try:
        documents = read_files([str(path) for path in paths])
    except MisplacedText as error:
        raise RulesFault([misplaced(place, told) for place, told in error.problems]) from None
    given: list[Given] = []
    wrong: list[ScenarioFileError] = []
    for written in documents:
        try:
            given.extend(_given(written))
        except InvalidInput as error:
            place = written.place(error.field)
            wrong.append(_fault(f"{error.message}; possible: {error.possible}", place.file, place.line, error.field))
    if wrong:
        raise RulesFault(wrong)
    return given


def _given(written: Written) -> list[Given]:
    make = _MAKERS.get(type(written.document.body))
    if make is None:
        return []
    place = written.placed.place
    return [Given(spec=make(written.document.body), file=place.file, line=place.line)]


def _pool(body: PoolCreate) -> Pool:
    return replace(pool_of(body), id=PoolId(body.name))


def _profile(body: ProfileCreate) -> Profile:
    return replace(profile_of(body), id=ProfileId(body.name))


def _policy(body: PolicyCreate) -> Policy:
    policy = policy_of(body)
    also = tuple(PoolId(pool) for pool in body.also)
    return replace(policy, id=policy_id(body.pool, policy.subject), pool=PoolId(body.pool), also=also)


_MAKERS: dict[type, Callable[..., Pool | Profile | Policy]] = {
    PoolCreate: _pool,
    ProfileCreate: _profile,
    PolicyCreate: _policy,
}


def misplaced(place: Place, told: str) -> ScenarioFileError:
    """A complaint about a text, at its place."""
    return _fault(f"column {place.column}: {told}" if place.column else told, place.file, place.line)


def _fault(message: str, file: str, line: int, key: str = "") -> ScenarioFileError:
    return ScenarioFileError(message, file=file, line=line, key=key)
