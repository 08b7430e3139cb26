"""From files, folders and standard input to documents that are right, or to everything that is wrong with its place."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairpool.wire.manifests.kinds import Document, kind_of, read_document
from fairpool.wire.manifests.places import MisplacedText, Place, Placed, read_text
from fairpool.wire.problems import FieldProblem
from fairpool.wire.reading import InvalidBody

SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "-"


@dataclass(frozen=True, slots=True)
class Written:
    """A document with what is written in the file, which is what is sent to the server."""

    document: Document
    placed: Placed

    def place(self, field: str) -> Place:
        """Where a field of it stands."""
        return self.placed.at(field)


def read_files(paths: Sequence[str]) -> list[Written]:
    """The documents of these files, folders and, for ``-``, of standard input.

    Raises MisplacedText with all that is wrong: with the files, with fields, and documents that are there twice.
    """
    problems: list[tuple[Place, str]] = []
    found: list[Written] = []
    for placed in _placed(paths, problems):
        try:
            found.append(Written(read_document(placed.value), placed))
        except InvalidBody as error:
            problems.extend((placed.at(problem.field), told(problem)) for problem in error.problems)
    problems.extend(_twice(found))
    if problems:
        raise MisplacedText(sorted(problems, key=lambda problem: problem[0]))
    return found


def told(problem: FieldProblem) -> str:
    """What is wrong with a field, in one line."""
    where = f"{problem.field}: " if problem.field else ""
    possible = f" (possible: {problem.possible})" if problem.possible else ""
    return f"{where}{problem.message}{possible}"


def _placed(paths: Sequence[str], problems: list[tuple[Place, str]]) -> Iterator[Placed]:
    for name, text in _texts(paths, problems):
        try:
            yield from read_text(text, name)
        except MisplacedText as error:
            problems.extend(error.problems)


def _texts(paths: Sequence[str], problems: list[tuple[Place, str]]) -> Iterator[tuple[str, str]]:
    seen: set[Path] = set()
    for given in paths:
        for path in _files(given, problems):
            if path is None:
                yield "stdin", sys.stdin.read()
            elif path.resolve() not in seen:  # a file in a folder that is named too
                seen.add(path.resolve())
                text = _text(path, problems)
                if text is not None:
                    yield str(path), text


def _files(given: str, problems: list[tuple[Place, str]]) -> list[Path | None]:
    """The files that a path stands for; None is standard input."""
    path = Path(given)
    if given == STDIN:
        return [None]
    if not path.is_dir():
        return [path]
    inside = sorted(path.rglob("*"))
    found: list[Path | None] = [
        file for file in inside if file.suffix in SUFFIXES and file.is_file() and not _is_hidden(file, path)
    ]
    if not found:
        problems.append((Place(given), f"no file in this folder ends in {', '.join(SUFFIXES)}"))
    return found


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _text(path: Path, problems: list[tuple[Place, str]]) -> str | None:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        problems.append((Place(str(path)), f"cannot be read: {(error.strerror or str(error)).lower()}"))
    except UnicodeDecodeError as error:
        problems.append((Place(str(path)), f"is no UTF-8 text (byte {error.start})"))
    return None


def _twice(found: Sequence[Written]) -> Iterator[tuple[Place, str]]:
    first: dict[tuple[str, str], Written] = {}
    for written in found:
        document = written.document
        before = first.setdefault((document.kind, document.name), written)
        if before is not written:
            place = before.placed.place
            yield written.placed.place, f"{document.kind} {document.name!r} is here a second time; first at {place}"


__all__ = ["STDIN", "SUFFIXES", "Written", "kind_of", "read_files", "told"]
