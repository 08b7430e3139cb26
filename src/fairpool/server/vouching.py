"""From where a call comes that another server passed on: that server says so, and proves that it may.

All servers of an installation know its token, and nobody else does who could not do everything anyway. The proof holds
for one call: its id, what it asks for, and the token that it shows.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from starlette.types import Scope

from fairpool.server.access_log import HEADER as REQUEST_ID

HOP: Final = b"fairpool-forwarded"
"""The header that says that a call has been passed on already: by whom, for whom, and the proof of that."""

_NOBODY: Final = "-"  # a caller without an address: one that came through a Unix socket
_PURPOSE: Final = b"fairpool: a call passed on for"


class Vouching:
    """Says for whom calls are passed on, and believes others who prove it. secret: what the servers share; believes
    nobody without."""

    def __init__(self, secret: str = "") -> None:
        self._secret = secret.encode()

    def word(self, scope: Scope, *, by: str) -> str:
        """What the header says of this call. by: the address of the server that passes it on."""
        client = scope.get("client")
        caller = client[0] if client is not None else _NOBODY
        return f"{by} {caller} {self._proof(scope, by, caller)}"

    def caller(self, scope: Scope) -> tuple[str, int] | None:
        """The address from which the call first came; None where nobody has passed it on, or nobody who may say so."""
        said = next((value for name, value in scope["headers"] if name == HOP), None)
        if said is None or not self._secret:
            return None
        by, _, rest = said.decode("latin-1").partition(" ")
        caller, _, proof = rest.partition(" ")
        if not hmac.compare_digest(proof.encode("latin-1"), self._proof(scope, by, caller).encode()):
            return None
        return caller.removeprefix(_NOBODY), 0

    def _proof(self, scope: Scope, by: str, caller: str) -> str:
        shown = [value for name, value in scope["headers"] if name in (REQUEST_ID, b"authorization")]
        # None of these can hold a line break.
        parts = [_PURPOSE, by.encode("latin-1"), caller.encode("latin-1"), scope["method"].encode(), scope["raw_path"]]
        return hmac.new(self._secret, b"\n".join([*parts, *shown]), hashlib.sha256).hexdigest()


def was_passed_on(scope: Scope) -> bool:
    """Whether the call says that another server passed it on. It may lie: then it is passed on no further."""
    return any(name == HOP for name, _ in scope["headers"])
