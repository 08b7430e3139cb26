"""A server works its models out by itself, so that no caller has to wait for it."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from fairpool.server import warming
from fairpool.server.process import Process
from fairpool.server.warming import warm
from fairpool.wire.model import Body, View


def test_every_model_that_is_loaded_is_worked_out_however_it_is_derived() -> None:
    class Sent(Body):
        name: str

    class Told(View):
        name: str

    class More(Told):
        also: list[Told]

    assert not any(model.__pydantic_complete__ for model in (Sent, Told, More))
    warm()
    assert all(model.__pydantic_complete__ for model in (Sent, Told, More))


def test_a_server_does_so_once_it_takes_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    services = MagicMock(forwarding=MagicMock(close=_nothing), metrics=SimpleNamespace(under_way=0))
    server = Process(MagicMock(), services, on_ready=lambda: told.append("ready"))

    def warmed() -> None:
        told.append("warm")
        server.should_exit = True

    monkeypatch.setattr(warming, "warm", warmed)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server.run_on(listening)
    assert told == ["ready", "warm"]


async def _nothing() -> None:
    """Closes what was never open."""
