"""YAML and JSON files as plain values, with the place of each, so that a complaint names line and column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Final

import yaml

from fairpool.wire.reading import nearest, quoted, shown

Path = tuple[str | int, ...]
"""The way to a value inside a document: keys of mappings and places in lists."""

_TAG: Final = "tag:yaml.org,2002:"
_MAX_VALUES: Final = 1_000_000  # aliases of aliases could stand for more than any memory holds
_MAX_DEPTH: Final = 50


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands. line, column: counted from 1; 0 where only the file is known."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class MisplacedText(ValueError):
    """A file that cannot be read as documents. problems: what is wrong, each with its place."""

    def __init__(self, problems: list[tuple[Place, str]]) -> None:
        super().__init__("\n".join(f"{place}: {message}" for place, message in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Placed:
    """One document of a file as a plain value; decimals are exact.

    places: of every value by its path, () for the document itself. keys: of the keys of mappings, by the same path.
    """

    value: object
    places: dict[Path, Place] = field(default_factory=dict)
    keys: dict[Path, Place] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        """Where the document begins."""
        return self.places[()]

    def at(self, dotted: str) -> Place:
        """The place of the value at a dotted path (``limit.gpu``, ``nodes.0.name``), or of what is nearest around it.

        Keys may hold dots themselves (``example.com/fpga``), so the longest that fits is taken.
        """
        path: Path = ()
        here, rest = self.value, dotted
        while rest:
            step = _step(here, rest)
            if step is None:
                break
            part, here, rest = step
            path = (*path, part)
        return self.keys.get(path) or self.places[path]


def _step(here: object, rest: str) -> tuple[str | int, object, str] | None:
    words: dict[str, tuple[str | int, object]] = {}
    if isinstance(here, dict):
        words = {str(key): (key, value) for key, value in here.items()}
    elif isinstance(here, list):
        words = {str(index): (index, value) for index, value in enumerate(here)}
    fitting = [word for word in words if rest == word or rest.startswith(f"{word}.")]
    if not fitting:
        return None
    word = max(fitting, key=len)
    return *words[word], rest[len(word) + 1 :]


def read_text(text: str, file: str) -> list[Placed]:
    """The documents of a text, a list counting as its elements; empty ones are left out. Raises MisplacedText."""
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        told = " ".join(part for part in (error.context, error.problem) if part) or "is no YAML"
        raise MisplacedText([(_place(mark, file) if mark else Place(file), f"not YAML: {told}")]) from None
    except (yaml.YAMLError, RecursionError) as error:
        told = str(error).splitlines()[0] if isinstance(error, yaml.YAMLError) else "nested too deeply"
        raise MisplacedText([(Place(file), f"not YAML: {told}")]) from None
    return [_placed(node, file) for node in nodes for node in _elements(node) if node.tag != _TAG + "null"]


def _elements(node: yaml.Node | None) -> list[yaml.Node]:
    if node is None:
        return []
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]


def _placed(node: yaml.Node, file: str) -> Placed:
    reading = _Reading(file)
    value = reading.value(node, ())
    if reading.problems:
        raise MisplacedText(reading.problems)
    return Placed(value, reading.places, reading.keys)


def _place(mark: yaml.Mark, file: str) -> Place:
    return Place(file, mark.line + 1, mark.column + 1)


class _Reading:
    """One document on its way from nodes to values."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.places: dict[Path, Place] = {}
        self.keys: dict[Path, Place] = {}
        self.problems: list[tuple[Place, str]] = []

    def value(self, node: yaml.Node, path: Path) -> object:
        """What a node stands for."""
        place = _place(node.start_mark, self.file)
        if len(self.places) >= _MAX_VALUES or len(path) > _MAX_DEPTH:
            what = f"{_MAX_DEPTH} levels" if len(path) > _MAX_DEPTH else f"{_MAX_VALUES} values"
            raise MisplacedText([(place, f"too much in one document; possible: at most {what}")])
        self.places[path] = place
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(inner, (*path, index)) for index, inner in enumerate(node.value)]
        return self._scalar(node, place)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        found: dict[str, object] = {}
        for key_node, value_node in self._pairs(node):
            place = _place(key_node.start_mark, self.file)
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append((place, "a key should be a text"))
                continue
            key = str(key_node.value)
            inner = (*path, key)
            if key in found:
                first = self.keys[inner]
                self.problems.append((place, f"{quoted(key)} is written twice; first in line {first.line}"))
                continue
            self.keys[inner] = place
            found[key] = self.value(value_node, inner)
        return found

    def _pairs(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        """The pairs of a mapping; what `<<` merges in comes after, without the keys that the mapping says itself."""
        merged: list[tuple[yaml.Node, yaml.Node]] = []
        said: set[str] = set()
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                sources = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                for source in sources:
                    if isinstance(source, yaml.MappingNode):
                        merged.extend(source.value)
                    else:
                        place = _place(source.start_mark, self.file)
                        self.problems.append((place, "'<<' merges mappings only"))
            else:
                said.add(str(key_node.value))
                yield key_node, value_node
        for key_node, value_node in merged:
            if str(key_node.value) not in said:
                said.add(str(key_node.value))
                yield key_node, value_node

    def _scalar(self, node: yaml.Node, place: Place) -> object:
        text = str(node.value)
        match node.tag.removeprefix(_TAG):
            case "null":
                return None
            case "bool":
                return text.lower() in ("true", "yes", "on")
            case "int":
                return self._number(text, place, whole=True)
            case "float":
                return self._number(text, place, whole=False)
            case "str" | "timestamp" | "value":
                return text
        self.problems.append((place, f"{shown(node.tag)}: no such type here; possible: texts, numbers, true, false"))
        return None

    def _number(self, text: str, place: Place, *, whole: bool) -> object:
        try:
            number = Decimal(text.replace("_", ""))
        except InvalidOperation:
            number = Decimal("NaN")
        if not number.is_finite():
            self.problems.append((place, f"{quoted(text)} is no decimal number; in quotes it is a text"))
            return None
        return int(number) if whole and number.adjusted() < 1_000 else number


def unknown(word: str, known: list[str]) -> str:
    """``: did you mean 'x'?``, or what is possible."""
    meant = nearest(word, known)
    return f": did you mean {meant!r}?" if meant else f"; possible: {', '.join(known)}"
