"""Signing in and out, and who one is."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

from fairpool.wire.model import Body, Line, View

CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_VERIFIER: Final = r"^[A-Za-z0-9._~-]{43,128}$"

Challenge = Annotated[str, StringConstraints(pattern=f"^{CHALLENGE.pattern}$")]
"""The SHA-256 of a verifier, in base64url without padding (RFC 7636, S256)."""

Verifier = Annotated[str, StringConstraints(pattern=_VERIFIER)]
"""What only the program knows that began the sign-in: 43 to 128 of the letters, digits and ``. _ ~ -``."""


def _ascii(text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        raise ValueError("holds characters that no sealed text has; possible: what this server gave out")
    return text


Sealed = Annotated[str, StringConstraints(min_length=1, max_length=16_384), AfterValidator(_ascii)]
"""What only the server can read."""


class SignInOptions(View):
    """How people sign in at this server. All is empty or false where no provider is set up: then by token only.

    provider: its issuer. browser_url: where a browser begins, "" for not at all. device: whether the provider may be
    used from a terminal without a browser.
    """

    provider: str = ""
    browser_url: str = ""
    device: bool = False
    workspace: str = ""


class DeviceBegin(Body):
    """Begin to sign in from a terminal. challenge: to the verifier that the code will be exchanged with."""

    challenge: Challenge


class DeviceView(View):
    """What to show. handle: what to poll with, every `interval_s` seconds, for at most `expires_in_s`."""

    verification_uri: str
    verification_uri_complete: str = ""
    user_code: str
    handle: str
    expires_in_s: int
    interval_s: int


class DevicePoll(Body):
    """Whether somebody has entered the code by now."""

    handle: Sealed


class DevicePolled(View):
    """`pending`: nobody yet; `slower`: nobody yet, and ask every 5 seconds less often; `done`: exchange the code."""

    status: Literal["pending", "slower", "done"]
    code: str = ""


class SignInExchange(Body):
    """Exchange a one-time code for a token. name: what the token is called, such as the name of the machine."""

    code: Sealed
    verifier: Verifier
    name: Line = Field(default="")


class SignedIn(View):
    """The token of a sign-in; it is shown this once."""

    token: str
    token_name: str = ""
    subject: str
    role: str
    teams: list[str] = Field(default_factory=list)
    workspace: str
    expires_at: datetime | None = None


class WhoAmI(View):
    """Who calls. subject: "" for the installation's own token, which may do everything."""

    subject: str = ""
    role: str
    teams: list[str] = Field(default_factory=list)
    workspace: str
    token_name: str = ""
    expires_at: datetime | None = None
