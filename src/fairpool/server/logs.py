"""The server's log: a line per event, as text for people or JSON for programs, with the id of the call it is about.

Nothing that callers send is logged: no bodies, no queries, no headers, no names. What looks like a token all the same,
in the message of an error say, is made unreadable.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

FORMATS: Final = ("text", "json")

REQUEST_ID: Final[ContextVar[str]] = ContextVar("fairpool_request_id", default="")
"""The id of the call that is being answered; follows it into the threads that read for it."""

HIDDEN: Final = "[hidden]"
_SECRETS: Final = (
    re.compile(r"(?i)(?<=bearer )[^\s'\",;]+"),
    re.compile(r"\bfp_[A-Za-z0-9_-]{8,}"),
    re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"),  # user and password of a database's URL
    re.compile(r"\bwhsec_[A-Za-z0-9+/=_-]{8,}"),
)
_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def about(**fields: str | float | None) -> dict[str, Mapping[str, str | float]]:
    """``extra`` of a log call: what the line is about, besides its words. Fields that say nothing are left out."""
    return {"fields": {name: value for name, value in fields.items() if value not in (None, "")}}


class _Lines(logging.Formatter):
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802 (logging's name)
        """When, in UTC, to the millisecond."""
        at = datetime.fromtimestamp(record.created, UTC)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def fields(self, record: logging.LogRecord) -> dict[str, str | float]:
        """What the line is about."""
        found: dict[str, str | float] = {}
        request_id = REQUEST_ID.get()
        if request_id:
            found["request_id"] = request_id
        found.update(getattr(record, "fields", {}))
        return found

    def trace(self, record: logging.LogRecord) -> str:
        """The traceback that comes with the line, or nothing."""
        return self.formatException(record.exc_info) if record.exc_info else ""


class TextLines(_Lines):
    """``2026-01-01T00:00:00.000Z INFO fairpool.server: words key=value``. A traceback follows on lines of its own, each
    set in, so that a line that is not set in begins an event."""

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        line = f"{self.formatTime(record)} {record.levelname} {record.name}: {_one_line(record.getMessage())}"
        line += "".join(f" {name}={_quoted(value)}" for name, value in self.fields(record).items())
        trace = self.trace(record)
        return hidden(line + "".join(f"\n  {_one_line(part)}" for part in trace.splitlines()))


class JsonLines(_Lines):
    """One JSON object a line: ``at``, ``level``, ``logger``, ``message``, the fields, and ``trace`` of a failure."""

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        told: dict[str, str | float] = {
            "at": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": hidden(record.getMessage()),
        }
        told.update({name: hidden(v) if isinstance(v, str) else v for name, v in self.fields(record).items()})
        trace = self.trace(record)
        if trace:
            told["trace"] = hidden(trace)
        return json.dumps(told, ensure_ascii=True)


def begin(level: str, form: str) -> None:
    """Log to standard error from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for chatty in ("alembic", "asyncio", "httpx2", "httpcore2"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, logging.getLogger().level))
    # It warns of every call that cannot be read, as often as somebody sends one.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


def hidden(text: str) -> str:
    """The text without what looks like a token or a password."""
    for secret in _SECRETS:
        text = secret.sub(HIDDEN, text)
    return text


def _one_line(text: str) -> str:
    return _BREAKS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _quoted(value: str | float) -> str:
    text = str(value)
    return text if re.fullmatch(r"[^\s\"=]+", text) else json.dumps(text)
