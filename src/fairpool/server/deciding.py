"""Use cases on behalf of a caller: run with the next decision, answered once committed, presented as it then stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from fairpool.app.errors import KeyReused
from fairpool.app.memory import Memory
from fairpool.app.past import recalling
from fairpool.app.records import Declared, Kind
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import keys
from fairpool.core.ids import Instant
from fairpool.server.calls import Call
from fairpool.server.lookups import acted, answered, reading

Result = TypeVar("Result")
View = TypeVar("View", bound=BaseModel)
Spec = TypeVar("Spec", bound=Any)


async def decided(
    call: Call,
    command: Callable[[Transaction], Callable[[], Result]],
    present: Callable[[Memory, Instant, Result], View],
) -> View:
    """Run a use case; its result is presented on the scheduler's thread, after the commit."""

    def run(transaction: Transaction) -> Callable[[], View]:
        answer = command(transaction)
        memory, now = transaction.memory, transaction.now
        return lambda: present(memory, now, answer())

    return await acted(call, run)


async def created(
    call: Call,
    kind: Kind,
    command: Callable[[Transaction], Callable[[], Declared[Spec]]],
    present: Callable[[Memory, Instant, Declared[Spec]], View],
) -> View:
    """As `decided`, for a new object: the same ``Idempotency-Key`` with the same body gives the same object again,
    also where the answer to the first call was lost."""
    key = call.idempotency_key
    if not key or call.dry_run:
        return await decided(call, command, present)
    fingerprint = keys.digest(await call.payload())

    def once(tx: Transaction) -> Callable[[], Declared[Spec]]:
        used = tx.key(kind, keys.of_caller(tx, key))
        if used is not None and used.fingerprint != fingerprint:
            raise KeyReused(key)
        if used is not None:
            return lambda: cast("Declared[Spec]", tx.memory.find(kind, used.object))
        answer = command(tx)
        tx.use_key(kind, keys.of_caller(tx, key), answer().id, fingerprint)
        return answer

    return await decided(call, once, present)


async def asked(call: Call, ask: Callable[[Memory, Instant], Result]) -> Result:
    """Look something up in what the scheduler knows, between two decisions; or in what it knew at a past moment, where
    the caller asks about one."""
    at = call.at if "at" in call.route.query else None
    if at is None:
        return await answered(call, call.workspace.loop.ask(ask))
    # Making the past anew takes long where much was going on: whoever asks for it again and again waits for themselves.
    with call.waiting():
        async with call.services.recalling:
            now = await answered(call, call.workspace.loop.ask(lambda memory, now: recalling.present(memory)))
            return await reading(call, lambda reader: ask(recalling.recall(now, reader, at), at))
