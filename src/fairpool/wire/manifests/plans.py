"""Applying documents over HTTP: what is sent, and the plan that comes back."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fairpool.wire.amounts import Amounts
from fairpool.wire.model import Anything, Body, Flag, Line, Object, View

DEFAULT_SET = "default"
SHOWN_REQUESTS = 100
"""Requests of one effect that a plan names; it counts them all."""

OnWork = Literal["refuse", "drain", "let-go"]


class ApplyBody(Body):
    """Documents, and how far they reach.

    documents: each with its ``kind`` and the fields of creating one; a field left out is as it would be by itself.
    set: whose these documents are; what they create or change belongs to it. prune: what belongs to the set and is in
    no document any more is deleted. kinds: prune only these kinds; all where it is empty.
    delete: the documents name what is to go.
    adopt: what is as wanted already belongs to the set from now on. overwrite: change also what belongs to another set,
    and labels of nodes that this set did not put there.
    on_work: what deleting a pool does about the work that waits or runs there (S10).
    expected: the versions that the plan named; where one differs by now, nothing is changed.
    """

    documents: list[dict[str, object]]
    set: Line = DEFAULT_SET
    prune: Flag = False
    kinds: list[str] = Field(default_factory=list)
    delete: Flag = False
    adopt: Flag = False
    overwrite: Flag = False
    on_work: OnWork = "refuse"
    expected: dict[str, int] | None = None


class FieldDifference(View):
    """A field that differs, by its dotted path. old, new: null where it is not there."""

    field: str
    old: Anything = None
    new: Anything = None


class ChangeView(View):
    """What becomes of one object.

    action: ``create``, ``change``, ``delete``, or ``adopt``: it is as wanted, and belongs to the set from now on.
    document: which of the documents wants it, from 0; null for what is pruned. before, after: the whole object as a
    document; null where there is none.
    """

    action: str
    kind: str
    name: str
    document: int | None = None
    fields: list[FieldDifference] = Field(default_factory=list)
    before: Object | None = None
    after: Object | None = None


class AlongView(View):
    """An object that changes along with others, though no document says so: the policies of a pool that goes."""

    action: str
    kind: str
    name: str


class AffectedView(View):
    """A request that the changes do something to. why: in words."""

    id: str
    name: str = ""
    subject: str = ""
    pool: str = ""
    demand: Amounts = Field(default_factory=dict)
    why: str = ""


class EffectView(View):
    """What happens to work right away.

    outcome: ``evicted`` (told to let go), ``rejected`` (can never run now), ``cancelled`` (lost its right),
    ``unaccounted`` (runs on, and counts nowhere), ``starts``. count: of all; requests: the first of them.
    """

    outcome: str
    count: int
    requests: list[AffectedView] = Field(default_factory=list)


class ApplyResult(View):
    """What applying documents changes, or changed.

    applied: whether it was done; false for a plan, and where there was nothing to do. A call that is repeated with its
    key is told that it was done, and not once more what that changed.
    unchanged: how many documents want what is so already. effects: what it does to work that waits or runs, as far as
    it was tried out. warnings: pools that have less then than is in use there, or than policies reserve.
    expected: what the plan rests on; sent along, it is carried out only where nothing has changed.
    """

    set: str = DEFAULT_SET
    applied: bool = False
    changes: list[ChangeView] = Field(default_factory=list)
    unchanged: int = 0
    along: list[AlongView] = Field(default_factory=list)
    effects: list[EffectView] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    expected: dict[str, int] = Field(default_factory=dict)


class SchemaView(View):
    """Where the JSON Schema of a kind of document is. kind: ``document`` is for whatever kind."""

    kind: str
    url: str


class SchemaIndex(View):
    """The JSON Schemas that there are."""

    items: list[SchemaView]
