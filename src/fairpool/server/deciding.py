"""Use cases on behalf of a caller: run with the next decision, answered once committed, presented as it then stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel

from fairpool.app.memory import Memory
from fairpool.app.transaction import Transaction
from fairpool.core.ids import Instant
from fairpool.server.calls import Call
from fairpool.server.lookups import acted, answered

Result = TypeVar("Result")
View = TypeVar("View", bound=BaseModel)


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


async def asked(call: Call, ask: Callable[[Memory, Instant], Result]) -> Result:
    """Look something up in what the scheduler knows, between two decisions."""
    return await answered(call, call.services.loop.ask(ask))
