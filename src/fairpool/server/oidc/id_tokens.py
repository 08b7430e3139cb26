"""Whether an identity token is the provider's, for this server, for this sign-in, and still good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, ExpiredTokenError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

from fairpool.server.oidc.errors import SignInFailed
from fairpool.server.oidc.settings import ALGORITHMS

LEEWAY_S: Final = 60
"""How far apart the provider's clock and ours may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the token has to say. nonce: None for the device flow, which has none. access_token: that it came with."""

    issuer: str
    client_id: str
    nonce: str | None
    access_token: str


class UnknownKey(SignInFailed):
    """It is signed with a key that the provider has not published; it may have a new one."""


def claims_of(id_token: str, keys: KeySet, expected: Expected, *, now_s: float) -> dict[str, object]:
    """What the token says. Raises UnknownKey, and SignInFailed for a token that does not count."""
    try:
        token = jwt.decode(id_token, keys, algorithms=ALGORITHMS)
    except (InvalidKeyIdError, BadSignatureError) as error:
        raise UnknownKey(f"the provider's identity token is not signed with one of its keys ({error.error})") from None
    except (JoseError, ValueError) as error:
        # Names the algorithm where that is what is wrong.
        raise SignInFailed(f"the provider's identity token is refused: {error}") from None
    _check(token.header, token.claims, expected, now_s)
    return dict(token.claims)


def _check(header: Mapping[str, object], claims: Mapping[str, object], expected: Expected, now_s: float) -> None:
    judged = CodeIDToken(
        claims,
        header,
        {
            "iss": {"essential": True, "value": expected.issuer},
            "aud": {"essential": True, "value": expected.client_id},
        },
        {
            "nonce": expected.nonce,
            "client_id": expected.client_id,
            "access_token": expected.access_token,
        },
    )
    try:
        judged.validate(int(now_s), LEEWAY_S)
    except ExpiredTokenError:
        raise SignInFailed("the provider's identity token has expired", code="expired_token") from None
    except (JoseError, TypeError, ValueError) as error:
        raise SignInFailed(f"the provider's identity token is refused: {error}") from None
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise SignInFailed("the provider's identity token names nobody (claim 'sub')")
