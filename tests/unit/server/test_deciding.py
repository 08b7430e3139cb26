"""Past moments are made anew one at a time: whoever asks for many waits, and others do not."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairpool.core.ids import Instant
from fairpool.server import deciding
from fairpool.server.calls import Call


def test_of_many_questions_about_the_past_one_is_worked_out_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    under_way: list[int] = []
    most = 0

    async def answered(*_: Any) -> None:
        return None

    async def reading(*_: Any) -> str:
        nonlocal most
        under_way.append(1)
        most = max(most, len(under_way))
        for _turn in range(5):
            await asyncio.sleep(0)
        under_way.pop()
        return "then"

    monkeypatch.setattr(deciding, "answered", answered)
    monkeypatch.setattr(deciding, "reading", reading)

    async def story() -> list[str]:
        call = SimpleNamespace(
            at=Instant(1),
            route=SimpleNamespace(query=("at",)),
            workspace=SimpleNamespace(loop=SimpleNamespace(ask=lambda ask: None)),
            services=SimpleNamespace(recalling=asyncio.Lock()),
            waiting=nullcontext,
        )
        asking = (deciding.asked(cast("Call", call), lambda memory, now: "then") for _ in range(10))
        return await asyncio.gather(*asking)

    assert asyncio.run(story()) == ["then"] * 10
    assert most == 1
