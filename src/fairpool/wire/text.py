"""JSON as text: read without losing a digit, refused with line and column."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Final, NoReturn

_PIECE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|-?[A-Za-z]+|[{}\[\],:]', re.DOTALL)
_MAX_DIGITS: Final = 4_300  # beyond, Python takes too long to read a whole number, and refuses to
_MAX_DEPTH: Final = 100
_ESCAPE: Final = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.", re.DOTALL)


class MalformedText(ValueError):
    """Text that is not JSON. message: what is wrong; line, column: where, from 1."""

    def __init__(self, message: str, *, line: int = 1, column: int = 1) -> None:
        super().__init__(f"{message} (line {line}, column {column})")
        self.message = message
        self.line = line
        self.column = column


class _Odd(ValueError):
    """Python's reader met what it would let pass, or cannot read, and cannot say where."""


def loads(data: bytes | str) -> object:
    """The value that JSON text stands for, with decimals as Decimal.

    Raises MalformedText for what is not JSON, for NaN and infinities, for a key that an object has twice, and for
    halves of characters, which no UTF-8 can carry.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line = before.count(b"\n") + 1
        raise MalformedText("not UTF-8", line=line, column=error.start - before.rfind(b"\n")) from None
    if not text or text.isspace():
        raise MalformedText("there is nothing: JSON is expected")
    if text.startswith("\ufeff"):
        raise MalformedText("it begins with a byte order mark, which JSON does not have")
    try:
        value: object = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise MalformedText(error.msg, line=error.lineno, column=error.colno) from None
    except (RecursionError, ValueError):
        raise _located(text) from None
    if "\\ud" in text or "\\uD" in text:
        _check_whole(text, value)
    return value


def _no_constant(word: str) -> NoReturn:
    raise _Odd(word)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Odd("a key twice")
    return found


_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_object)


def _check_whole(text: str, value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        halves = (match.start(1) for match in _ESCAPE.finditer(text) if match[1])
        raise _at(text, next(halves, 0), "half of a character (an unpaired surrogate)") from None


def _located(text: str) -> MalformedText:
    """What Python's reader could not say the place of: found by reading the text again, piece by piece."""
    keys: list[set[str]] = []
    before = ("", 0)  # the piece before this one, and where it begins
    for found in _PIECE.finditer(text):
        piece = found[0]
        odd = _oddity(piece, len(keys))
        if odd:
            return _at(text, found.start(), odd)
        match piece:
            case "{" | "[":
                keys.append(set())
            case "}" | "]" if keys:
                keys.pop()
            case ":" if keys:
                key = json.loads(before[0])
                if key in keys[-1]:
                    return _at(text, before[1], f"an object has the key {key!a} twice")
                keys[-1].add(key)
        before = (piece, found.start())
    return MalformedText("no JSON that can be read here")


def _oddity(piece: str, depth: int) -> str:
    if piece in ("NaN", "Infinity", "-Infinity"):
        return f"{piece} is no JSON number"
    if len(piece) > _MAX_DIGITS and piece.lstrip("-").isdigit():
        return "a number with too many digits"
    return "nested too deeply" if depth > _MAX_DEPTH else ""


def _at(text: str, offset: int, message: str) -> MalformedText:
    line = text.count("\n", 0, offset) + 1
    return MalformedText(message, line=line, column=offset - text.rfind("\n", 0, offset))
