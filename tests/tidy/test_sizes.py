"""Sizes: no file becomes the place where everything goes."""

from tests.tidy import tree

LONGEST_FUNCTION = 70  # lines, from def to end; 50 is what to aim for
LONGEST_MODULE = 500  # lines; 400 is what to aim for
# Names that say where code was put, not what it does.
NAMELESS = {"util", "utils", "helper", "helpers", "common", "misc", "shared", "stuff"}


def test_no_function_is_longer_than_can_be_read_at_once() -> None:
    tree.none_of(
        (
            f"{tree.place(path, function.lineno)} {function.name}: {length} lines"
            for path in tree.python_files()
            for function in tree.functions(path)
            if (length := (function.end_lineno or function.lineno) - function.lineno + 1) > LONGEST_FUNCTION
        ),
        f"A function of more than {LONGEST_FUNCTION} lines does more than one thing: name the parts.",
    )


def test_no_module_becomes_the_place_where_everything_goes() -> None:
    tree.none_of(
        (
            f"{tree.place(path)}: {length} lines"
            for path in tree.python_files()
            if (length := len(tree.text(path).splitlines())) > LONGEST_MODULE
        ),
        f"A module of more than {LONGEST_MODULE} lines has two subjects: split it by what it is about.",
    )


def test_every_module_is_named_after_what_it_does() -> None:
    tree.none_of(
        (
            tree.place(path)
            for path in tree.python_files()
            if NAMELESS & {part.removesuffix(".py") for part in path.relative_to(tree.ROOT).parts}
        ),
        "There is no utils: a function goes where its subject is, or its subject gets a module.",
    )
