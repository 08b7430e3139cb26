"""What the vault of a team puts into the environment of its steps: defaults below what is set here, locks above it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairpool.wire.vaults import EnvironmentView


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The variables to set on top of the surroundings. overridden: what was set otherwise and is locked."""

    environment: dict[str, str] = field(repr=False)
    overridden: tuple[str, ...] = ()


def merged(found: EnvironmentView, own: Mapping[str, str]) -> Merged:
    """What a vault adds to what is set already: team defaults < the step's own < locks."""
    taken = {name: view for name, view in found.variables.items() if view.locked or name not in own}
    overridden = [name for name, view in taken.items() if name in own and own[name] != view.value]
    return Merged(environment={name: view.value for name, view in taken.items()}, overridden=tuple(overridden))


def told(vault: str, overridden: tuple[str, ...]) -> str:
    """That locks have won, without a value; "" where none had to."""
    if not overridden:
        return ""
    verb = "is" if len(overridden) == 1 else "are"
    return f"{', '.join(overridden)} {verb} locked by the vault of team {vault}: what was set here is not used"
