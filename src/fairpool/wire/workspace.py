"""The workspace's own settings, and what a server says of itself."""

from __future__ import annotations

from datetime import datetime

from fairpool.wire.model import Body, Flag, View


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
