"""Tokens."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response

from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import keys, tokens
from fairpool.core.policies import Subject
from fairpool.server import incoming, lookups
from fairpool.server.calls import Call, invalid
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.lookups import acted, reading
from fairpool.server.people import token_fields, token_view
from fairpool.wire.pages import Page
from fairpool.wire.people import NewToken, TokenCreate, TokenView


def _life_s(body: TokenCreate) -> int | None:
    if body.never_expires and body.expires_s is not None:
        raise invalid(
            "never_expires", "says another thing than expires_s", value="true", possible="one of the two, or neither"
        )
    if body.never_expires:
        return None
    return tokens.DEFAULT_LIFE_S if body.expires_s is None else body.expires_s


def _owner(call: Call, given: str | None) -> Subject:
    """Whose token it becomes: the caller's, unless they say somebody else."""
    if given is not None:
        return incoming.at("owner", Subject.parse, given)
    if call.principal.subject is None:
        told = "the installation's own token is nobody's: say whose token this becomes"
        raise invalid("owner", told, value=None, possible="user:NAME or service-account:NAME")
    return call.principal.subject


async def _create(call: Call) -> Response:
    body = await call.body(TokenCreate)
    owner, name, life_s = _owner(call, body.owner), incoming.name("name", body.name, what="token"), _life_s(body)
    call.reach.check(f"a token of {owner}", "", [owner])
    workspace, key = call.principal.workspace, call.idempotency_key
    fingerprint, secret = keys.digest(await call.payload()), call.services.token_secret

    def create(tx: Transaction) -> Callable[[], tokens.Issued]:
        if key is None:
            return tokens.create(tx, owner, name, life_s=life_s, workspace=workspace)
        return tokens.create_once(
            tx, owner, name, key=key, fingerprint=fingerprint, secret=secret, life_s=life_s, workspace=workspace
        )

    issued = await acted(call, create)
    view = NewToken.model_validate(
        {**token_fields(issued.record, call.services.clock.now()), "token": issued.text.reveal()}
    )
    return present(view, status=201, location=f"tokens/{view.id}")


async def _list(call: Call) -> Response:
    owner = call.text("owner")
    whose = "" if owner is None else str(incoming.at("owner", Subject.parse, owner))
    found = await reading(call, lambda reader: reader.tokens.all(whose))
    page = lookups.page_of([token for token in found if call.reach.covers(token.owner)], call)
    now = call.services.clock.now()
    items = [token_view(token, now) for token in page.items]
    return present(Page[TokenView](items=items, next_cursor=lookups.next_cursor(page)))


async def _revoke(call: Call) -> Response:
    ref, reach = call.path["ref"], call.reach
    revoked = await acted(call, lambda tx: tokens.revoke(tx, ref, reach=reach))
    return present(token_view(revoked, call.services.clock.now()))


ENDPOINTS = {
    "token_list": Endpoint(
        handler=_list, summary="List tokens, the oldest first, without what lets anybody in.", answer=Page[TokenView]
    ),
    "token_create": Endpoint(
        handler=_create,
        summary="Make a token; its text is told this once, and again to who repeats the call with its key.",
        body=TokenCreate,
        answer=NewToken,
        status=201,
        headers=("Idempotency-Key",),
    ),
    "token_revoke": Endpoint(handler=_revoke, summary="Revoke a token at once.", answer=TokenView),
}
