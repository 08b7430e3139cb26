"""A line per event, for people or programs; nothing secret, and nothing that a caller could forge, gets into it."""

from __future__ import annotations

import json
import logging

import pytest

from fairpool.server.logs import HIDDEN, REQUEST_ID, JsonLines, TextLines, about, begin


def record(message: str, *args: object, error: BaseException | None = None, **fields: str | float) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error is not None else None
    made = logging.LogRecord("fairpool.server", logging.WARNING, "file", 1, message, args, info)
    made.created = 1_767_225_600.25
    vars(made).update(about(**fields))
    return made


def failure() -> BaseException:
    try:
        raise RuntimeError("first\nsecond")
    except RuntimeError as error:
        return error


def test_a_line_of_text_says_when_how_grave_who_what_and_the_fields() -> None:
    line = TextLines().format(record("call of %s", "someone", route="/api/v1/pools", status=404, note="two words"))
    assert line == (
        "2026-01-01T00:00:00.250Z WARNING fairpool.server: call of someone "
        'route=/api/v1/pools status=404 note="two words"'
    )


def test_a_line_of_json_says_the_same() -> None:
    told = json.loads(JsonLines().format(record("call", route="/api/v1/pools", status=404)))
    assert told == {
        "at": "2026-01-01T00:00:00.250Z",
        "level": "warning",
        "logger": "fairpool.server",
        "message": "call",
        "route": "/api/v1/pools",
        "status": 404,
    }


def test_every_line_of_a_call_carries_its_id() -> None:
    token = REQUEST_ID.set("abc")
    try:
        assert TextLines().format(record("x")).endswith("x request_id=abc")
        assert json.loads(JsonLines().format(record("x")))["request_id"] == "abc"
    finally:
        REQUEST_ID.reset(token)


def test_a_failure_is_one_line_of_json_and_set_in_as_text() -> None:
    found = JsonLines().format(record("failed", error=failure()))
    assert "\n" not in found
    assert "RuntimeError: first\nsecond" in json.loads(found)["trace"]
    first, *rest = TextLines().format(record("failed", error=failure())).splitlines()
    assert first.endswith("failed")
    assert rest
    assert all(line.startswith("  ") for line in rest)


@pytest.mark.parametrize("forged", ["a\n2026 INFO x: forged", "a\r\nb", "a\x1b[2Jb", "a\u2028b"])
def test_no_message_can_look_like_another_line(forged: str) -> None:
    assert len(TextLines().format(record("name %s", forged)).splitlines()) == 1
    assert len(JsonLines().format(record("name %s", forged)).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcDEF-123_456", "abcDEF-123_456"),
        ("token fp_k7wq_9f8e7d6c5b4a is bad", "fp_k7wq_9f8e7d6c5b4a"),
        ("connect postgresql://fairpool:pa55word@db/fairpool", "pa55word"),
        ("secret whsec_MfKQ9r8GKYqrTwjU", "MfKQ9r8GKYqrTwjU"),
    ],
)
def test_what_looks_like_a_secret_is_hidden_wherever_it_stands(text: str, secret: str) -> None:
    for found in (
        TextLines().format(record("%s", text)),
        JsonLines().format(record("%s", text)),
        TextLines().format(record("x", note=text)),
        JsonLines().format(record("x", note=text)),
        JsonLines().format(record("x", error=ValueError(text))),
    ):
        assert secret not in found
        assert HIDDEN in found


def test_what_is_asked_of_a_provider_is_not_logged_call_by_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who signs in by a code is asked for every second: a line each would bury the others."""
    for name in ("", "httpx2", "httpcore2"):
        monkeypatch.setattr(logging.getLogger(name), "level", logging.NOTSET)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    begin("debug", "text")
    assert not logging.getLogger("httpx2").isEnabledFor(logging.INFO)
    assert not logging.getLogger("httpcore2").isEnabledFor(logging.DEBUG)
    assert logging.getLogger("fairpool.server").isEnabledFor(logging.DEBUG)
