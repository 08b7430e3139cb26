"""Which webhooks are declared is read where one was changed, and not after each commit: a busy server commits a
thousand times a second."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import Engine, event

from fairpool.app.records import Kind
from fairpool.app.use_cases import pools, webhooks
from fairpool.app.use_cases.webhooks import WebhookChange
from fairpool.bootstrap.settings import Settings
from fairpool.bootstrap.wiring import Runtime, build
from fairpool.core.amounts import vector
from fairpool.core.ids import PoolId
from fairpool.core.pools import Pool
from fairpool.server.webhooks import telling
from tests.waiting import wait_until

COMMITS = 30


class Reads:
    """How often the thread that tells webhooks asks a database which there are."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, connection: object, cursor: object, statement: str, parameters: Any, *_: object) -> None:
        given = parameters.values() if isinstance(parameters, dict) else parameters
        named = statement.startswith("SELECT") and "FROM documents" in statement and Kind.WEBHOOK.value in given
        if named and threading.current_thread() is not threading.main_thread():
            self.count += 1


@pytest.fixture
def reads() -> Iterator[Reads]:
    made = Reads()
    event.listen(Engine, "before_cursor_execute", made.note)
    yield made
    event.remove(Engine, "before_cursor_execute", made.note)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """A server of this process that looks for webhooks only where it is told to."""
    monkeypatch.setattr(telling, "LOOK_S", 3600.0)
    settings = Settings(
        data_dir=tmp_path,
        database_url=f"sqlite:///{tmp_path / 'fairpool.db'}",
        vault_keys=(Fernet.generate_key().decode(),),
    )
    with build(settings, "token", address="http://127.0.0.1:1") as runtime:
        yield runtime


def test_webhooks_are_read_where_one_was_changed_and_not_after_each_commit(reads: Reads, server: Runtime) -> None:
    loop, sealer = server.services.workspaces.default.loop, server.services.sealer
    said = WebhookChange(url="https://hooks.example.org/chat", events=("request.granted",))
    loop.do("alice", lambda tx: webhooks.create(tx, "chat", said, secret="whsec_a", sealer=sealer)).result(30)
    wait_until(lambda: reads.count, what="the webhook to be read")
    for number in range(COMMITS):
        pool = Pool(id=PoolId(""), name=f"p{number}", capacity=vector({"gpu": 1}))
        loop.do("alice", lambda tx, pool=pool: pools.create(tx, pool)).result(30)  # type: ignore[misc]
    before = reads.count
    loop.do("alice", lambda tx: webhooks.update(tx, "chat", WebhookChange(enabled=False))).result(30)
    wait_until(lambda: reads.count > before, what="the change to be read")
    assert reads.count <= 1 + 2  # where it began to lead, and for each of two changes
