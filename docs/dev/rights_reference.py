"""Who may do what, as Markdown, from the table that the server goes by."""

from __future__ import annotations

from fairpool.app.authz import Role
from fairpool.app.rights import right_of
from fairpool.server.gate import OPEN
from fairpool.server.routes import ENDPOINTS
from fairpool.wire.routes import ROUTES


def rights() -> str:
    """Every route with how far each role may use it."""
    heads = [role.value for role in Role]
    told = ["| Route | What it does | " + " | ".join(heads) + " |", "|---|---|" + "---|" * len(heads)]
    for name, route in ROUTES.items():
        cells = ["anybody"] * len(heads) if name in OPEN else [right_of(name, role).value for role in Role]
        summary = ENDPOINTS[name].summary
        told.append(f"| `{route.method} {route.template}` | {summary} | {' | '.join(cells)} |")
    return "\n".join(told)
