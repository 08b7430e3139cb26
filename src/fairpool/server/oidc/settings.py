"""What the server has to know of the identity provider."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fairpool.app.records import DEFAULT_WORKSPACE
from fairpool.app.signin import SignInRules

SCOPES: Final = ("openid", "profile", "email")
ALGORITHMS: Final = tuple(family + bits for family in ("RS", "ES", "PS") for bits in ("256", "384", "512"))
"""How an identity token may be signed: with a key of the provider's own. Neither unsigned, nor with a shared secret."""

SIGN_IN_S: Final = 600
"""How long somebody may take at the provider's pages: passwords, second factors, a call to the help desk."""

TOKEN_S: Final = 12 * 3600
"""A working day: whoever loses their account at the provider is out by the evening."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """The identity provider, and this server as its client.

    issuer: the provider's address as its tokens name it. client_secret: "" for a public client.
    public_url: where browsers reach this server. workspace: where people who sign in belong.
    token_s: for how many seconds the token of a sign-in lets somebody in.
    """

    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    public_url: str
    scopes: tuple[str, ...] = SCOPES
    rules: SignInRules = field(default_factory=SignInRules)
    workspace: str = DEFAULT_WORKSPACE
    token_s: int = TOKEN_S

    @property
    def redirect_uri(self) -> str:
        """Where the provider sends browsers back to; it has to be registered there."""
        return f"{self.public_url}/login/callback"
