"""Tokens: what lets people and services in. Shown once, kept as a hash, revoked at once."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fairpool.app.authz import EVERYTHING, Reach
from fairpool.app.errors import Ambiguous, Conflict, Exists, KeyReused, NotFound
from fairpool.app.records import DEFAULT_WORKSPACE, Kind, TokenRecord
from fairpool.app.token_text import TokenText, drawn_from, mint
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import keys
from fairpool.app.use_cases.declaring import check_known, nearest
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import SECOND, Instant, check_name
from fairpool.core.policies import Subject, SubjectKind

DAY_S: Final = 86_400
DEFAULT_LIFE_S: Final = 90 * DAY_S
LONGEST_LIFE_S: Final = 366 * DAY_S
"""Of a person's token; a service's may be for ever."""

USE_NOTED_S: Final = 60
"""How exactly it is known when a token was last used."""

_OWNERS = {SubjectKind.USER: Kind.USER, SubjectKind.SERVICE_ACCOUNT: Kind.SERVICE_ACCOUNT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A new token, the only time that its text is known."""

    record: TokenRecord
    text: TokenText


def create(
    tx: Transaction,
    owner: Subject,
    name: str,
    *,
    life_s: int | None = DEFAULT_LIFE_S,
    workspace: str = DEFAULT_WORKSPACE,
    draw: Callable[[int], bytes] = secrets.token_bytes,
) -> Callable[[], Issued]:
    """A new token of a user or a service account. life_s: None for one that does not expire (services only).

    Raises NotFound (owner), Exists (the owner has one of that name), InvalidInput.
    """
    _check_owner(tx, owner)
    _check_life(owner, life_s)
    check_name(name, what="token name")
    if any(token.name == name for token in valid_of(tx, owner)):
        raise Exists("token", name, hint=f"{owner} has one of that name; revoke it, or choose another name")
    text = mint(draw)
    record = TokenRecord(
        id=text.id,
        workspace=workspace,
        name=name,
        owner=str(owner),
        hash=text.hash,
        created_at=tx.now,
        created_by=tx.actor,
        expires_at=None if life_s is None else Instant(tx.now + life_s * SECOND),
    )
    tx.put_token(record)
    tx.note(Kind.TOKEN, record.id, "created", name=name, after={"owner": str(owner), "life_s": life_s})
    issued = Issued(record=record, text=text)
    return lambda: issued


def create_once(
    tx: Transaction,
    owner: Subject,
    name: str,
    *,
    key: str,
    fingerprint: str,
    secret: bytes,
    life_s: int | None = DEFAULT_LIFE_S,
    workspace: str = DEFAULT_WORKSPACE,
) -> Callable[[], Issued]:
    """As `create`; the same caller's same key gives the same token again, with its text: for who never got the answer.

    The text is kept nowhere. It is drawn from the key, of which a hash alone is kept, and from the secret, which is in
    no database. fingerprint: of all that was asked. Raises as `create`; KeyReused; Conflict where the secret is another
    by now.
    """
    kept = keys.digest(json.dumps([tx.actor, key]).encode())
    draw = drawn_from(secret, workspace, tx.actor, key)
    used = tx.key(Kind.TOKEN, kept)
    if used is None:
        issued = create(tx, owner, name, life_s=life_s, workspace=workspace, draw=draw)
        tx.use_key(Kind.TOKEN, kept, issued().record.id, fingerprint)
        return issued
    if used.fingerprint != fingerprint:
        raise KeyReused(key)
    record, text = tx.token(used.object), mint(draw)
    if record is None or not text.is_of(record.hash):
        raise Conflict(
            f"the token {name!r} of {owner} was made with this key, and its text cannot be told again, since the "
            f"installation's own token has changed: revoke it ('fairpool token revoke {used.object}') and make another"
        )
    again = Issued(record=record, text=text)
    return lambda: again


def revoke(tx: Transaction, ref: str, *, reach: Reach = EVERYTHING) -> Callable[[], TokenRecord]:
    """A token lets nobody in any more. Twice is the same as once. ref: its id, a unique prefix of that, or its name
    where only one valid token has it. Raises NotFound, Ambiguous."""
    token = find([token for token in tx.tokens() if reach.covers(token.owner)], ref, tx.now)
    if token.revoked_at is None:
        token = _revoked(tx, token, "")
    return lambda: token


def revoke_all(tx: Transaction, owner: Subject) -> None:
    """None of the owner's tokens lets anybody in any more."""
    for token in valid_of(tx, owner):
        _revoked(tx, token, f"{owner} was deleted")


def valid_of(tx: Transaction, owner: Subject) -> list[TokenRecord]:
    """The owner's tokens that let it in."""
    return [token for token in tx.tokens(str(owner)) if is_valid(token, tx.now)]


def is_valid(token: TokenRecord, now: Instant) -> bool:
    """Whether it lets anybody in."""
    return token.revoked_at is None and (token.expires_at is None or now < token.expires_at)


def used(tx: Transaction, tokens: Collection[tuple[str, Instant]]) -> Callable[[], None]:
    """When these were last used. No line of history: it is no change of anybody's rights."""
    for token_id, at in tokens:
        token = tx.token(token_id)
        if token is not None and (token.last_used_at is None or token.last_used_at < at):
            tx.put_token(replace(token, last_used_at=at))
    return lambda: None


def find(tokens: Sequence[TokenRecord], ref: str, now: Instant) -> TokenRecord:
    """The token that an id, a name of a valid one, or a unique id prefix means. Raises NotFound, Ambiguous."""
    found = [token for token in tokens if token.id == ref]
    found = found or [token for token in tokens if token.name == ref and is_valid(token, now)]
    found = found or [token for token in tokens if ref and token.id.startswith(ref)]
    if not found:
        raise NotFound("token", ref, candidates=nearest(ref, [token.name for token in tokens]))
    if len(found) > 1:
        raise Ambiguous(
            "token", ref, candidates=[f"{token.id} ({token.name} of {token.owner})" for token in found[:10]]
        )
    return found[0]


def _revoked(tx: Transaction, token: TokenRecord, cause: str) -> TokenRecord:
    record = replace(token, revoked_at=tx.now)
    tx.put_token(record)
    tx.note(Kind.TOKEN, token.id, "revoked", name=token.name, cause=cause, before={"owner": token.owner})
    return record


def _check_owner(tx: Transaction, owner: Subject) -> None:
    kind = _OWNERS.get(owner.kind)
    if kind is None:
        raise InvalidInput(
            f"{owner} cannot have tokens", field="owner", value=str(owner), possible="user:NAME or service-account:NAME"
        )
    check_known(tx.memory, kind, [owner.name])


def _check_life(owner: Subject, life_s: int | None) -> None:
    if owner.kind is SubjectKind.USER and (life_s is None or life_s > LONGEST_LIFE_S):
        raise InvalidInput(
            "a person's token expires",
            field="expires_s",
            value="never" if life_s is None else str(life_s),
            possible=f"at most {LONGEST_LIFE_S // DAY_S} days; a service account's token need not expire",
        )
