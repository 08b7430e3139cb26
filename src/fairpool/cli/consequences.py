"""What goes along when a user, a team or a service account is deleted, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairpool.wire.people import ServiceAccountDeletion, TeamDeletion, UserDeletion

    Deletion = UserDeletion | TeamDeletion | ServiceAccountDeletion

_MOST_NAMED = 5


def told(along: Deletion) -> str:
    """What goes along, in a few sentences."""
    sentences = [
        _sentence(getattr(along, "teams", ()), "leaves team", "leaves teams"),
        _sentence(getattr(along, "members", ()), "it has member", "it has members"),
        _sentence(getattr(along, "service_accounts", ()), "service account leaves it:", "service accounts leave it:"),
        _sentence(getattr(along, "tokens", ()), "token is revoked:", "tokens are revoked:"),
        _sentence(along.policies, "policy goes along:", "policies go along:"),
        _counted(along.queued, "queued request is cancelled", "queued requests are cancelled"),
        _counted(along.active, "running request goes on", "running requests go on"),
    ]
    said = [sentence[:1].upper() + sentence[1:] + "." for sentence in sentences if sentence]
    return " ".join(said) or "Nothing else goes along."


def _sentence(names: Sequence[str], one: str, several: str) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{one if len(names) == 1 else several} {', '.join(names[:_MOST_NAMED])}{more}"


def _counted(requests: Sequence[str], one: str, several: str) -> str:
    return f"{len(requests)} {one if len(requests) == 1 else several}" if requests else ""
