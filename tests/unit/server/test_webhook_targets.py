"""Webhooks call the world outside, and nothing behind the server's own walls, by whatever name."""

from __future__ import annotations

import asyncio
import socket

import pytest

from fairpool.core.errors import InvalidInput
from fairpool.server.webhooks.messages import Message, signature
from fairpool.server.webhooks.targets import GuardedResolver, NotAllowedThere, check_url, is_private
from fairpool.server.webhooks.told import Retries

PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "2002:7f00:1::",
    "2002:c0a8:101::1",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b:1::7f00:1",
    "4000::1",
]
PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "64:ff9b::808:808", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("host", PRIVATE)
def test_an_address_that_not_everybody_can_reach_is_refused(host: str) -> None:
    assert is_private(host)
    shown = f"[{host.partition('%')[0]}]" if ":" in host else host
    with pytest.raises(InvalidInput, match="only this machine or its network"):
        check_url(f"http://{shown}/x", allow_private=False)
    check_url(f"http://{shown}/x", allow_private=True)


@pytest.mark.parametrize("host", PUBLIC)
def test_an_address_that_everybody_can_reach_is_allowed(host: str) -> None:
    assert not is_private(host)
    assert check_url(f"https://[{host}]:8443/x" if ":" in host else f"https://{host}/x", allow_private=False)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "//example.org/x",
        "ftp://example.org/x",
        "file:///etc/passwd",
        "gopher://example.org",
        "http://",
        "http:///x",
        "http://user@example.org/",
        "http://:password@example.org/",
        "http://example.org:0/",
        "http://example.org:99999/",
        "http://example.org/#part",
        "http://exam ple.org/",
        "http://example.org/\r\nX-Injected: 1",
        "http://[::1",
        "http://localhost/",
        "http://api.localhost/",
        "https://example.org/" + "x" * 2000,
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://\u2460\u2461\u2466.0.0.1/",
        "http://127\u30020\u30020\u30021/",
        "http://\uff4cocalhost/",
        "http://%31%32%37.0.0.1/",
        "http://example.org\\@127.0.0.1/",
    ],
)
def test_what_is_no_address_of_a_web_server_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_url(url, allow_private=False)
    assert caught.value.value == ""


def resolved(addresses: list[str], *, allow_private: bool, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    async def story() -> list[str]:
        async def answer(*_: object, **__: object) -> list[object]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", answer, raising=False)
        found = await GuardedResolver(allow_private=allow_private).resolve("example.org", 80)
        return [entry["host"] for entry in found]

    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(story())


class _Loop(asyncio.SelectorEventLoop):
    """A loop of its own, whose lookups a test answers."""


def test_a_name_is_judged_by_the_addresses_that_are_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = ["10.0.0.1", "8.8.8.8", "127.0.0.1"]
    assert resolved(mixed, allow_private=False, monkeypatch=monkeypatch) == ["8.8.8.8"]
    assert resolved(mixed, allow_private=True, monkeypatch=monkeypatch) == mixed
    with pytest.raises(NotAllowedThere):
        resolved(["10.0.0.1"], allow_private=False, monkeypatch=monkeypatch)


def test_a_signature_is_that_of_the_example_in_the_specification() -> None:
    message = Message(id="msg_p5jXN8AQM9LWM0D4loKWxJek", body=b'{"test": 2432232314}')
    signed = signature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", message, 1614265330)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_tries_come_further_and_further_apart_and_are_spread() -> None:
    retries = Retries()
    assert all(0.5 <= retries.pause_s(1) <= 1.5 for _ in range(50))
    assert all(150 <= retries.pause_s(number) <= 450 for number in range(10, 60))
    assert len({retries.pause_s(5) for _ in range(10)}) == 10
    assert 3 * 3600 < sum(min(300, 2 ** (number - 1)) for number in range(1, retries.tries)) < 5 * 3600
