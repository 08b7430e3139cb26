"""A server that people sign in at with a provider, both as processes, and a person in front of a browser."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest

from fairpool.client.signing_in import challenge_of
from tests.integration.serving import Caller, begin, end
from tests.oidc.processes import CLIENT_ID, CLIENT_SECRET, Browser, ObedientProvider

LISTENING = 48_123
"""The port on which no test listens: a browser is stopped before it goes there."""


@dataclass(frozen=True)
class Installation:
    """The server, called with its own token, its data folder, and the provider."""

    owner: Caller
    folder: Path
    provider: ObedientProvider

    def anybody(self, token: str = "") -> Caller:
        """Calls with that token, or with none that counts."""
        return Caller(self.owner.url, token)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def said_to_server(issuer: str, port: int, **more: str) -> dict[str, str]:
    """The environment of a server on that port that signs people in at that issuer."""
    said = {
        "issuer": issuer,
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "public_url": f"http://127.0.0.1:{port}",
        **more,
    }
    return {f"FAIRPOOL_OIDC_{key.upper()}": value for key, value in said.items()}


@contextmanager
def installed(
    directory: Path, provider: ObedientProvider, *, is_up: bool = True, **more: str
) -> Iterator[Installation]:
    """The server of that folder with sign-in at the provider, for the block. more: further settings of sign-in."""
    port = free_port()
    if is_up:
        provider.client(comes_back_to(port))
    with signing_people_in(directory, provider.url, port, **more) as owner:
        yield Installation(owner, directory, provider)


def comes_back_to(port: int) -> str:
    """The address of a server on that port that its provider has to know."""
    return f"http://127.0.0.1:{port}/login/callback"


@contextmanager
def signing_people_in(directory: Path, issuer: str, port: int, **more: str) -> Iterator[Caller]:
    """The server of that folder on that port, with sign-in at that issuer, for the block. more: further settings."""
    directory.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRPOOL_CONFIG", str(directory / "no-config.toml"))
        for name, value in said_to_server(issuer, port, **more).items():
            patch.setenv(name, value)
        owner = begin(directory, "--port", str(port))
    try:
        yield owner
    finally:
        end(directory)


class Person:
    """Somebody with a browser and a program that waits for it; `step` by `step`, so that tests can come in between."""

    def __init__(self, installation: Installation) -> None:
        self.verifier = secrets.token_urlsafe(48)
        self.state = secrets.token_urlsafe(16)
        self.browser = Browser()
        self.browser.http.follow_redirects = False
        self._at = installation

    def begin(self, **changed: object) -> httpx2.Response:
        """Open the address that the program shows."""
        asked = {"port": LISTENING, "state": self.state, "challenge": challenge_of(self.verifier)}
        asked |= {key: value for key, value in changed.items() if value is not None}
        left_out = {key for key, value in changed.items() if value is None}
        query = urlencode({key: value for key, value in asked.items() if key not in left_out})
        return self.browser.open(f"{self._at.owner.url}/api/v1/sign-in/begin?{query}")

    def at_provider(self, user: str, *, answer: str = "yes") -> str:
        """Sign in at the provider; the address that it sends the browser back to."""
        begun = self.begin()
        assert begun.status_code == 302, begun.text
        page = self.browser.open(begun.headers["location"])
        sent = self.browser.send(page, user=user, answer=answer)
        assert sent.status_code == 302, sent.text
        return str(sent.headers["location"])

    def comes_back(self, address: str) -> dict[str, str]:
        """Follow it; what the browser brings to the waiting program."""
        answer = self.browser.open(address)
        assert answer.status_code == 302, answer.text
        return self.brought(answer)

    def brought(self, answer: httpx2.Response) -> dict[str, str]:
        """What a redirect to the waiting program carries."""
        went = urlsplit(answer.headers["location"])
        assert (went.scheme, went.netloc, went.path) == ("http", f"127.0.0.1:{LISTENING}", "/")
        said = {name: values[0] for name, values in parse_qs(went.query).items()}
        assert said["state"] == self.state
        return said

    def exchange(self, code: str, *, verifier: str = "", name: str = "laptop") -> Any:
        """The server's answer to the exchange of a code."""
        body: Mapping[str, str] = {"code": code, "verifier": verifier or self.verifier, "name": name}
        return self._at.anybody()("POST", "/sign-in/exchange", body)

    def close(self) -> None:
        """Close the browser."""
        self.browser.close()


def signed_in(installation: Installation, user: str, *, name: str = "laptop") -> dict[str, Any]:
    """Sign in the whole way; what the exchange answers."""
    person = Person(installation)
    try:
        brought = person.comes_back(person.at_provider(user))
        answer = person.exchange(brought["code"], name=name)
    finally:
        person.close()
    assert answer.status == 200, answer.json
    found: dict[str, Any] = answer.json
    return found
