"""Signing in at a server, in a browser or with a code on another device, up to the token.

The verifier that the one-time code is exchanged with never leaves this process, so that nobody else can use the code.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import socket
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

from fairpool.client.api import Client
from fairpool.client.errors import ClientError
from fairpool.client.loopback import Answer, listening
from fairpool.wire import sign_in_page
from fairpool.wire.problems import Exit
from fairpool.wire.reading import printable
from fairpool.wire.signin import DeviceBegin, DevicePoll, DeviceView, SignedIn, SignInExchange, SignInOptions

BROWSER_S: Final = 600
"""How long somebody may take in the browser; the server's own patience."""

SLOWER_S: Final = 5
"""By how much to ask less often when the provider wants that (RFC 8628, section 3.5)."""


class NotSignedIn(ClientError):
    """The sign-in did not come about. The message says why."""

    exit_code = Exit.NOT_ALLOWED


def in_browser(
    client: Client, options: SignInOptions, *, name: str, show: Callable[[str], None], wait_s: float = BROWSER_S
) -> SignedIn:
    """Sign in through a browser on this machine. show: opens the address, or shows it. Raises NotSignedIn, Problem."""
    verifier = secrets.token_urlsafe(48)
    done: list[SignedIn] = []

    def finish(answer: Answer) -> str:
        if not answer.code:
            raise NotSignedIn(printable(answer.description or answer.error or "no code came"), hint=_AGAIN)
        # Only now: before the token is here, nobody is signed in, and the page must not say so.
        done.append(_exchanged(client, answer.code, verifier, name))
        return sign_in_page.signed_in(_facts(done[0], client.url))

    with listening(finish) as loopback:
        asked = {"port": loopback.port, "state": loopback.state, "challenge": challenge_of(verifier)}
        show(f"{options.browser_url}?{urlencode(asked)}")
        if not loopback.wait(wait_s):
            raise NotSignedIn(f"nobody signed in within {wait_s:g} seconds", hint=_AGAIN)
    return done[0]


def _facts(done: SignedIn, server: str) -> dict[str, str]:
    return {
        "Server": server,
        "You": done.subject,
        "Role": done.role,
        "Teams": ", ".join(done.teams) or "none",
        "Workspace": done.workspace,
    }


def on_another_device(
    client: Client,
    *,
    name: str,
    show: Callable[[DeviceView], None],
    sleep: Callable[[float], None] = time.sleep,
    now_s: Callable[[], float] = time.monotonic,
) -> SignedIn:
    """Sign in with a code that is entered anywhere. show: tells address and code. Raises NotSignedIn, Problem."""
    verifier = secrets.token_urlsafe(48)
    begun = client.begin_device(DeviceBegin(challenge=challenge_of(verifier)))
    show(begun)
    interval_s, over_at = begun.interval_s, now_s() + begun.expires_in_s
    while now_s() < over_at:
        sleep(interval_s)
        polled = client.poll_device(DevicePoll(handle=begun.handle))
        if polled.status == "done":
            return _exchanged(client, polled.code, verifier, name)
        interval_s += SLOWER_S if polled.status == "slower" else 0
    raise NotSignedIn("the code was not entered in time", hint=_AGAIN)


_AGAIN: Final = "fairpool login begins again"


def machine_name() -> str:
    """What a token of this machine is called: the host's name, as far as names go."""
    letters = "".join(char if char.isascii() and char.isalnum() else "-" for char in socket.gethostname())
    return letters[:40].strip("-") or "computer"


def challenge_of(verifier: str) -> str:
    """The challenge to a verifier (RFC 7636, S256)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _exchanged(client: Client, code: str, verifier: str, name: str) -> SignedIn:
    return client.exchange_sign_in(SignInExchange(code=code, verifier=verifier, name=name))
