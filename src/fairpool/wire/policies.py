"""Policies and profiles over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import ClassVar

from pydantic import Field

from fairpool.wire.amounts import Amount, Amounts, SomeAmounts
from fairpool.wire.model import Body, Flag, Labels, Line, Priority, Prose, Seconds, SomeSeconds, View

MAX_WINDOWS = 20
"""Windows of one policy."""


class WindowSpec(Body):
    """A window of time in which other numbers of a policy are in force; what it leaves out is as the policy has it.

    start: a cron expression of five fields (minute hour day month weekday). duration_s: for how many elapsed seconds
    the window is open each time. timezone: a name of the IANA database.
    """

    start: Line
    duration_s: SomeSeconds
    timezone: Line = "UTC"
    reserved: SomeAmounts | None = None
    limit: SomeAmounts | None = None
    priority: Priority | None = None
    weight: Amount | None = None
    grace_s: Seconds | None = None


class PolicyCreate(Body):
    """Binds one subject to one pool.

    pool: name, id or unique id prefix. subject: ``team:vision``; ``component:`` may be left off.
    reserved, limit: per key; a key left out has nothing reserved and no limit but the capacity (S12).
    weight: how much of the surplus this policy deserves beside its equals.
    dedicated: the unused reservation stays idle for its owner (S14).
    grace_s: how long an evicted request has to let go (S31). min_runtime_s: how long it is spared (S30).
    profiles: the profiles it offers by name; None offers all.
    schedule: windows of time with other numbers; of those that are open, the first counts.
    also: further pools that the policy spans: `reserved`, `limit` and shares count over all of its pools together, and
        its requests prefer them in this order.
    """

    other_words: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"pools": "the first of them is its 'pool', and 'also' lists the others"}
    )

    pool: str
    also: list[str] = Field(default_factory=list, max_length=100)
    subject: str
    priority: Priority = 0
    reserved: SomeAmounts = Field(default_factory=dict)
    limit: SomeAmounts = Field(default_factory=dict)
    weight: Amount = 1
    dedicated: Flag = False
    grace_s: Seconds = 30
    min_runtime_s: Seconds = 0
    profiles: list[str] | None = None
    schedule: list[WindowSpec] = Field(default_factory=list, max_length=MAX_WINDOWS)


class PolicyUpdate(Body):
    """What changes of a policy; fields that are left out stay. `reserved`, `limit` and `schedule` are replaced as a
    whole, and so is `also`. subject: whose it is from now on."""

    other_words: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "pool": "a policy keeps its pool, and 'also' lists the others that it spans",
            "pools": "a policy keeps its pool, and 'also' lists the others that it spans",
        }
    )

    subject: str | None = None
    also: list[str] | None = Field(default=None, max_length=100)
    priority: Priority | None = None
    reserved: SomeAmounts | None = None
    limit: SomeAmounts | None = None
    weight: Amount | None = None
    dedicated: Flag | None = None
    grace_s: Seconds | None = None
    min_runtime_s: Seconds | None = None
    profiles: list[str] | None = None
    schedule: list[WindowSpec] | None = Field(default=None, max_length=MAX_WINDOWS)


class WindowView(View):
    """A window of time in which other numbers of a policy are in force."""

    start: str
    duration_s: int
    timezone: str = "UTC"
    reserved: Amounts | None = None
    limit: Amounts | None = None
    priority: int | None = None
    weight: Amount | None = None
    grace_s: int | None = None


class InForceView(View):
    """What is in force now of a policy with a schedule. window: which window is open, counted from 0; None for none."""

    window: int | None = None
    priority: int = 0
    reserved: Amounts = Field(default_factory=dict)
    limit: Amounts = Field(default_factory=dict)
    weight: Amount = 1
    grace_s: int = 30


class PolicyView(View):
    """A policy as it was written, with what its requests use.

    now: with a schedule, what is in force; next_change_at: when a window next opens or closes.
    in_share, borrowed: what of `used` lies inside the reservation, and what beyond (S20).
    """

    kind: str = "policy"
    id: str
    version: int
    pool: str
    pool_id: str
    also: list[str] = Field(default_factory=list)
    subject: str
    priority: int = 0
    reserved: Amounts = Field(default_factory=dict)
    limit: Amounts = Field(default_factory=dict)
    weight: Amount = 1
    dedicated: bool = False
    grace_s: int = 30
    min_runtime_s: int = 0
    profiles: list[str] | None = None
    schedule: list[WindowView] = Field(default_factory=list)
    now: InForceView | None = None
    next_change_at: datetime | None = None
    used: Amounts = Field(default_factory=dict)
    in_share: Amounts = Field(default_factory=dict)
    borrowed: Amounts = Field(default_factory=dict)
    queued: int = 0
    active: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


class ProfileDefaults(Body):
    """What a request that names the profile gets where it says nothing itself; it counts when the request is submitted.

    labels: those that the request does not carry under the same key.
    """

    preemptible: Flag | None = None
    max_runtime_s: SomeSeconds | None = None
    labels: Labels = Field(default_factory=dict, max_length=64)


class ProfileCreate(Body):
    """A named demand with the pools it may run in, by name, in order of preference."""

    name: str
    demand: SomeAmounts
    pools: list[str]
    defaults: ProfileDefaults = Field(default_factory=ProfileDefaults)
    description: Prose = ""


class ProfileUpdate(Body):
    """What changes of a profile; fields that are left out stay. `defaults` are replaced as a whole.

    name: its new one, which policies that name it and live requests follow.
    """

    name: str | None = None
    demand: SomeAmounts | None = None
    pools: list[str] | None = None
    defaults: ProfileDefaults | None = None
    description: Prose | None = None


class ProfileDefaultsView(View):
    """What a request that names the profile gets where it says nothing itself."""

    preemptible: bool | None = None
    max_runtime_s: int | None = None
    labels: dict[str, str] = Field(default_factory=dict)


class ProfileView(View):
    """A profile as it is now."""

    kind: str = "profile"
    id: str
    name: str
    version: int
    demand: Amounts
    pools: list[str]
    defaults: ProfileDefaultsView = Field(default_factory=ProfileDefaultsView)
    description: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
