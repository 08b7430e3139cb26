"""Rules as documents: planned on a copy of what is known, carried out in one commit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from starlette.responses import Response

from fairpool.app.authz import Right
from fairpool.app.errors import KeyReused, NotAllowed, NotFound
from fairpool.app.manifests import planning, what_if
from fairpool.app.manifests.carrying_out import Refusals, Uses, carry_out
from fairpool.app.manifests.planning import NotOurs
from fairpool.app.manifests.values import Action, Change, Changes, Effect, FieldChange, Scope
from fairpool.app.memory import Memory
from fairpool.app.ports import Stored
from fairpool.app.records import Document, KeyUse, Kind
from fairpool.app.rights import right_of
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import keys
from fairpool.app.use_cases.declaring import nearest
from fairpool.core.ids import Instant
from fairpool.server import declaring
from fairpool.server.calls import Call, invalid, invalid_fields
from fairpool.server.deciding import asked
from fairpool.server.declaring_sealed import shown_url
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.failures import refusal_of
from fairpool.server.lookups import acted, reading
from fairpool.server.outgoing import vector
from fairpool.server.problems import Refused
from fairpool.server.webhooks.targets import check_url as check_webhook
from fairpool.server.webhooks.telling import allows_private
from fairpool.wire.manifests import schemas
from fairpool.wire.manifests.kinds import KINDS, read_document
from fairpool.wire.manifests.kinds import Document as Read
from fairpool.wire.manifests.plans import (
    SHOWN_REQUESTS,
    AffectedView,
    AlongView,
    ApplyBody,
    ApplyResult,
    ChangeView,
    EffectView,
    SchemaIndex,
    SchemaView,
)
from fairpool.wire.problems import FieldProblem, Slug
from fairpool.wire.reading import InvalidBody, shown
from fairpool.wire.routes import ROUTES

SCHEMA_MEDIA_TYPE = "application/schema+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What a caller wants done with documents."""

    documents: list[Read]
    scope: Scope
    uses: Mapping[Kind, Uses]

    @property
    def kinds(self) -> set[Kind]:
        """Of what the documents speak."""
        return {Kind(document.kind) for document in self.documents} | self.scope.kinds

    def changes(self, memory: Memory) -> Changes:
        """What it comes to by now."""
        return planning.changes(declaring.known(memory), declaring.wanted(memory, self.documents), self.scope)

    def versions(self, memory: Memory) -> dict[str, int]:
        """What that rests on."""
        return planning.versions(memory, self.kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Once:
    """What tells whether the same call has been carried out before. actor: who calls. key: None where nobody asks."""

    actor: str
    key: str | None
    fingerprint: str

    def is_done(self, used: Callable[[Kind, str], KeyUse | None]) -> bool:
        """Whether it has. Raises KeyReused where the key came with another body."""
        found = None if self.key is None else used(Kind.SETTINGS, keys.kept(self.actor, self.key))
        if self.key is not None and found is not None and found.fingerprint != self.fingerprint:
            raise KeyReused(self.key)
        return found is not None

    def note(self, tx: Transaction, set_name: str) -> None:
        """It is carried out with this transaction."""
        if self.key is not None:
            tx.use_key(Kind.SETTINGS, keys.kept(self.actor, self.key), set_name, self.fingerprint)


async def _plan(call: Call) -> Response:
    wanted = _asked(call, await call.body(ApplyBody))
    _check_readable(call, wanted.kinds)
    plan = await _planned(call, wanted)
    _check_readable(call, {Kind(change.kind) for change in plan.changes})
    return present(plan)


async def _apply(call: Call) -> Response:
    body = await call.body(ApplyBody)
    wanted, fingerprint = _asked(call, body), keys.digest(await call.payload())
    once = _Once(actor=call.principal.actor, key=call.idempotency_key, fingerprint=fingerprint)
    if await reading(call, lambda reader: once.is_done(reader.requests.key)):
        return present(ApplyResult(set=body.set, applied=True))
    plan = await _planned(call, wanted)
    if not plan.changes:
        return present(plan)
    _check_rights(call, plan)
    if body.expected is not None and body.expected != plan.expected:
        planning.check_unchanged(body.expected, plan.expected)
    # Tried out, so that what is refused is refused here, and spoils no round that others take part in.
    await acted(call, _carried_out(wanted, plan.expected, once))
    return present(plan.model_copy(update={"applied": True}))


def _asked(call: Call, body: ApplyBody) -> _Asked:
    check_url = partial(check_webhook, allow_private=allows_private(call.workspace.teller))
    uses = declaring.uses(call.services.sealer, check_url, body.on_work)
    return _Asked(documents=_documents(body), scope=_scope(body), uses=uses)


def _check_readable(call: Call, kinds: set[Kind]) -> None:
    """A plan shows objects as they are: whoever may not read them may not plan them. Raises NotAllowed."""
    role = call.principal.role
    hidden = sorted(kind for kind in kinds if right_of(f"{kind.replace('-', '_')}_get", role) is not Right.ALL)
    if hidden:
        raise NotAllowed(f"the role {role} does not cover reading every {' and every '.join(hidden)}")


_VERBS = {Action.CREATE: "create", Action.CHANGE: "update", Action.ADOPT: "update", Action.DELETE: "delete"}


def _check_rights(call: Call, plan: ApplyResult) -> None:
    """Who applies a document needs the right to do the same by itself. Raises NotAllowed naming what is beyond it."""
    role = call.principal.role
    beyond = [
        f"{change.action} {change.kind} {change.name!r}"
        for change in plan.changes
        if right_of(f"{change.kind.replace('-', '_')}_{_VERBS[Action(change.action)]}", role) is not Right.ALL
    ]
    if beyond:
        more = f" and {len(beyond) - 5} more" if len(beyond) > 5 else ""
        raise NotAllowed(f"the role {role} does not cover: {', '.join(beyond[:5])}{more}; nothing was changed")


def _carried_out(
    wanted: _Asked, expected: Mapping[str, int], once: _Once
) -> Callable[[Transaction], Callable[[], None]]:
    def run(tx: Transaction) -> Callable[[], None]:
        if not once.is_done(tx.key):
            planning.check_unchanged(expected, wanted.versions(tx.memory))
            carry_out(tx, wanted.changes(tx.memory), wanted.scope, wanted.uses)
            once.note(tx, wanted.scope.set_name)
        return lambda: None

    return run


async def _planned(call: Call, wanted: _Asked) -> ApplyResult:
    """The plan, with what it does to work, worked out on a copy and beside the thread that decides."""

    def look(memory: Memory, now: Instant) -> tuple[Changes, dict[str, int], Stored | None, Instant]:
        changes = wanted.changes(memory)
        return changes, wanted.versions(memory), what_if.frozen(memory) if changes.pending else None, now

    try:
        changes, versions, stored, now = await asked(call, look)
        if stored is None:
            return _result(wanted.scope, changes, versions, what_if.Trial(effects=(), along=()))
        reader = call.workspace.reader
        trial = await asyncio.to_thread(what_if.attempt, stored, reader, now, changes, wanted.scope, wanted.uses)
    except NotOurs as error:
        raise _not_ours(error) from None
    except Refusals as error:
        raise _refused(error) from None
    return _result(wanted.scope, changes, versions, trial)


# ---- what is sent ----------------------------------------------------------------------------------------------------


def _documents(body: ApplyBody) -> list[Read]:
    problems: list[FieldProblem] = []
    found: list[Read] = []
    first: dict[tuple[str, str], int] = {}
    for index, data in enumerate(body.documents):
        try:
            document = read_document(data)
        except InvalidBody as error:
            problems.extend(
                problem.model_copy(update={"field": _at(index, problem.field)}) for problem in error.problems
            )
            continue
        before = first.setdefault((document.kind, document.name), index)
        if before != index:
            told = f"{document.kind} {document.name!r} is here a second time; first in documents.{before}"
            problems.append(FieldProblem(field=_at(index, ""), message=told, value=shown(document.name)))
        found.append(document)
    if problems:
        raise invalid_fields(problems)
    return found


def _scope(body: ApplyBody) -> Scope:
    for index, kind in enumerate(body.kinds):
        if kind not in KINDS:
            raise invalid(f"kinds.{index}", "no such kind of document", value=kind, words=tuple(KINDS))
    return Scope(
        set_name=body.set,
        prune=body.prune,
        kinds=frozenset(Kind(kind) for kind in body.kinds),
        delete=body.delete,
        adopt=body.adopt,
        overwrite=body.overwrite,
    )


def _at(index: int | None, field: str) -> str:
    """The path of a field in what was sent; "" for what no document says."""
    if index is None:
        return ""
    return f"documents.{index}.{field}" if field else f"documents.{index}"


# ---- what is refused -------------------------------------------------------------------------------------------------


def _not_ours(error: NotOurs) -> Refused:
    problems = [
        FieldProblem(field=_at(index, field), message=told, possible="overwrite, to take it over")
        for index, field, told in error.problems
    ]
    return Refused(Slug.CONFLICT, str(error), errors=problems, guidance="--overwrite takes it over")


def _refused(error: Refusals) -> Refused:
    """All that cannot be done, with the slug that the first refusal has by itself."""
    problems: list[FieldProblem] = []
    first: Refused | None = None
    for refusal in error.refusals:
        told = refusal_of(refusal.error)
        if told is None:
            raise refusal.error
        first = first or told
        problems.extend(_problems(refusal.change, refusal.error, told))
    assert first is not None
    detail = "; ".join(problem.message for problem in problems[:3])
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    guidance = _ON_WORK if first.problem.type == Slug.IN_USE else first.problem.help
    return Refused(Slug(first.problem.type), detail + more, errors=problems, guidance=guidance)


_ON_WORK = "--on-work drain waits until the work there has ended, --on-work let-go lets it run on unaccounted"


def _problems(change: Change, error: Exception, told: Refused) -> Sequence[FieldProblem]:
    what = f"{change.kind} {change.name!r}"
    errors = told.problem.errors or [FieldProblem(field="", message=told.problem.detail or str(error))]
    return [
        problem.model_copy(update={"field": _at(change.index, problem.field), "message": f"{what}: {problem.message}"})
        for problem in errors
    ]


# ---- what is answered ------------------------------------------------------------------------------------------------


def _result(scope: Scope, changes: Changes, versions: Mapping[str, int], trial: what_if.Trial) -> ApplyResult:
    return ApplyResult(
        set=scope.set_name,
        changes=[_change(change) for change in changes.pending],
        unchanged=len(changes.kept),
        along=[AlongView(action=what, kind=kind.value, name=name) for kind, name, what in trial.along],
        effects=[_effect(effect) for effect in trial.effects],
        warnings=list(trial.warnings),
        expected=dict(versions),
    )


def _change(change: Change) -> ChangeView:
    return ChangeView.model_validate(
        {
            "action": change.action.value,
            "kind": change.kind.value,
            "name": change.name,
            "document": change.index,
            "fields": [_difference(change.kind, field) for field in change.fields],
            "before": _document(change.kind, change.known.body if change.known is not None else None),
            "after": _document(change.kind, change.body),
        }
    )


def _difference(kind: Kind, change: FieldChange) -> dict[str, object]:
    field = "type" if kind is Kind.COMPONENT and change.field == "kind" else change.field
    old, new = change.old, change.new
    if kind is Kind.WEBHOOK and field == "url":
        old, new = (None if url is None else shown_url(str(url)) for url in (old, new))
    return {"field": field, "old": old, "new": new}


def _document(kind: Kind, body: Document | None) -> dict[str, object] | None:
    return None if body is None else dict(declaring.as_document(kind, body))


def _effect(effect: Effect) -> EffectView:
    named = [
        AffectedView(
            id=one.request, name=one.name, subject=one.subject, pool=one.pool, demand=vector(one.demand), why=one.why
        )
        for one in effect.requests[:SHOWN_REQUESTS]
    ]
    return EffectView(outcome=effect.outcome, count=len(effect.requests), requests=named)


# ---- schemas ---------------------------------------------------------------------------------------------------------


async def _schemas(call: Call) -> Response:
    items = [SchemaView(kind=name, url=ROUTES["schema_get"].url(kind=name)) for name in schemas.names()]
    return present(SchemaIndex(items=items))


async def _schema(call: Call) -> Response:
    name = call.path["kind"]
    if name not in schemas.names():
        raise NotFound("schema", name, candidates=nearest(name, schemas.names()))
    return Response(json.dumps(schemas.named(name)), media_type=SCHEMA_MEDIA_TYPE)


ENDPOINTS = {
    "schema_list": Endpoint(handler=_schemas, summary="The kinds of documents and their schemas.", answer=SchemaIndex),
    "schema_get": Endpoint(
        handler=_schema, summary="The JSON Schema of a kind of document.", media_type=SCHEMA_MEDIA_TYPE
    ),
    "plan": Endpoint(
        handler=_plan,
        summary="What documents would change, and what that would do to work right now.",
        body=ApplyBody,
        is_large=True,
        answer=ApplyResult,
    ),
    "apply": Endpoint(
        handler=_apply,
        summary="Make everything as documents have it, in one commit: all of it or nothing.",
        body=ApplyBody,
        is_large=True,
        answer=ApplyResult,
        headers=("Idempotency-Key",),
    ),
}
