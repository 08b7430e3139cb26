"""What the server hands out and wants to see again: encrypted and dated, so that it has nothing to remember.

Whatever server of an installation a browser or a command line comes back to can read what another one sealed, and no
number of sign-ins that nobody ends takes up any memory.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fairpool.server.oidc.errors import SignInFailed

_MAX_SEALED: Final = 16_384
"""Characters of a sealed text that are looked at."""


class Sealer:
    """Seals and opens. secret: what all servers of an installation share; not one that anybody could guess."""

    def __init__(self, secret: str, now_s: Callable[[], float]) -> None:
        info = b"fairpool: what a sign-in hands out"
        key = HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret.encode())
        self._fernet = Fernet(base64.urlsafe_b64encode(key))
        self._now_s = now_s

    def seal(self, purpose: str, content: Mapping[str, object]) -> str:
        """`content` as a text that only this installation can read and nobody can change."""
        packed = zlib.compress(json.dumps([purpose, content]).encode(), level=9)
        return self._fernet.encrypt_at_time(packed, int(self._now_s())).decode().rstrip("=")

    def open(self, purpose: str, sealed: str, *, ttl_s: int, what: str) -> dict[str, object]:
        """What was sealed for that purpose. Raises SignInFailed for any other text, and after `ttl_s`."""
        forged = SignInFailed(f"{what} is not one that this server gave out", code="invalid_grant")
        if not sealed.isascii() or len(sealed) > _MAX_SEALED:
            raise forged
        token = sealed + "=" * (-len(sealed) % 4)
        try:
            packed = self._fernet.decrypt(token)
            issued_s = self._fernet.extract_timestamp(token)
        except InvalidToken:
            raise forged from None
        found, content = json.loads(zlib.decompress(packed))
        if found != purpose:
            raise forged
        if not issued_s <= self._now_s() + 60 <= issued_s + ttl_s + 60:  # another server's clock may be ahead of ours
            raise SignInFailed(f"{what} is older than {ttl_s} seconds", code="expired_token")
        return dict(content)
