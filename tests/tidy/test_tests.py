"""Tests about tests: each states a claim, checks it, and depends on neither the clock nor luck."""

import ast
from pathlib import Path

from tests.tidy import tree

# The one place that waits for something outside the process, and polls for it.
WAITS = tree.ROOT / "tests" / "waiting.py"
# A call whose name begins so checks something.
CHECKS = ("assert", "expect", "check", "verify", "ensure", "none_of", "raises", "warns", "fail", "wait_until")
SLEEPS = {"time.sleep", "asyncio.sleep", "anyio.sleep", "sleep"}
SKIPS = {"pytest.skip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail", "pytest.xfail"}
WORDS_OF_A_CLAIM = 4
FUNCTIONS_AND_CLASSES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def test_every_test_checks_something() -> None:
    tree.none_of(
        (
            f"{tree.place(path, test.lineno)} {test.name}"
            for path in tree.files_with_tests()
            for test in tree.tests_in(path)
            if not _checks(test, {function.name: function for function in tree.functions(path)})
        ),
        "A test that checks nothing passes for ever.",
    )


def test_every_test_states_its_claim() -> None:
    tree.none_of(
        (
            f"{tree.place(path, test.lineno)} {test.name}"
            for path in tree.files_with_tests()
            for test in tree.tests_in(path)
            if not ast.get_docstring(test) and len(test.name.split("_")) - 1 < WORDS_OF_A_CLAIM
        ),
        f"A test's name (of {WORDS_OF_A_CLAIM} words or more) or its docstring says what is true if it passes.",
    )


def test_no_test_sleeps_instead_of_waiting_for_what_it_wants() -> None:
    tree.none_of(
        (
            f"{tree.place(path, node.lineno)}: {ast.unparse(node)[:60]}"
            for path in tree.files_with_tests()
            if path != WAITS
            for node in ast.walk(tree.parsed(path))
            if isinstance(node, ast.Call)
            and tree.dotted(node.func) in SLEEPS
            and not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
        ),
        "A sleep is too long on a fast machine and too short on a slow one: a virtual clock, or tests.waiting.",
    )


def test_no_test_is_skipped_without_saying_why() -> None:
    tree.none_of(
        (
            f"{tree.place(path, getattr(node, 'lineno', None))}: {ast.unparse(node)[:60]}"
            for path in tree.files_with_tests()
            for node in ast.walk(tree.parsed(path))
            if _skips_without_reason(node)
        ),
        "A skipped test is a hole with a label: give the reason.",
    )


def test_no_test_is_switched_off_by_its_name() -> None:
    tree.none_of(
        (
            f"{tree.place(path, function.lineno)} {function.name}"
            for path in _collected_from()
            for function in tree.functions(path)
            if function.name.startswith(("_test_", "xtest_", "disabled_test_", "no_test_"))
        ),
        "A test that is renamed out of the way is forgotten: delete it, or skip it with a reason.",
    )


def _collected_from() -> list[Path]:
    return [path for path in tree.files_with_tests() if path.name.startswith("test_")]


def _checks(node: ast.AST, local: dict[str, tree.FunctionNode], seen: frozenset[str] = frozenset()) -> bool:
    """Whether it asserts, or calls something that does by its name, or a function of its file that does."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assert):
            return True
        if isinstance(inner, ast.Call):
            name = tree.dotted(inner.func).split(".")[-1] or getattr(inner.func, "attr", "")
            if name.lstrip("_").startswith(CHECKS):
                return True
            if name in local and name not in seen and _checks(local[name], local, seen | {name}):
                return True
    return False


def _skips_without_reason(node: ast.AST) -> bool:
    if isinstance(node, FUNCTIONS_AND_CLASSES):
        return any(tree.dotted(decorator) in SKIPS for decorator in node.decorator_list)
    if not isinstance(node, ast.Call) or tree.dotted(node.func) not in SKIPS:
        return False
    given = [keyword.value for keyword in node.keywords if keyword.arg in {"reason", "msg"}]
    if not tree.dotted(node.func).endswith(("skipif", "mark.xfail")):
        given += node.args  # pytest.skip("why") and mark.skip("why") take it first; the others take a condition
    return not any(not isinstance(value, ast.Constant) or value.value for value in given)
