"""What cannot be passed on is refused with what to do about it."""

from __future__ import annotations

import asyncio

import pytest

from fairpool.server.forwarding import Forwarding
from fairpool.server.problems import Refused

HERE = "http://127.0.0.1:8470"


def refusal(leader: str) -> str:
    scope = {"type": "http", "method": "GET", "raw_path": b"/api/v1/pools", "query_string": b"", "headers": []}
    with pytest.raises(Refused) as refused:
        asyncio.run(Forwarding(HERE).forward(scope, b"", workspace="default", leader=leader, wait_s=0))
    assert refused.value.problem.status == 503
    return str(refused.value.problem.detail)


def test_where_nobody_decides_it_is_said() -> None:
    assert refusal("") == "no server decides at the moment"


def test_two_servers_that_say_the_same_address_are_told_what_to_set() -> None:
    """On two machines `http://127.0.0.1:8470` is two servers: each would call itself, and nothing would be decided."""
    told = refusal(HERE)
    assert HERE in told
    assert "FAIRPOOL_ADVERTISE" in told
