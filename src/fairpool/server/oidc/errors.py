"""Why a sign-in does not come about, split by who must act.

SignInError
├── ProviderDown      the provider does not answer, or not as it should: wait, or ask its administrator
└── SignInFailed      this sign-in is over: begin another
"""

from __future__ import annotations


class SignInError(Exception):
    """Base of what goes wrong between this server and the provider. message: for people, without any secret."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ProviderDown(SignInError):
    """The provider cannot be reached, or says what no provider should."""


class SignInFailed(SignInError):
    """This sign-in is over. code: why, in OAuth's own words (``access_denied``, ``expired_token``, …)."""

    def __init__(self, message: str, *, code: str = "invalid_request") -> None:
        super().__init__(message)
        self.code = code
