"""The house rules find what they are for: a check that cannot fail is no check."""

import ast
from pathlib import Path

import pytest

from tests.tidy import test_core, test_docs, test_repository, test_tests, tree


def function(source: str) -> ast.FunctionDef:
    node = ast.parse(source).body[-1]
    assert isinstance(node, ast.FunctionDef)
    return node


@pytest.mark.parametrize("source", ["X = {}", "X = []", "X: dict[str, int] = {}", "X = defaultdict(list)"])
def test_a_mutable_global_is_seen(source: str) -> None:
    assert test_core._is_mutable_global(ast.parse(source).body[0])


@pytest.mark.parametrize(
    "source", ["X = ()", "X: Final[Mapping[str, int]] = {}", "X: Mapping[str, int] = {}", "X = 3", "__all__ = ['a']"]
)
def test_a_read_only_global_is_let_be(source: str) -> None:
    assert not test_core._is_mutable_global(ast.parse(source).body[0])


@pytest.mark.parametrize("source", ["datetime.now(UTC)", "datetime.datetime.now()", "date.today()", "open(p)", "id(x)"])
def test_a_look_at_the_process_is_seen(source: str) -> None:
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    assert test_core._asks_the_process(call)


@pytest.mark.parametrize("source", ["def test_x(): f(3)", "def test_x(): pass", "def test_x():\n  for x in y: x.run()"])
def test_a_test_without_a_check_is_seen(source: str) -> None:
    assert not test_tests._checks(function(source), {})


@pytest.mark.parametrize(
    "source",
    [
        "def test_x(): assert f()",
        "def test_x(w): w.expect(a=1)",
        "def test_x():\n  with pytest.raises(E): f()",
        "def test_x(): assert_clean(f())",
    ],
)
def test_a_check_is_recognised(source: str) -> None:
    assert test_tests._checks(function(source), {})


def test_a_check_inside_a_function_of_the_same_file_counts() -> None:
    assert test_tests._checks(function("def test_x(): story(3)"), {"story": function("def story(n): assert n")})


@pytest.mark.parametrize(
    "source",
    ["@pytest.mark.skip\ndef test_x(): ...", "@pytest.mark.skipif(WINDOWS)\ndef test_x(): ...", "pytest.skip()"],
)
def test_a_skip_without_a_reason_is_seen(source: str) -> None:
    assert any(test_tests._skips_without_reason(node) for node in ast.walk(ast.parse(source)))


@pytest.mark.parametrize(
    "source", ["@pytest.mark.skipif(W, reason='no forks')\ndef test_x(): ...", "pytest.skip('no forks')"]
)
def test_a_skip_with_a_reason_is_let_be(source: str) -> None:
    assert not any(test_tests._skips_without_reason(node) for node in ast.walk(ast.parse(source)))


@pytest.mark.parametrize("folder", ["work", "farm", "Users"])
def test_a_path_of_one_machine_is_seen(folder: str) -> None:
    assert test_repository.MACHINE_PATHS.search(f"see /{folder}/project/file.py")
    assert not test_repository.MACHINE_PATHS.search(f"see src/{folder}/project/file.py")


@pytest.mark.parametrize("text", ["Run `make tea` first.", "```\n$ make tea\n```", "```\nmake tea ARGS=x\n```"])
def test_a_named_make_target_is_seen(text: str) -> None:
    assert [match[1] or match[2] for match in test_docs.NAMED.finditer(text)] == ["tea"]


def test_prose_that_says_make_names_no_target() -> None:
    assert not test_docs.NAMED.search("To make sure, we make a plan.")


def test_the_tidy_tests_see_this_file() -> None:
    assert Path(__file__) in tree.files_with_tests()
