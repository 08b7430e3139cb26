"""Waiting calls are woken by what they wait for, from any thread, and miss nothing."""

from __future__ import annotations

import asyncio
import threading

from fairpool.server.watching import EVERYTHING, Watch, wait


def test_a_waiter_is_woken_by_its_own_key_and_not_by_others() -> None:
    async def story() -> tuple[bool, bool, bool]:
        watch = Watch()
        watch.attach(asyncio.get_running_loop())
        with watch.watching("a") as a, watch.watching("b") as b, watch.watching(EVERYTHING) as everything:
            threading.Thread(target=watch.tell, args=(["a"],)).start()
            return await wait(a, 10), await wait(b, 0), await wait(everything, 10)

    assert asyncio.run(story()) == (True, False, True)


def test_what_happens_between_the_look_and_the_wait_is_not_missed() -> None:
    async def story() -> bool:
        watch = Watch()
        watch.attach(asyncio.get_running_loop())
        with watch.watching("a") as event:
            watch.tell(["a"])
            await asyncio.sleep(0)
            return await wait(event, 0)

    assert asyncio.run(story())


def test_closing_wakes_everybody_for_good() -> None:
    async def story() -> tuple[bool, bool]:
        watch = Watch()
        watch.attach(asyncio.get_running_loop())
        with watch.watching("a") as before:
            watch.close()
            with watch.watching("b") as after:
                return await wait(before, 10), await wait(after, 10)

    assert asyncio.run(story()) == (True, True)


def test_nobody_is_remembered_once_gone() -> None:
    async def story() -> Watch:
        watch = Watch()
        watch.attach(asyncio.get_running_loop())
        with watch.watching("a"), watch.watching("a"):
            pass
        return watch

    assert asyncio.run(story())._watchers == {}
