"""How a token is written: ``fp_ID_SECRET``. The id finds it; the secret, of 256 bits, is kept nowhere but hashed.

The last letters are a checksum of the rest, so that a mistyped token is known for one without asking the database, and
a scanner that looks for leaked secrets finds no others.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "fp"

_SECRET_BYTES: Final = 32
_ID_BYTES: Final = 8
_TEXT: Final = re.compile(rf"{PREFIX}_([a-z2-7]{{13}})_([a-z2-7]{{52}})([a-z2-7]{{7}})")


@dataclass(frozen=True, slots=True)
class TokenText:
    """A token as its owner sees it, once. Its text shows in no repr, so that no log and no traceback gets it."""

    id: str
    _text: str

    def reveal(self) -> str:
        """The whole token."""
        return self._text

    @property
    def hash(self) -> str:
        """What is kept of it: SHA-256, hexadecimal. A secret of 256 random bits needs no slower one."""
        return hashlib.sha256(self._text.encode()).hexdigest()

    def is_of(self, known: str) -> bool:
        """Whether it is the one with that hash; takes as long for every guess."""
        return hmac.compare_digest(self.hash, known)

    def __repr__(self) -> str:
        return f"TokenText(id={self.id!r})"


def mint(draw: Callable[[int], bytes]) -> TokenText:
    """A new token. draw: so many random bytes."""
    token_id, secret = _spelled(draw(_ID_BYTES)), _spelled(draw(_SECRET_BYTES))
    body = f"{PREFIX}_{token_id}_{secret}"
    return TokenText(token_id, body + _checksum(body))


def drawn_from(secret: bytes, *about: str) -> Callable[[int], bytes]:
    """For `mint`: bytes that whoever has the secret draws again about the same, and that look random to all others.

    secret: at least as good as a token. about: among it something that is never used for two tokens.
    """
    told = json.dumps(about).encode()

    def draw(size: int) -> bytes:
        purpose = f"fairpool: {size} bytes of a token\n".encode()
        return hmac.new(secret, purpose + told, hashlib.sha512).digest()[:size]

    return draw


def parse(text: str) -> TokenText | None:
    """The token that is written there; None for what cannot be one."""
    match = _TEXT.fullmatch(text)
    if match is None or not hmac.compare_digest(_checksum(text[: match.start(3)]), match[3]):
        return None
    return TokenText(match[1], text)


def _checksum(text: str) -> str:
    return _spelled(zlib.crc32(text.encode()).to_bytes(4))


def _spelled(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=").lower()
