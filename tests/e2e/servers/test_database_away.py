"""The database goes away and comes back: callers are told to ask again, clients do, running work goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.servers.installation import ASK, Installation, add_pool
from tests.e2e.servers.load import hold_against, load
from tests.postgres import Cluster, running
from tests.waiting import wait_until


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL that this test may stop."""
    with running() as made:
        yield made


@pytest.mark.timeout(300)
def test_clients_wait_for_the_database_and_everything_goes_on_when_it_is_back(cluster: Cluster, tmp_path: Path) -> None:
    installation = Installation(tmp_path, cluster.new_database())
    try:
        leader = installation.start("one")
        add_pool(leader, gpus=6)
        installation.start("two")
        held = leader.call.ok("POST", "/requests", {**ASK, "preemptible": False, "lease_s": 15})
        with load(installation) as ledger:
            wait_until(ledger.has_got_to(20), what="clients to get on")
            cluster.control("stop")
            for server in installation.servers.values():
                refused = wait_until(
                    lambda server=server: (  # type: ignore[misc]
                        answer if (answer := server.call("POST", "/requests", ASK)).status == 503 else None
                    ),
                    what="a refusal",
                )
                assert refused is not None
                assert refused.json["type"] in ("unavailable", "not-leading")
                assert int(refused.headers["retry-after"]) >= 1
            cluster.control("start")
            wait_until(ledger.has_got_to(ledger.answers + 20), what="clients to get on", timeout_s=60)
        assert ledger.failures == []
        now = installation.leader()
        hold_against(now, ledger)
        assert now.call.ok("GET", f"/requests/{held['id']}")["status"] == "allocated", "running work goes on"
    finally:
        installation.close()
