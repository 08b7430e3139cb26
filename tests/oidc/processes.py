"""Identity providers as processes, started for a test and ended after it, and the browser that signs in there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2

ROOT = Path(__file__).parents[2]
CLIENT_ID = "fairpool"
CLIENT_SECRET = "a secret between the server and the provider"


class ObedientProvider:
    """The provider that does as it is told."""

    def __init__(self, url: str, stop: Callable[[], None]) -> None:
        self.url = url
        self.stop = stop
        self._http = httpx2.Client(base_url=url, trust_env=False)

    def user(self, login: str, **claims: Any) -> None:
        """Somebody who may sign in, with what the provider says of them."""
        self._http.put(f"/_test/users/{login}", json=claims).raise_for_status()

    def client(self, redirect_uri: str, name: str = CLIENT_ID, secret: str = CLIENT_SECRET) -> None:
        """An application that may sign people in."""
        said = {"secret": secret, "redirect_uris": [redirect_uri]}
        self._http.put(f"/_test/clients/{name}", json=said).raise_for_status()

    def wrong(self, **what: Any) -> None:
        """From now on this is wrong, and nothing else."""
        self._http.put("/_test/wrong", json=what).raise_for_status()

    def rotate(self) -> None:
        """It has another key, and no longer the old one."""
        self._http.post("/_test/rotate").raise_for_status()

    def expire(self) -> None:
        """Every code that it gave out is over."""
        self._http.post("/_test/expire").raise_for_status()

    def calls(self) -> list[str]:
        """The paths that were asked for, in order."""
        found: list[str] = self._http.get("/_test/calls").json()
        return found

    def enter(self, user_code: str, user: str, *, answer: str = "yes") -> None:
        """Somebody enters the code that a terminal shows."""
        said = {"user_code": user_code, "user": user, "answer": answer}
        self._http.post("/device", data=said).raise_for_status()

    def close(self) -> None:
        """Close the connections to it."""
        self._http.close()


@contextmanager
def obedient_provider(port: int = 0) -> Iterator[ObedientProvider]:
    """The provider of `tests.oidc.provider`, in a process of its own."""
    with started([sys.executable, "-m", "tests.oidc.provider", str(port)]) as (url, stop):
        provider = ObedientProvider(url, stop)
        try:
            yield provider
        finally:
            provider.close()


@contextmanager
def started(command: list[str], **environment: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """A process that prints its address once it listens, for the block; that address, and how to end it earlier."""
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment or None
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://"), f"{command} did not start"
        yield url, lambda: _end(process)
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@dataclass
class Form(HTMLParser):
    """The first form of a page: where it goes, and what is in it already."""

    action: str = ""
    fields: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the form's address and its fields."""
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = self.action or found.get("action", "")
        elif tag == "input" and found.get("name"):
            self.fields[found["name"]] = found.get("value", "")


class Browser:
    """What a person does in front of a browser: follow, fill in, send."""

    def __init__(self) -> None:
        self.http = httpx2.Client(trust_env=False, follow_redirects=True, timeout=30)

    def open(self, url: str) -> httpx2.Response:
        """Go there."""
        return self.http.get(url)

    def send(self, page: httpx2.Response, **filled: str) -> httpx2.Response:
        """Fill in the page's form and send it."""
        form = Form()
        form.feed(page.text)
        return self.http.post(urljoin(str(page.url), form.action), data={**form.fields, **filled})

    def close(self) -> None:
        """Forget everything."""
        self.http.close()


def text_of(page: httpx2.Response) -> str:
    """What a page says, without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.text)).strip()
