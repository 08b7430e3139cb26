"""Readiness names each check, says no with 503, and does not hang on a database that hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from starlette.types import ASGIApp

from fairpool.core.ids import Instant
from fairpool.server.application import create_app
from fairpool.server.handlers import operating
from fairpool.server.identities import Identities, Tokens
from fairpool.server.services import Services
from fairpool.server.watching import Watch
from fairpool.server.workspaces import Workspace, Workspaces
from tests.unit.server.asgi import TOKEN, ask


def serving(checks: Mapping[str, Callable[[], str]], watch: Watch | None = None) -> ASGIApp:
    unused: Any = None
    services = Services(
        workspaces=Workspaces(Workspace(loop=unused, reader=unused, watch=watch or Watch())),
        clock=unused,
        identities=Identities(Tokens([TOKEN])),
        hosts=frozenset(),
        body_limit_bytes=100,
        has_work=lambda: False,
        started_at=Instant(0),
        version="0",
        database="none",
        checks=checks,
    )
    return create_app(services, operating.ENDPOINTS)


def told(app: ASGIApp) -> tuple[int, dict[str, str]]:
    answer = ask(app, "GET", "/readyz", headers={"Authorization": ""})
    return answer.status, {check["name"]: check["detail"] for check in answer.json["checks"] if not check["holds"]}


def test_a_server_is_ready_when_every_check_holds() -> None:
    assert told(serving({"database": str, "scheduler": str})) == (200, {})


def test_a_server_that_is_not_ready_says_which_check_fails_and_why() -> None:
    assert told(serving({"database": lambda: "it does not answer", "scheduler": str})) == (
        503,
        {"database": "it does not answer"},
    )


def test_a_server_that_stops_is_not_ready() -> None:
    watch = Watch()
    watch.close()
    assert told(serving({}, watch)) == (503, {"serving": "the server is stopping"})


def test_a_check_that_hangs_fails_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operating, "CHECK_S", 0.05)
    released = threading.Event()

    def hang() -> str:
        released.wait(0.3)
        return ""

    status, broken = told(serving({"database": hang}))
    assert (status, broken) == (503, {"database": "no answer within 0.05 s"})
    released.set()
