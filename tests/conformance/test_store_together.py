"""A store that several use at once."""

from __future__ import annotations

import threading

from fairpool.app.records import RequestQuery
from fairpool.core.requests import Status
from tests.conformance.store_samples import Trial, change, request


def test_readers_see_whole_commits_while_one_writes(on: Trial) -> None:
    wrong: list[object] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            stored = on.store.load()
            if len(stored.live) % 5 or stored.history_seq != len(stored.live):
                wrong.append(stored)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for batch in range(40):
        names = [f"r{batch}-{number}" for number in range(5)]
        on.commit(inserted=tuple(map(request, names)), changes=tuple(map(change, names)))
    over.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert on.store.reader.requests.count(RequestQuery()) == {Status.QUEUED: 200}
