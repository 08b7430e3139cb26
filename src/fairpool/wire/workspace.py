"""Workspaces, the settings of one, and what a server says of itself."""

from __future__ import annotations

from datetime import datetime

from fairpool.wire.model import Body, Flag, Prose, View


class SettingsUpdate(Body):
    """What changes of the workspace's settings; fields that are left out stay.

    require_policy: whether a request that no policy governs is rejected (S15).
    """

    require_policy: Flag | None = None


class SettingsView(View):
    """The workspace's settings."""

    version: int
    require_policy: bool = False


class ServerInfo(View):
    """What a server says of itself.

    database: what kind it keeps its memory in, without any secret. leader: whether it decides. address,
    leader_address: where other servers find it, and the one that decides; "" for nowhere.
    """

    version: str
    api: str = "v1"
    started_at: datetime
    now: datetime
    database: str = ""
    leader: bool = True
    address: str = ""
    leader_address: str = ""
    queued: int = 0
    active: int = 0


class Check(View):
    """One thing that must hold for calls to be served. detail: what is wrong, for people; empty where it holds."""

    name: str
    holds: bool
    detail: str = ""


class Readiness(View):
    """Whether a server can serve calls: ``ready`` says so where all checks hold."""

    ready: bool
    checks: list[Check]


class WorkspaceCreate(Body):
    """A workspace: people, rules and work of their own, next to those of others on the same servers."""

    name: str
    description: Prose = ""


class WorkspaceUpdate(Body):
    """What changes of a workspace; fields that are left out stay."""

    description: Prose | None = None


class WorkspaceView(View):
    """A workspace. The installation's own, ``default``, is declared nowhere: it has no id.

    state: ``open``; ``unavailable`` while the server that was asked cannot open it or nobody decides for it, as the log
    says; ``closing`` while it is being deleted.
    """

    kind: str = "workspace"
    id: str = ""
    name: str
    version: int = 0
    state: str = "open"
    description: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None


class WorkspaceDeletion(View):
    """What goes with a workspace: how many of each it has. Its requests, runs, tokens and history go too."""

    workspace: str
    users: int = 0
    teams: int = 0
    service_accounts: int = 0
    pools: int = 0
    policies: int = 0
    profiles: int = 0
    vaults: int = 0
    webhooks: int = 0
