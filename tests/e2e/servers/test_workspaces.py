"""Workspaces over several servers and one PostgreSQL: what one server makes the others serve, whoever dies."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from fairpool.app.leading import LEADER_TTL_S
from tests.e2e.servers.installation import ASK, Installation, Server
from tests.integration.serving import Caller
from tests.waiting import wait_until

HEADERS = {"Fairpool-Workspace": "research"}


@pytest.fixture
def database_url(postgres_url: str) -> str:
    return postgres_url


@pytest.fixture
def research(leader: Server, follower: Server) -> Caller:
    """An admin of a second workspace, calling the server that follows in `default`."""
    leader.call.ok("POST", "/workspaces", {"name": "research"})
    # At once, at the other server, which has not been told of it yet.
    follower.call.ok("POST", "/users", {"name": "alice", "role": "admin"}, headers=HEADERS)
    token = follower.call.ok("POST", "/tokens", {"name": "t", "owner": "user:alice"}, headers=HEADERS)["token"]
    caller = Caller(follower.url, token)
    caller.ok("POST", "/pools", {"name": "p", "capacity": {"gpu": 2}})
    caller.ok("POST", "/policies", {"pool": "p", "subject": "team:red"})
    return caller


def leads(server: Server, workspace: str = "research") -> bool:
    info: Any = server.call.ok("GET", "/server", headers={"Fairpool-Workspace": workspace})
    return bool(info["leader"])


def gone(server: Server) -> bool:
    return server.call("GET", "/workspaces/research").status == 404


def led_by(*servers: Server) -> Server:
    found = wait_until(lambda: next((one for one in servers if leads(one)), None), what="a leader of research")
    assert found is not None
    return found


def test_what_one_server_makes_the_other_serves_at_once(leader: Server, follower: Server, research: Caller) -> None:
    assert research.ok("POST", "/requests", ASK)["status"] == "allocated"
    for server in (leader, follower):
        assert Caller(server.url, research.token).ok("GET", "/whoami")["workspace"] == "research"
        assert [pool["name"] for pool in Caller(server.url, research.token).ok("GET", "/pools")["items"]] == ["p"]
        assert server.call.ok("GET", "/pools")["items"] == []


def test_another_server_takes_a_workspace_over_when_its_leader_is_killed(
    installation: Installation, leader: Server, follower: Server, research: Caller
) -> None:
    made = research.ok("POST", "/requests", ASK)
    first = led_by(leader, follower)
    second = installation.other(first)
    first.kill()
    wait_until(lambda: leads(second), what="the other to lead research", timeout_s=LEADER_TTL_S + 2)
    caller = Caller(second.url, research.token)
    assert caller.ok("GET", f"/requests/{made['id']}")["status"] == "allocated"
    assert caller.ok("POST", "/requests", ASK)["status"] == "allocated"
    wait_until(lambda: leads(second, "default"), what="the other to lead default")


def test_servers_that_are_replaced_one_after_the_other_serve_every_workspace(
    installation: Installation, leader: Server, follower: Server, research: Caller
) -> None:
    led_by(leader, follower)
    for name in ("one", "two"):
        rest = installation.other(installation.servers[name])
        installation.servers[name].stop()
        wait_until(lambda rest=rest: leads(rest), what="the other to lead", timeout_s=LEADER_TTL_S)  # type: ignore[misc]
        assert Caller(rest.url, research.token)("POST", "/requests", ASK).status == 201
        installation.start(name)
        assert Caller(installation.servers[name].url, research.token).ok("GET", "/whoami")["workspace"] == "research"


def test_a_deleted_workspace_is_gone_on_every_server(leader: Server, follower: Server, research: Caller) -> None:
    request = research.ok("POST", "/requests", ASK)
    refused = follower.call("DELETE", "/workspaces/research")
    assert (refused.status, refused.json["numbers"]) == (409, {"queued": 0, "active": 1, "runs": 0})
    research.ok("POST", f"/requests/{request['id']}/release")
    follower.call.ok("DELETE", "/workspaces/research")
    wait_until(lambda: gone(leader), what="the workspace to go")
    for server in (leader, follower):
        # One that has not heard of it yet finds nobody who decides there, and says that it is worth asking again.
        wait_until(
            lambda server=server: server.call("GET", "/pools", headers=HEADERS).status == 404,  # type: ignore[misc]
            what="its pools to be unknown",
        )
        wait_until(
            lambda server=server: Caller(server.url, research.token)("GET", "/whoami").status == 401,  # type: ignore[misc]
            what="its token to be unknown",
        )
    leader.call.ok("POST", "/workspaces", {"name": "research"})
    assert follower.call.ok("GET", "/pools", headers=HEADERS)["items"] == []
    assert follower.call.ok("GET", "/users", headers=HEADERS)["items"] == []


def test_a_server_that_is_paused_keeps_nothing_and_serves_what_came_after(
    installation: Installation, leader: Server, follower: Server, research: Caller
) -> None:
    """The one that is paused is not told that the workspace went, and that another has its name."""
    wait_until(lambda: leads(leader) or leads(follower), what="a leader of research")
    follower.send(signal.SIGSTOP)
    try:
        leader.call.ok("DELETE", "/workspaces/research")
        wait_until(lambda: gone(leader), what="the workspace to go", timeout_s=30)
        leader.call.ok("POST", "/workspaces", {"name": "research"})
        leader.call.ok("POST", "/users", {"name": "bob"}, headers=HEADERS)
    finally:
        follower.send(signal.SIGCONT)

    def users() -> list[str]:
        answer = follower.call("GET", "/users", headers=HEADERS)
        assert answer.status in (200, 503), answer.body
        return [user["name"] for user in answer.json["items"]] if answer.status == 200 else []

    wait_until(lambda: users() == ["bob"], what="the one that was paused to serve the new workspace", timeout_s=30)
    late = Caller(follower.url, research.token)
    wait_until(lambda: late("GET", "/whoami").status == 401, what="a token of the old one to count no more")


def test_whoever_leads_next_goes_on_with_a_deletion(
    installation: Installation, leader: Server, follower: Server, research: Caller
) -> None:
    """The leader of `default` is killed while it waits for the workspace's other server, which is paused."""
    first = installation.leader()
    second = installation.other(first)
    third = installation.start("three")
    second.send(signal.SIGSTOP)
    try:
        first.call.ok("DELETE", "/workspaces/research")
        first.kill()
        wait_until(lambda: gone(third), what="the workspace to go", timeout_s=30)
    finally:
        second.send(signal.SIGCONT)
