"""The repository as the tidy tests see it: which files there are, and each one read and parsed once."""

import ast
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fairpool"

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def files() -> tuple[Path, ...]:
    """Every file of the repository, a new one included before it is committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(path for name in sorted(set(listed.split("\0"))) if name and (path := ROOT / name).is_file())


def python_files(*folders: str) -> list[Path]:
    """The Python files below these folders; all of them where none is named."""
    roots = [ROOT / folder for folder in folders] or [ROOT]
    return [path for path in files() if path.suffix == ".py" and any(path.is_relative_to(root) for root in roots)]


def files_with_tests() -> list[Path]:
    """The files whose functions named test_… are run, the shipped conformance suites among them."""
    return python_files("tests", "src/fairpool/testing")


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(text(path), filename=str(path))


def functions(path: Path) -> Iterator[FunctionNode]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, FunctionNode):
            yield node


def tests_in(path: Path) -> Iterator[FunctionNode]:
    return (function for function in functions(path) if function.name.startswith("test_"))


def dotted(node: ast.AST) -> str:
    """`a.b.c` as written, or an empty string for anything that is not a chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (inner := dotted(node.value)):
        return f"{inner}.{node.attr}"
    return ""


def imported_modules(node: ast.AST) -> list[str]:
    """The modules that one import statement names, `from a import b` as both `a` and `a.b`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when the module is imported."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, FunctionNode):
            yield child
            yield from outside_functions(child)


def place(path: Path, line: int | None = None) -> str:
    name = path.relative_to(ROOT).as_posix()
    return name if line is None else f"{name}:{line}"


def none_of(offenders: Iterable[str], reason: str) -> None:
    """Fail with the reason and the places, one a line."""
    found = list(offenders)
    assert not found, f"{reason}\n  " + "\n  ".join(found)
