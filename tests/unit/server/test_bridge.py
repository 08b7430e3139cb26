"""Answers cross from the scheduler's thread to the loop, each to the one who asked."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

from fairpool.server.bridge import Bridge


def test_results_and_errors_reach_those_who_asked() -> None:
    async def story() -> list[object]:
        bridge = Bridge()
        futures: list[Future[int]] = [Future() for _ in range(100)]

        def answer() -> None:
            for number, future in enumerate(futures):
                if number % 10:
                    future.set_result(number)
                else:
                    future.set_exception(ValueError(str(number)))

        asked = asyncio.gather(*(bridge.answer(future) for future in futures), return_exceptions=True)
        threading.Thread(target=answer).start()
        return [str(found) for found in await asked]

    assert asyncio.run(story()) == [str(number) for number in range(100)]


def test_what_was_answered_before_it_was_awaited_is_there() -> None:
    async def story() -> str:
        future: Future[str] = Future()
        future.set_result("done")
        return await Bridge().answer(future)

    assert asyncio.run(story()) == "done"


def test_a_caller_that_hangs_up_spoils_nothing_for_the_others() -> None:
    async def story() -> int:
        bridge = Bridge()
        lost: Future[int] = Future()
        kept: Future[int] = Future()
        leaving = asyncio.create_task(bridge.answer(lost))
        staying = asyncio.create_task(bridge.answer(kept))
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        lost.set_result(1)
        kept.set_result(2)
        return await staying

    assert asyncio.run(story()) == 2
