"""The ways of signing in, from the first call to the one-time code that a command line exchanges for a token.

    browser     begin -> the provider -> land -> code
    device      begin_device -> (poll_device)* -> code
    either      exchange: code and verifier -> who it is

Nothing is remembered in between: what has to come back is sealed. A code counts for the one who began the sign-in
only, by a challenge whose verifier never left that machine (PKCE, RFC 7636); that it counts once, the database holds.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from fairpool.app.signin import Identity, SignInRules, identify
from fairpool.server.oidc.errors import SignInFailed
from fairpool.server.oidc.provider import DeviceBegun, Provider
from fairpool.server.oidc.sealing import Sealer
from fairpool.server.oidc.settings import SIGN_IN_S, OidcSettings

CODE_S: Final = 60
"""How long a one-time code counts: a program on the same machine fetches it at once."""

_STATE, _DEVICE, _CODE = "state", "device", "code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """Where the browser goes now, and the cookie by which it is known when it comes back."""

    url: str
    cookie: str
    binding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """A browser that came back from the provider: to whom it goes on. port: on its own machine. state: theirs."""

    port: int
    state: str
    challenge: str
    nonce: str
    verifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """What a poll of the device flow found: who has entered the code, with the challenge of whoever waits for it; None
    for nobody yet. slower: ask less often from now on."""

    identity: Identity | None = None
    challenge: str = ""
    slower: bool = False


class SignIns:
    """Sign-ins at one provider.

    secret: what all servers of the installation share. now_s: the time of day, in seconds since 1970.
    """

    def __init__(self, settings: OidcSettings, provider: Provider, *, secret: str, now_s: Callable[[], float]) -> None:
        self.settings = settings
        self.provider = provider
        self._now_s = now_s
        self._sealer = Sealer(secret, now_s)

    @property
    def rules(self) -> SignInRules:
        """How claims are read."""
        return self.settings.rules

    # ---- browser ----------------------------------------------------------------------------------------------------

    async def begin(self, *, port: int, state: str, challenge: str) -> Begun:
        """Send a browser to the provider. Raises ProviderDown."""
        nonce, verifier, binding = (secrets.token_urlsafe(32) for _ in range(3))
        sealed = self._sealer.seal(
            _STATE,
            {
                "port": port,
                "state": state,
                "challenge": challenge,
                "nonce": nonce,
                "verifier": verifier,
                "binding": binding,
            },
        )
        url = await self.provider.authorization_url(state=sealed, nonce=nonce, verifier=verifier)
        return Begun(url=url, cookie=cookie_name(sealed), binding=binding)

    def came(self, sealed: str, cookies: Mapping[str, str]) -> Came:
        """Who comes back. Raises SignInFailed unless it is the browser that went, and in time."""
        found = self._sealer.open(_STATE, sealed, ttl_s=SIGN_IN_S, what="the state of this sign-in")
        if not hmac.compare_digest(cookies.get(cookie_name(sealed), "").encode(), str(found["binding"]).encode()):
            raise SignInFailed("this sign-in was begun in another browser")
        port = found["port"]
        assert isinstance(port, int), "sealed by us"
        said = {name: str(found[name]) for name in ("state", "challenge", "nonce", "verifier")}
        return Came(port=port, **said)

    async def land(self, came: Came, *, code: str, issuer: str) -> Identity:
        """Who signed in at the provider. Raises ProviderDown, SignInFailed, NotAllowed."""
        known = await self.provider.metadata()
        if issuer != known.issuer and (issuer or known.names_itself):
            raise SignInFailed(f"the answer comes from another provider: {issuer!r}")  # RFC 9207
        claims = await self.provider.redeem(code, verifier=came.verifier, nonce=came.nonce)
        return identify(claims, self.rules)

    # ---- device -----------------------------------------------------------------------------------------------------

    async def begin_device(self, challenge: str) -> tuple[DeviceBegun, str]:
        """What to show in the terminal, and the handle to poll with. Raises ProviderDown, SignInFailed."""
        begun = await self.provider.begin_device()
        until = self._now_s() + begun.expires_in_s
        sealed = {"device_code": begun.device_code, "challenge": challenge, "until": until}
        return begun, self._sealer.seal(_DEVICE, sealed)

    async def poll_device(self, handle: str) -> Polled:
        """Whether somebody has entered the code. Raises ProviderDown, SignInFailed, NotAllowed."""
        found = self._sealer.open(_DEVICE, handle, ttl_s=3600, what="the handle of this sign-in")
        until = found["until"]
        assert isinstance(until, int | float), "sealed by us"
        if until < self._now_s():
            raise SignInFailed("the time to sign in is over", code="expired_token")
        try:
            claims = await self.provider.poll_device(str(found["device_code"]))
        except SignInFailed as error:
            if error.code not in ("authorization_pending", "slow_down"):
                raise
            return Polled(slower=error.code == "slow_down")
        return Polled(identity=identify(claims, self.rules), challenge=str(found["challenge"]))

    # ---- either -----------------------------------------------------------------------------------------------------

    def code_for(self, identity: Identity, challenge: str) -> str:
        """A one-time code: whoever knows the challenge's verifier may exchange it for a token."""
        return self._sealer.seal(
            _CODE, {"identity": asdict(identity), "challenge": challenge, "once": secrets.token_urlsafe(16)}
        )

    def exchange(self, code: str, verifier: str) -> tuple[Identity, str]:
        """Who the code speaks of, and what has to be used up for it. Raises SignInFailed."""
        found = self._sealer.open(_CODE, code, ttl_s=CODE_S, what="the code")
        if not hmac.compare_digest(challenge_of(verifier), str(found["challenge"])):
            raise SignInFailed("the code was made for somebody else: another program began this sign-in")
        identity = found["identity"]
        assert isinstance(identity, dict), "sealed by us"
        once = hashlib.sha256(str(found["once"]).encode()).hexdigest()
        return Identity(**{**identity, "groups": tuple(identity["groups"])}), once


def cookie_name(sealed: str) -> str:
    """The name of the cookie of one sign-in, so that two in the same browser do not disturb each other."""
    return "fairpool_sign_in_" + hashlib.sha256(sealed.encode()).hexdigest()[:16]


def challenge_of(verifier: str) -> str:
    """The challenge to a verifier (S256)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
