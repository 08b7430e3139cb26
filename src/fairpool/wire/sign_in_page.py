"""The pages that a browser shows at the end of a sign-in: one look for those of the server and of the command line.

A page needs nothing from anywhere else: its style is in it, and its policy allows that style and no more.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from html import escape
from types import MappingProxyType
from typing import Final

_STYLE: Final = """
:root { color-scheme: light dark; --page: #f4f5f7; --card: #fff; --line: #d9dce1; --text: #1c2024; --dim: #5c6370;
  --good: #1a7f4b; --bad: #b3372f; --code: #eef0f3; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --card: #1d2125; --line: #363c43; --text: #e7e9ec;
  --dim: #a2a9b3; --good: #4cc38a; --bad: #f0837a; --code: #2a3036; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--page);
  color: var(--text); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { width: 100%; max-width: 34rem; padding: 2rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .75rem; }
.brand { margin: 0 0 1.25rem; color: var(--dim); font-size: .875rem; letter-spacing: .04em; }
h1 { display: flex; gap: .75rem; align-items: center; margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; }
svg { flex: none; width: 2rem; height: 2rem; fill: none; stroke: currentColor; stroke-width: 2; stroke-linecap: round;
  stroke-linejoin: round; }
.good svg { color: var(--good); }
.bad svg { color: var(--bad); }
p { margin: .75rem 0 0; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.25rem; margin: 1rem 0 1.25rem;
  padding: 1rem 0; border-block: 1px solid var(--line); }
dt { color: var(--dim); }
dd { margin: 0; overflow-wrap: anywhere; }
code { padding: .1rem .35rem; border-radius: .3rem; background: var(--code); white-space: nowrap;
  font: .9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
"""
_GOOD: Final = '<circle cx="12" cy="12" r="10"/><path d="m7.5 12.5 3 3 6-6.5"/>'
_BAD: Final = '<circle cx="12" cy="12" r="10"/><path d="M12 7v6m0 3.5v.01"/>'
_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Cache-Control": "no-store",
        "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
)
"""What goes with every such page: nobody keeps it, no other site hears of it, and nothing in it can run."""


def signed_in(facts: Mapping[str, str]) -> str:
    """Somebody is signed in. facts: what as, and where, each with its name."""
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items() if value)
    return _page(
        "You are signed in", [f"<dl>{listed}</dl>", "<p>Close this window and go back to the terminal.</p>"], good=True
    )


def not_signed_in(why: str, *, hint: str = "") -> str:
    """Nobody is signed in. hint: what to do, where it is not to begin again."""
    command = _COMMAND.sub(r"<code>\g<0></code>", escape(hint or "fairpool login begins again"))
    return _page("You are not signed in", [_sentence(escape(why)), _sentence(command), _CLOSE], good=False)


def nothing_here() -> str:
    """Nobody waits for this call."""
    told = _sentence("This page belongs to a sign-in that is over, or to none")
    return _page("Nothing here", [told, _CLOSE], good=False)


_COMMAND: Final = re.compile(r"fairpool login( --[a-z]+)?")
_CLOSE: Final = "<p>You can close this window.</p>"


def _sentence(text: str) -> str:
    """A paragraph; the words come from messages, which begin small and end without a full stop."""
    return f"<p>{text[:1].upper()}{text[1:].rstrip('.')}.</p>"


def _page(title: str, parts: Iterable[str], *, good: bool) -> str:
    kind, sign = ("good", _GOOD) if good else ("bad", _BAD)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{title} · Fairpool</title><link rel="icon" href="data:,"><style>{_STYLE}</style></head>'
        f'<body><main class="{kind}"><p class="brand">Fairpool</p>'
        f'<h1><svg viewBox="0 0 24 24" aria-hidden="true">{sign}</svg>{title}</h1>{"".join(parts)}</main></body></html>'
    )
