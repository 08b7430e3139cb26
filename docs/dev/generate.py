"""Write the generated parts of the reference pages from the code: `make docs`, or `--check` to only look.

A generated part of a page sits between two comments, ``<!-- generated: NAME -->`` and ``<!-- end of NAME -->``; what is
around them is written by hand and stays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import command_reference
import http_reference
import metric_reference
import reason_reference
import rights_reference
import simulation_reference

PAGES = Path(__file__).parent.parent / "reference"
PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "commands": ("cli.md", command_reference.commands),
    "exit-codes": ("cli.md", command_reference.exit_codes),
    "rights": ("rights.md", rights_reference.rights),
    "reasons": ("reasons.md", reason_reference.reasons),
    "report": ("simulation-report.md", simulation_reference.fields),
    "report-columns": ("simulation-report.md", simulation_reference.columns),
    "routes": ("http.md", http_reference.routes),
    "query": ("http.md", http_reference.query),
    "problems": ("http.md", http_reference.problems),
    "metrics": ("metrics.md", metric_reference.metrics),
    "schemas": ("http.md", http_reference.schemas),
}
"""Each generated part: the page that it is on, and what makes it."""


def main() -> int:
    """Write the pages, or with ``--check`` name those that are not current; the exit code."""
    stale = []
    for path, current, wanted in _pages():
        if current == wanted:
            continue
        stale.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(wanted, "utf-8")
            print(f"wrote docs/reference/{path.name}")
    if stale and "--check" in sys.argv:
        print(f"not what the code says: {', '.join(stale)}; run: make docs", file=sys.stderr)
        return 1
    return 0


def _pages() -> Iterator[tuple[Path, str, str]]:
    """Each page: where it is, what it says, and what it should say."""
    for name in sorted({page for page, _ in PARTS.values()}):
        path = PAGES / name
        current = wanted = path.read_text("utf-8")
        for part, (page, make) in PARTS.items():
            if page == name:
                wanted = _filled(wanted, part, make(), path)
        yield path, current, wanted


def _filled(text: str, part: str, made: str, path: Path) -> str:
    opening, closing = f"<!-- generated: {part} -->\n", f"<!-- end of {part} -->\n"
    if text.count(opening) != 1 or text.count(closing) != 1:
        raise SystemExit(f"{path.name} needs {opening.strip()} and {closing.strip()}, each once")
    before, _, rest = text.partition(opening)
    return f"{before}{opening}\n{made.strip()}\n\n{closing}{rest.partition(closing)[2]}"


if __name__ == "__main__":
    sys.exit(main())
