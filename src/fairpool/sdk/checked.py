"""Models whose wrong values are told in the SDK's own words: which field, what it was given, and what is possible."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from fairpool.sdk.errors import InvalidUse

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_SHOWN: Final = 60
"""Characters of a wrong value that a message repeats."""


class Checked(BaseModel):
    """A frozen model that raises InvalidUse (a ValueError) where pydantic would raise its ValidationError."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    if not TYPE_CHECKING:  # checkers and editors go on to see a constructor with the fields

        def __init__(self, /, **fields: Any) -> None:
            try:
                super().__init__(**fields)
            except ValidationError as error:
                raise told(error) from None

        def __setattr__(self, name: str, value: object) -> None:
            try:
                super().__setattr__(name, value)
            except ValidationError as error:
                raise told(error) from None

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """The model of a mapping or of such a model. Raises InvalidUse."""
        if isinstance(obj, Mapping) and not options:
            return cls(**{str(name): value for name, value in obj.items()})
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise told(error) from None


def told(error: ValidationError) -> InvalidUse:
    """The fields that `error` speaks of, one sentence for each."""
    return InvalidUse("; ".join(dict.fromkeys(_sentence(item) for item in error.errors(include_url=False))))


def _sentence(item: ErrorDetails) -> str:
    message = item["msg"].removeprefix("Value error, ")
    field = str(item["loc"][0]) if item["loc"] else ""
    if item["type"] == "value_error":  # a sentence of ours
        return message if not field or message.startswith((field, "resource key")) else f"{field}: {message}"
    given = f"{field} {_shown(item['input'])}".strip()
    if item["type"] not in _WORDS:
        return f"{given} is not possible; possible: {message.removeprefix('Input should be ')}"
    what, possible = _WORDS[item["type"]]
    bounds = {name: f"{bound:g}" if isinstance(bound, float) else bound for name, bound in item.get("ctx", {}).items()}
    return f"{given} is {what}; possible: {possible.format(**bounds)}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


_WORDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "greater_than": ("too small", "more than {gt}"),
        "greater_than_equal": ("too small", "{ge} or more"),
        "less_than_equal": ("too large", "{le} or less"),
        "string_too_short": ("too short", "{min_length} or more characters"),
        "string_too_long": ("too long", "{max_length} or fewer characters"),
        "int_type": ("no whole number", "a whole number"),
        "int_parsing": ("no whole number", "a whole number"),
        "int_from_float": ("no whole number", "a whole number"),
        "int_parsing_size": ("too large", "a smaller whole number"),
        "float_type": ("no number", "a number"),
        "float_parsing": ("no number", "a number"),
        "finite_number": ("no finite number", "a number"),
        "bool_type": ("neither true nor false", "True or False"),
        "bool_parsing": ("neither true nor false", "True or False"),
        "string_type": ("no text", "a text"),
        "dict_type": ("no dictionary", 'a dictionary such as {{"license": 1}}'),
        "model_type": ("no dictionary", "ResourceSettings or a dictionary of their fields"),
        "literal_error": ("not one of them", "{expected}"),
        "frozen_instance": ("not taken: this object is frozen", "making another one"),
    }
)
"""What is wrong and what is possible, by kind of error."""
