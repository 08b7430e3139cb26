"""The provider as this server talks to it: discovery, tokens, keys, devices. The client secret never leaves here."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oauth2.rfc8628 import DEVICE_CODE_GRANT_TYPE
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from fairpool.server.oidc import discovery, id_tokens
from fairpool.server.oidc.discovery import Metadata
from fairpool.server.oidc.errors import ProviderDown, SignInFailed
from fairpool.server.oidc.id_tokens import Expected, UnknownKey
from fairpool.server.oidc.settings import OidcSettings
from fairpool.wire.reading import shown

log = logging.getLogger(__name__)

ANSWER_S: Final = 10.0
"""How long one answer of the provider may take. People wait for it in front of a browser."""

FRESH_S: Final = 3600.0
"""After so long the provider's metadata and keys are read again. A key that we do not know is looked for at once."""

MAX_CALLS: Final = 32
"""Calls to the provider at a time: anybody may begin a sign-in, and nobody should make us flood the provider."""

SLOWER_S: Final = 5
"""By how much `slow_down` asks to slow down (RFC 8628, section 3.5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceBegun:
    """What the provider wants to be shown to somebody who signs in from a terminal."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in_s: int
    interval_s: int


class Busy(ProviderDown):
    """Too many sign-ins are under way."""


class Provider:
    """One provider. Safe to use from one event loop. now_s: the time of day, in seconds since 1970."""

    def __init__(self, settings: OidcSettings, now_s: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._now_s = now_s
        self._metadata: tuple[Metadata, float] | None = None
        self._keys: tuple[KeySet, float] | None = None
        self._room = asyncio.Semaphore(MAX_CALLS)
        self._verify = httpx2.create_ssl_context()  # reading the machine's certificates takes a while

    # ---- what is asked of it ----------------------------------------------------------------------------------------

    async def metadata(self) -> Metadata:
        """What the provider says of itself. Raises ProviderDown."""
        if self._metadata is None or time.monotonic() - self._metadata[1] > FRESH_S:
            document = await self._get(discovery.document_url(self._settings.issuer))
            self._metadata = (discovery.read(document, self._settings.issuer), time.monotonic())
        return self._metadata[0]

    async def authorization_url(self, *, state: str, nonce: str, verifier: str) -> str:
        """Where a browser goes to sign in. Raises ProviderDown."""
        known = await self.metadata()
        async with self._client(known) as client:
            url, _ = client.create_authorization_url(
                known.authorization_endpoint, state=state, nonce=nonce, code_verifier=verifier
            )
        return str(url)

    async def redeem(self, code: str, *, verifier: str, nonce: str) -> dict[str, object]:
        """The claims of whoever the provider gave this code to. Raises ProviderDown, SignInFailed."""
        known = await self.metadata()
        answer = await self._token(
            known, grant_type="authorization_code", code=code, code_verifier=verifier, redirect_uri=self._redirect_uri
        )
        return await self._claims(known, answer, nonce)

    async def begin_device(self) -> DeviceBegun:
        """Begin to sign in from a terminal. Raises ProviderDown, SignInFailed."""
        known = await self.metadata()
        if not known.device_endpoint:
            raise SignInFailed("the provider has no device flow", code="unsupported_grant_type")
        async with self._calling(known) as client:
            answer = await client.post(
                known.device_endpoint,
                data={"client_id": self._settings.client_id, "scope": " ".join(self._settings.scopes)},
                auth=client.client_auth(client.token_endpoint_auth_method),
                headers={"Accept": "application/json"},
            )
        body = _object(answer)
        if answer.status_code != 200:
            raise _refused(str(body.get("error", "")), str(body.get("error_description", "")))
        return _device(body)

    async def poll_device(self, device_code: str) -> dict[str, object]:
        """The claims of whoever has entered the code by now. Raises ProviderDown, and SignInFailed with the code
        ``authorization_pending`` or ``slow_down`` for not yet."""
        known = await self.metadata()
        answer = await self._token(known, grant_type=DEVICE_CODE_GRANT_TYPE, device_code=device_code)
        return await self._claims(known, answer, None)

    def refusal(self, code: str | None, description: str | None) -> SignInFailed:
        """What the provider refused when it sent a browser back."""
        return _refused(code, description)

    # ---- what its answers are worth ---------------------------------------------------------------------------------

    async def _claims(self, known: Metadata, answer: Mapping[str, object], nonce: str | None) -> dict[str, object]:
        id_token, access_token = answer.get("id_token"), answer.get("access_token")
        if not isinstance(id_token, str) or not isinstance(access_token, str):
            raise SignInFailed("the provider answered without an identity token: is 'openid' among the scopes?")
        expected = Expected(
            issuer=known.issuer, client_id=self._settings.client_id, nonce=nonce, access_token=access_token
        )
        try:
            claims = id_tokens.claims_of(id_token, await self._key_set(known), expected, now_s=self._now_s())
        except UnknownKey:
            self._keys = None  # the provider may have changed its keys since we last read them
            claims = id_tokens.claims_of(id_token, await self._key_set(known), expected, now_s=self._now_s())
        rules = self._settings.rules
        wanted = {rules.username_claim.partition(".")[0], rules.groups_claim.partition(".")[0]}
        if known.userinfo_endpoint and not wanted <= claims.keys():
            claims = await self._more(known, access_token, claims)
        return claims

    async def _more(self, known: Metadata, access_token: str, claims: dict[str, object]) -> dict[str, object]:
        """The claims with those that the provider tells only when asked (userinfo)."""
        told = await self._get(known.userinfo_endpoint, headers={"Authorization": f"Bearer {access_token}"})
        if not isinstance(told, dict) or told.get("sub") != claims["sub"]:
            raise SignInFailed("the provider tells of somebody else than its identity token")
        return {**told, **claims}

    async def _key_set(self, known: Metadata) -> KeySet:
        if self._keys is None or time.monotonic() - self._keys[1] > FRESH_S:
            document = await self._get(known.jwks_uri)
            try:
                self._keys = (KeySet.import_key_set(_public(document)), time.monotonic())
            except (JoseError, KeyError, TypeError, ValueError) as error:
                raise ProviderDown(f"its keys cannot be read: {error}") from None
        return self._keys[0]

    # ---- calls ------------------------------------------------------------------------------------------------------

    @property
    def _redirect_uri(self) -> str:
        return self._settings.redirect_uri

    async def _token(self, known: Metadata, **asked: str) -> Mapping[str, object]:
        async with self._calling(known) as client:
            answer: Any = await client.fetch_token(known.token_endpoint, **asked)
        if not isinstance(answer, Mapping):
            raise ProviderDown("its token endpoint does not answer with a JSON object")
        return answer

    async def _get(self, url: str, headers: Mapping[str, str] | None = None) -> object:
        async with self._calling(None) as client:
            answer = await client.get(url, headers={"Accept": "application/json", **(headers or {})}, auth=None)
        if answer.status_code != 200:
            raise ProviderDown(f"{url} answers {answer.status_code}")
        return _object(answer)

    @asynccontextmanager
    async def _calling(self, known: Metadata | None) -> AsyncIterator[Any]:
        """A client, for calls within the block: at most so many at a time, none longer than `ANSWER_S`."""
        if self._room.locked():
            raise Busy("too many sign-ins are under way")
        async with self._room, self._client(known) as client:
            try:
                async with asyncio.timeout(ANSWER_S):
                    yield client
            except TimeoutError:
                raise ProviderDown(f"it does not answer within {ANSWER_S:g} s") from None
            except AuthlibBaseError as error:
                raise _refused(error.error, error.description) from None
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise ProviderDown(f"it cannot be reached: {shown(str(error) or type(error).__name__)}") from None
            except ValueError:  # a body that is no JSON
                raise ProviderDown("its token endpoint does not answer with a JSON object") from None

    def _client(self, known: Metadata | None) -> Any:
        secret = self._settings.client_secret
        method = "none" if not secret else known.auth_method if known is not None else None
        return AsyncOAuth2Client(
            self._settings.client_id,
            secret or None,
            token_endpoint_auth_method=method,
            scope=" ".join(self._settings.scopes),
            redirect_uri=self._redirect_uri,
            code_challenge_method="S256",
            verify=self._verify,
            timeout=ANSWER_S,
            follow_redirects=False,
        )


def _public(document: object) -> Any:
    """The key set without keys that are not for signing: a provider may publish those for encryption beside them."""
    if not isinstance(document, Mapping) or not isinstance(document.get("keys"), list):
        raise ValueError("no list of keys")
    keys = [key for key in document["keys"] if isinstance(key, dict) and key.get("use", "sig") == "sig"]
    return {"keys": [key for key in keys if key.get("kty") in ("RSA", "EC")]}


def _object(answer: httpx2.Response) -> dict[str, object]:
    try:
        body = answer.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise ProviderDown(f"{answer.url} answers {answer.status_code} with what is no JSON object")
    return body


def _device(body: Mapping[str, object]) -> DeviceBegun:
    where = str(body.get("verification_uri") or body.get("verification_url") or "")  # some still say url
    complete = str(body.get("verification_uri_complete") or "")
    codes = [body.get("device_code"), body.get("user_code")]
    if not discovery.is_safe(where) or not all(isinstance(code, str) and code for code in codes):
        raise ProviderDown("its answer to the device flow is not complete")
    return DeviceBegun(
        device_code=str(codes[0]),
        user_code=shown(codes[1]),
        verification_uri=where,
        verification_uri_complete=complete if discovery.is_safe(complete) else "",
        expires_in_s=_whole(body.get("expires_in"), low=1, high=3600, default=600),
        interval_s=_whole(body.get("interval"), low=1, high=60, default=5),
    )


def _whole(value: object, *, low: int, high: int, default: int) -> int:
    return min(max(value, low), high) if isinstance(value, int) else default


def _refused(code: str | None, description: str | None) -> SignInFailed:
    """What the provider refused. Its words are shown as data: short, and without control characters."""
    code = shown(code or "unknown")
    told = _WORDS.get(code) or f"the provider refuses: {code}" + (f" ({shown(description)})" if description else "")
    return SignInFailed(told, code=code)


_WORDS: Final[Mapping[str, str]] = {
    "authorization_pending": "nobody has entered the code yet",
    "slow_down": "the provider is asked too often",
    "access_denied": "you, or the provider on your behalf, declined to sign in",
    "expired_token": "the time to sign in is over",
    "invalid_client": "the provider does not accept this server's client id and secret; an administrator has to look",
    "invalid_grant": "the provider does not accept the code (any more)",
    "unauthorized_client": "the provider lets this server sign nobody in this way; an administrator has to look",
}
