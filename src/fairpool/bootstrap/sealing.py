"""The sealer: secrets are kept encrypted and authenticated (Fernet) with keys that come from the environment."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from fairpool.app.errors import CannotOpen
from fairpool.app.ports import Sealer
from fairpool.app.use_cases.vaults import Keyless


class WrongKey(ValueError):
    """A key that is none. Its message says which by its place, and never the key."""


def sealer_of(keys: Sequence[str]) -> Sealer:
    """The sealer with these keys, the newest first; without any it keeps no secrets. Raises WrongKey."""
    return FernetSealer(keys) if keys else Keyless()


class FernetSealer:
    """See `ports.Sealer`. keys: the newest first, which seals; each of them opens what it has sealed."""

    def __init__(self, keys: Sequence[str]) -> None:
        """At least one key. Raises WrongKey."""
        found = []
        for place, key in enumerate(keys, start=1):
            try:
                found.append(Fernet(key))
            except ValueError:
                raise WrongKey(
                    f"key {place} of {len(keys)} is no key: 32 bytes in base64 are ('fairpool vault key' prints one)"
                ) from None
        self._fernet = MultiFernet(found)

    def seal(self, text: str) -> str:
        """See `ports.Sealer`."""
        return self._fernet.encrypt(text.encode(errors="surrogatepass")).decode("ascii")

    def open(self, sealed: str) -> str:
        """See `ports.Sealer`."""
        try:
            return self._fernet.decrypt(sealed).decode(errors="surrogatepass")
        except InvalidToken:
            raise CannotOpen from None

    def seal_anew(self, sealed: str) -> str:
        """See `ports.Sealer`."""
        return self.seal(self.open(sealed))
