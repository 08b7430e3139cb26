"""Vaults over HTTP: what an administrator gives the steps of a team."""

from __future__ import annotations

from datetime import datetime

from pydantic import ConfigDict, Field

from fairpool.wire.model import Body, Flag, Prose, View

_HIDDEN = ConfigDict(hide_input_in_errors=True)
"""What is wrong with such a body is told without repeating what was sent."""


class VaultValue(Body):
    """A value of a vault. locked: a step may not set it otherwise; else it is a default."""

    model_config = _HIDDEN

    value: str = Field(repr=False)
    locked: Flag = False


class VaultSecret(Body):
    """A secret of a vault. value: None where the one that is kept already stays; it is never told again."""

    model_config = _HIDDEN

    value: str | None = Field(default=None, repr=False)
    locked: Flag = False


class VaultCreate(Body):
    """What a team's steps get in their environment. name: of the team.

    environment, secrets: by the variable's name. image, storage_url: steps see them as FAIRPOOL_IMAGE and
    FAIRPOOL_STORAGE_URL.
    """

    model_config = _HIDDEN

    name: str
    environment: dict[str, VaultValue] = Field(default_factory=dict)
    secrets: dict[str, VaultSecret] = Field(default_factory=dict)
    image: VaultValue | None = None
    storage_url: VaultValue | None = None
    description: Prose = ""


class VaultSecretReference(Body):
    """A secret in a file: that there is one, never its value."""

    locked: Flag = False


class VaultDocument(Body):
    """What a team's steps get in their environment. name: of the team.

    environment: by the variable's name. secrets: those that are kept already, by name; values are never in files.
    image, storage_url: steps see them as FAIRPOOL_IMAGE and FAIRPOOL_STORAGE_URL.
    """

    name: str
    environment: dict[str, VaultValue] = Field(default_factory=dict)
    secrets: dict[str, VaultSecretReference] = Field(default_factory=dict)
    image: VaultValue | None = None
    storage_url: VaultValue | None = None
    description: Prose = ""


class VaultUpdate(Body):
    """What changes of a vault: names that are given change, null takes one away, the others stay."""

    model_config = _HIDDEN

    environment: dict[str, VaultValue | None] = Field(default_factory=dict)
    secrets: dict[str, VaultSecret | None] = Field(default_factory=dict)
    image: VaultValue | None = None
    storage_url: VaultValue | None = None
    description: Prose | None = None


class VaultValueView(View):
    """A value of a vault as it is kept."""

    value: str
    locked: bool = False


class VaultSecretView(View):
    """That there is a secret of that name; its value is told only to a step."""

    locked: bool = False


class VaultView(View):
    """A vault as it is now; of secrets only their names."""

    kind: str = "vault"
    id: str
    name: str
    version: int
    environment: dict[str, VaultValueView] = Field(default_factory=dict)
    secrets: dict[str, VaultSecretView] = Field(default_factory=dict)
    image: VaultValueView | None = None
    storage_url: VaultValueView | None = None
    description: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None


class VaultRotation(View):
    """How many vaults and secrets were sealed anew with the newest key. webhooks: whose signing secrets were, too."""

    vaults: int
    secrets: int
    webhooks: int = 0


class VariableView(View):
    """A variable that a step gets. locked: it may not set it otherwise. secret: it must not be shown to anybody."""

    value: str = Field(repr=False)
    locked: bool = False
    secret: bool = False


class EnvironmentView(View):
    """What the vault of a team gives to one granted request, by the variable's name. vault: the team's, "" for none."""

    request: str
    vault: str = ""
    variables: dict[str, VariableView] = Field(default_factory=dict, repr=False)
