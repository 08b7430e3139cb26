"""The core decides the same thing for the same world and time: what could change that is not written there."""

import ast
from collections.abc import Sequence
from pathlib import Path

from tests.tidy import tree

# Builtins whose answer depends on the process, the machine or the hash seed.
NOT_A_FUNCTION_OF_ITS_ARGUMENTS = {"open", "print", "input", "eval", "exec", "breakpoint", "globals", "id", "hash"}
CLOCKS = {"now", "utcnow", "today", "fromtimestamp"}
MUTABLE_DISPLAYS = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
MUTABLE_CALLS = {"list", "dict", "set", "bytearray", "defaultdict", "deque", "Counter", "OrderedDict"}
# A table annotated as one of these can be read only; the type checker holds it.
READ_ONLY = ("Mapping[", "frozenset[", "tuple[", "Sequence[", "Set[")

CORE = "src/fairpool/core"


def test_core_counts_in_whole_numbers() -> None:
    tree.none_of(
        (
            f"{tree.place(path, node.lineno)}: {node.value!r}"
            for path in tree.python_files(CORE)
            for node in ast.walk(tree.parsed(path))
            if isinstance(node, ast.Constant) and isinstance(node.value, float)
        ),
        "A float is a rounding error that waits: amounts are integer thousandths, ratios are Fractions.",
    )


def test_core_keeps_no_state_between_calls() -> None:
    tree.none_of(
        (
            f"{tree.place(path, node.lineno)}: {ast.unparse(node)[:60]}"
            for path in tree.python_files(CORE)
            for node in tree.parsed(path).body
            if _is_mutable_global(node)
        ),
        "A mutable module global is memory that no argument shows: use a tuple, a frozenset, or annotate a Mapping.",
    )


def test_core_rebinds_no_global() -> None:
    tree.none_of(
        (
            f"{tree.place(path, node.lineno)}: {ast.unparse(node)}"
            for path in tree.python_files(CORE)
            for node in ast.walk(tree.parsed(path))
            if isinstance(node, ast.Global)
        ),
        "A rebound global is memory that no argument shows.",
    )


def test_core_asks_neither_clock_nor_machine() -> None:
    tree.none_of(
        (
            f"{tree.place(path, node.lineno)}: {ast.unparse(node)[:60]}"
            for path in tree.python_files(CORE)
            for function in [None, *tree.functions(path)]
            for node in _calls(path, function)
            if _asks_the_process(node)
            # Hashing its own fields is what __hash__ is for; a frozen value may work it out once, when it is made.
            and (function is None or function.name not in {"__hash__", "__post_init__"})
        ),
        "Time, ids and randomness are arguments; what depends on the process cannot be replayed.",
    )


def _is_mutable_global(node: ast.stmt) -> bool:
    names: Sequence[ast.expr]
    if isinstance(node, ast.AnnAssign):
        if ast.unparse(node.annotation).removeprefix("Final[").startswith(READ_ONLY):
            return False
        names, value = [node.target], node.value
    elif isinstance(node, ast.Assign):
        names, value = node.targets, node.value
    else:
        return False
    if any(tree.dotted(name) == "__all__" for name in names):
        return False
    if isinstance(value, ast.Call):
        return tree.dotted(value.func).split(".")[-1] in MUTABLE_CALLS
    return isinstance(value, MUTABLE_DISPLAYS)


def _calls(path: Path, function: tree.FunctionNode | None) -> list[ast.Call]:
    """The calls of one function, those of functions inside it apart; of the module's own level where there is none."""
    top = tree.parsed(path) if function is None else function
    return [node for node in tree.outside_functions(top) if isinstance(node, ast.Call)]


def _asks_the_process(call: ast.Call) -> bool:
    *owner, name = tree.dotted(call.func).split(".")
    if not owner:
        return name in NOT_A_FUNCTION_OF_ITS_ARGUMENTS
    return name in CLOCKS and owner[-1] in {"datetime", "date", "dt"}
