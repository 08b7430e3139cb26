"""JSON as text: read without losing a digit, refused with line and column."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import NoReturn


class MalformedText(ValueError):
    """Text that is not JSON. message: what is wrong; line, column: where, from 1."""

    def __init__(self, message: str, *, line: int = 1, column: int = 1) -> None:
        super().__init__(f"{message} (line {line}, column {column})")
        self.message = message
        self.line = line
        self.column = column


def loads(data: bytes | str) -> object:
    """The value that JSON text stands for, with decimals as Decimal.

    Raises MalformedText for what is not JSON, for NaN and infinities, and for a key that an object has twice.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise MalformedText(error.msg, line=error.lineno, column=error.colno) from None
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line = before.count(b"\n") + 1
        raise MalformedText("not UTF-8", line=line, column=error.start - before.rfind(b"\n")) from None
    except RecursionError:
        raise MalformedText("nested too deeply") from None
    except MalformedText:
        raise
    except ValueError:
        # A whole number with thousands of digits, which Python refuses to read.
        raise MalformedText("a number with too many digits") from None


def _no_constant(word: str) -> NoReturn:
    raise MalformedText(f"{word} is no JSON number")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise MalformedText(f"an object has the key {twice!r} twice")
    return found
