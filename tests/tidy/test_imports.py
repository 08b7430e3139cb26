"""What import-linter cannot say: which modules the core may import, where a lazy import stands, who is placed."""

import ast
import configparser

from tests.tidy import tree

# All that the core needs of the standard library. None of it reads a clock, draws a number or talks to the machine.
# `datetime` is here for its types; test_core.py holds that nothing asks it for the time.
CORE_MAY_IMPORT = {
    "__future__",
    "abc",
    "bisect",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "heapq",
    "itertools",
    "math",
    "operator",
    "re",
    "types",
    "typing",
}
# Top-level modules that are neither lane: the package's front door and `python -m fairpool`.
FRONT = {"__main__"}


def test_core_imports_only_what_decides_the_same_everywhere() -> None:
    tree.none_of(
        (
            f"{tree.place(path, node.lineno)} imports {module}"
            for path in tree.python_files("src/fairpool/core")
            for node in ast.walk(tree.parsed(path))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for module in tree.imported_modules(node)[:1]
            if module.split(".")[0] not in CORE_MAY_IMPORT and not module.startswith("fairpool.core")
        ),
        "The core is a function of the world and the time it is given; a module joins CORE_MAY_IMPORT only if "
        "it keeps that true.",
    )


def test_the_command_line_loads_the_server_lane_only_when_a_command_needs_it() -> None:
    tree.none_of(
        (
            f"{tree.place(path, getattr(node, 'lineno', None))} imports {module}"
            for path in tree.python_files("src/fairpool/cli")
            for node in tree.outside_functions(tree.parsed(path))
            for module in tree.imported_modules(node)[:1]
            if module.startswith("fairpool.admin") or (module == "fairpool" and "admin" in ast.unparse(node))
        ),
        "The base install has no server lane: import fairpool.admin inside the function that runs the command.",
    )


def test_no_module_imports_by_a_name_that_the_import_rules_cannot_see() -> None:
    tree.none_of(
        (
            f"{tree.place(path, node.lineno)} imports {ast.unparse(node.args[0])}"
            for path in tree.python_files("src")
            for node in ast.walk(tree.parsed(path))
            if isinstance(node, ast.Call) and tree.dotted(node.func).split(".")[-1] in {"import_module", "__import__"}
            if node.args and isinstance(node.args[0], ast.Constant)
        ),
        "An import by a literal name goes round the import rules: write an import statement.",
    )


def test_every_top_level_package_is_placed_in_one_lane() -> None:
    rules = configparser.ConfigParser()
    rules.read_string(tree.text(tree.ROOT / ".importlinter"))
    placed = {
        name.strip(" ()\n")
        for lane in ("server-lane", "client-lane")
        for line in rules[f"importlinter:contract:{lane}"]["layers"].split("\n")
        for name in line.split("|")
    }
    there = {path.relative_to(tree.PACKAGE).parts[0].removesuffix(".py") for path in tree.python_files("src/fairpool")}
    tree.none_of(
        sorted(there - placed - FRONT - {"__init__"}),
        "A new top-level package or module is given its layer in .importlinter, and a line in the architecture.",
    )


def test_migrations_import_no_application_code() -> None:
    tree.none_of(
        (
            f"{tree.place(path, getattr(node, 'lineno', None))} imports {module}"
            for path in tree.python_files("src/fairpool/store/migrations")
            if path.parent.name == "versions"
            for node in ast.walk(tree.parsed(path))
            for module in tree.imported_modules(node)[:1]
            if module.split(".")[0] == "fairpool"
        ),
        "A migration is what the schema was on its day: code that changes later would change the past.",
    )
