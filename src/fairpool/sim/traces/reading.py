"""What all readers of traces share: files that may be compressed, and complaints that name their place."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, NoReturn

from fairpool.core.errors import InvalidInput
from fairpool.core.ids import SECOND, Instant


class TraceFault(Exception):
    """A trace that cannot be read: in which file and line, and which field."""

    def __init__(self, message: str, *, file: str, line: int = 0, field: str = "") -> None:
        place = f"{file}:{line}" if line else file
        super().__init__(f"{place}: {field}: {message}" if field else f"{place}: {message}")
        self.message = message
        self.file = file
        self.line = line
        self.field = field


@contextmanager
def opened(path: Path) -> Iterator[IO[str]]:
    """A text file, unpacked where its name ends in ``.gz``. Raises TraceFault where it cannot be read."""
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8-sig")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8-sig", newline="") as stream
        ):
            yield stream
    except (OSError, EOFError) as error:
        raise TraceFault(_told(error), file=str(path)) from None
    except UnicodeDecodeError:
        raise TraceFault("is not text in UTF-8", file=str(path)) from None


def _told(error: OSError | EOFError) -> str:
    if isinstance(error, gzip.BadGzipFile | EOFError):
        return "is not a whole gzip file"
    assert isinstance(error, OSError)
    return f"cannot be read: {error.strerror or error}"


def instant_of(at: datetime) -> Instant:
    """The moment, to the microsecond; of UTC where it names no zone. A float of seconds would round."""
    known = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return Instant(int(known.replace(microsecond=0).timestamp()) * SECOND + known.microsecond)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table, by column."""

    cells: Mapping[str, str]
    file: str
    line: int

    def wrong(self, field: str, message: str) -> NoReturn:
        """Refuse a cell."""
        raise TraceFault(message, file=self.file, line=self.line, field=field)

    def text(self, field: str) -> str:
        """What the cell says, without spaces around it; "" where there is none."""
        return (self.cells.get(field) or "").strip()

    def number(self, field: str, *, least: int = 0) -> int:
        """A whole number; a fraction of zero (``3.0``) is none."""
        said = self.text(field)
        whole, _, rest = said.partition(".")
        try:
            value = int(whole)
        except ValueError:
            self.wrong(field, f"{said!r} is no whole number")
        if rest.strip("0"):
            self.wrong(field, f"{said!r} is no whole number")
        if value < least:
            self.wrong(field, f"{value} is below {least}")
        return value

    def refused(self, error: InvalidInput) -> NoReturn:
        """Refuse the line, as the core does."""
        raise TraceFault(error.message, file=self.file, line=self.line, field=error.field) from None


def table(stream: IO[str], path: Path, columns: tuple[str, ...]) -> Iterator[Row]:
    """The lines of a table with a header; blank ones are passed over. Raises TraceFault where a column is missing."""
    reader = csv.DictReader(stream)
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        there = ", ".join(reader.fieldnames or ()) or "nothing"
        raise TraceFault(f"has no column {missing[0]!r}; its first line has {there}", file=str(path), line=1)
    for cells in reader:
        if any((value or "").strip() for key, value in cells.items() if key is not None):
            yield Row(cells, str(path), reader.line_num)
