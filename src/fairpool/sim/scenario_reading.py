"""Reading a file's YAML with its places kept, so that whatever is wrong is named by file, line and key.

Values stay YAML nodes until somebody asks for a text, a number or a mapping: then the answer is exact (0.1 is one
tenth) and a complaint knows where it is about.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import yaml

from fairpool.core.amounts import amount
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import check_key, seconds

_NULL = "tag:yaml.org,2002:null"
_BOOL = "tag:yaml.org,2002:bool"
_TRUE = frozenset({"true", "yes", "on"})  # YAML 1.1, as its resolver has it
MAX_SECONDS = 10**10  # three centuries: nobody means more, and exact instants stay small


class ScenarioFileError(Exception):
    """A file is not as the format wants it.

    line: counted from 1; 0 where no line can be named. key: a dotted path, e.g. ``steps[2].submit.demand.gpu``.
    """

    def __init__(self, message: str, *, file: str, line: int = 0, key: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.key = key

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


@dataclass(frozen=True, slots=True)
class Item:
    """One value of the file, with the way to it."""

    node: yaml.Node
    file: str
    key: str = ""

    @property
    def line(self) -> int:
        """The line on which the value begins, counted from 1."""
        return int(self.node.start_mark.line) + 1

    def wrong(self, message: str, possible: str = "") -> ScenarioFileError:
        """An error about this value."""
        text = f"{message}; possible: {possible}" if possible else message
        return ScenarioFileError(text, file=self.file, line=self.line, key=self.key)

    def refused(self, error: InvalidInput) -> ScenarioFileError:
        """The core's complaint about this value, at its place."""
        key = f"{self.key}.{error.field}" if error.field and self.key else error.field or self.key
        text = f"{error.message}; possible: {error.possible}" if error.possible else error.message
        return ScenarioFileError(text, file=self.file, line=self.line, key=key)

    # ---- structure --------------------------------------------------------------------------------------------------

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written there."""
        return self.node.tag == _NULL

    def elements(self) -> list[Item]:
        """The elements of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.wrong("should be a list")
        return [Item(node, self.file, f"{self.key}[{index}]") for index, node in enumerate(self.node.value)]

    def one_or_more(self) -> list[Item]:
        """The elements of a list, or the one value that stands for a list of one."""
        return self.elements() if self.is_list else [self]

    def pairs(self) -> dict[str, Item]:
        """The entries of a mapping, in the order in which they are written."""
        return dict(self._pairs())

    def _pairs(self) -> Iterator[tuple[str, Item]]:
        if not isinstance(self.node, yaml.MappingNode):
            raise self.wrong("should be a mapping of keys to values")
        seen: set[str] = set()
        for key_node, value_node in self.node.value:
            name = Item(key_node, self.file, self.key).text()
            value = Item(value_node, self.file, f"{self.key}.{name}" if self.key else name)
            if name in seen:
                raise ScenarioFileError(
                    "is written twice", file=self.file, line=key_node.start_mark.line + 1, key=value.key
                )
            seen.add(name)
            yield name, value

    def fields(self, allowed: Collection[str], required: Collection[str] = ()) -> dict[str, Item]:
        """The entries of a mapping whose keys are known. Refuses any other, with the nearest that there is."""
        found = self.pairs()
        for name, value in found.items():
            if name not in allowed:
                near = difflib.get_close_matches(name, list(allowed), n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"possible: {', '.join(sorted(allowed))}"
                raise value.wrong(f"unknown key; {hint}")
        for name in required:
            if name not in found:
                raise self.wrong(f"{name!r} is missing")
        return found

    # ---- values -----------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """A name, as it is written."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag == _NULL:
            raise self.wrong("should be a text")
        return str(self.node.value)

    def one_of(self, possible: Collection[str]) -> str:
        """One of a closed set of words."""
        found = self.text()
        if found not in possible:
            near = difflib.get_close_matches(found, list(possible), n=1)
            raise self.wrong(f"{found!r}: {f'did you mean {str(near[0])!r}?' if near else 'no such value'}",
                             ", ".join(possible))  # fmt: skip
        return found

    def known(self, what: str, names: Collection[str]) -> str:
        """The name of something that the file has spoken of before."""
        found = self.text()
        if found not in names:
            near = difflib.get_close_matches(found, list(names), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(sorted(names)) or 'none'}"
            raise self.wrong(f"no {what} {found!r} here; {hint}")
        return found

    def flag(self) -> bool:
        """True or false."""
        if self.node.tag != _BOOL:
            raise self.wrong("should be true or false")
        return str(self.node.value).lower() in _TRUE

    def integer(self, *, minimum: int | None = None) -> int:
        """A whole number."""
        number = self._number()
        if number != number.to_integral_value():
            raise self.wrong(f"{self.text()} is no whole number")
        if minimum is not None and number < minimum:
            raise self.wrong(f"{self.text()} is too small", f"{minimum} or more")
        return int(number)

    def seconds(self) -> int:
        """A length of time: seconds in the file, microseconds here."""
        number = self._number()
        if not 0 <= number <= MAX_SECONDS:
            raise self.wrong(f"{self.text()} is no number of seconds from 0 to {MAX_SECONDS}")
        return seconds(float(number)) if number != number.to_integral_value() else seconds(int(number))

    def _number(self) -> Decimal:
        text = self.text()
        try:
            number = Decimal(text.replace("_", ""))
        except InvalidOperation:
            raise self.wrong(f"{text!r} is no number") from None
        if not number.is_finite() or abs(number) > 10**18:
            raise self.wrong(f"{text!r} is no number that makes sense here")
        return number

    def amount(self) -> int:
        """An exact amount, in thousandths."""
        text = self.text()
        try:
            return int(amount(text))
        except InvalidInput as error:
            raise self.refused(error) from None

    def amounts(self) -> dict[str, int]:
        """Exact amounts by resource key, in thousandths; zeros are kept."""
        found: dict[str, int] = {}
        for name, value in self.pairs().items():
            try:
                check_key(name)
            except InvalidInput as error:
                raise value.refused(error) from None
            found[name] = value.amount()
        return found


def documents(text: str, file: str) -> list[Item]:
    """The documents of a file, a list counting as its elements. Raises ScenarioFileError where it is no YAML."""
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f" (column {mark.column + 1})" if mark else ""
        told = " ".join(part for part in (error.context, error.problem) if part) or "is no YAML"
        raise ScenarioFileError(f"{told}{at}", file=file, line=mark.line + 1 if mark else 0) from None
    except (yaml.YAMLError, RecursionError) as error:
        told = str(error).splitlines()[0] if isinstance(error, yaml.YAMLError) else "is nested too deeply"
        raise ScenarioFileError(told, file=file) from None
    found: list[Item] = []
    for node in nodes:
        item = Item(node, file)
        if item.is_empty:
            continue
        found.extend(Item(each.node, file) for each in item.elements()) if item.is_list else found.append(item)
    return found
