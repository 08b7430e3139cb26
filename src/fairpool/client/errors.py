"""What a call can end in, split by who must act.

ClientError
├── Unreachable           no server answered: check that it runs and where it is
│   └── NoServer          there is none here, and it could not be started
├── NotUnderstood         something answered, but not as this version understands: check what is there
├── Problem               the server refused; the problem document says why and what to do
│   └── (told apart by `slug`)
└── WrongSetting          a setting of this program is not possible
"""

from __future__ import annotations

from fairpool.wire.problems import Exit, exit_code
from fairpool.wire.problems import Problem as Document


class ClientError(Exception):
    """Base of everything that a call raises. exit_code: what a command line makes of it. hint: what to do next."""

    exit_code: int = Exit.FAILED

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Unreachable(ClientError):
    """No server answered. The same call may succeed later."""

    exit_code = Exit.UNREACHABLE


class NoServer(Unreachable):
    """There is no server here, and none could be started."""


class NotUnderstood(ClientError):
    """Something answered that does not speak this version of the API."""


class WrongSetting(ClientError):
    """A setting is not possible. The message names it, where it was found, and what is possible."""

    exit_code = Exit.USAGE


class Problem(ClientError):
    """The server refused. document: all that it said."""

    def __init__(self, document: Document) -> None:
        super().__init__(document.detail or document.title, hint=document.help)
        self.document = document
        self.exit_code = exit_code(document.type)

    @property
    def slug(self) -> str:
        """What went wrong, for programs."""
        return self.document.type

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.document.status
