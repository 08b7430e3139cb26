"""What `make mutation` changes, and that a test which looks notices."""

from pathlib import Path

from fairpool.core import shares
from tests.mutation.mutants import mutants_of
from tests.mutation.running import CORE, function_of

CODE = '''
LIMIT = 3

def first(values: list[int], most: int = 2) -> int | None:
    """Text stays as it is."""
    assert len(values) > 0
    for value in values:
        if value < most and not value == 1:
            return value
    raise ValueError("none below " + str(most))
'''


def test_a_mutant_changes_what_functions_do_and_neither_text_nor_defaults_nor_assertions(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(CODE, encoding="utf-8")
    changes = [(mutant.was, mutant.now) for mutant in mutants_of(tmp_path / "sample.py")]
    condition = "value < most and (not value == 1)"
    assert changes == [
        (condition, f"not ({condition})"),
        (condition, "value < most or not value == 1"),
        ("value < most", "value <= most"),
        ("not value == 1", "value == 1"),
        ("value == 1", "value != 1"),
        ("1", "2"),
        ("return value", "return None"),
        ("raise ValueError('none below ' + str(most))", "pass"),
    ]


def test_the_code_of_a_mutant_takes_the_place_of_its_function() -> None:
    mutant = next(each for each in mutants_of(CORE / "shares.py") if each.was == "True")
    function = function_of(mutant)
    assert function is shares.fits_reservation
    assert function.__code__.co_freevars == mutant.code.co_freevars
    assert function.__code__.co_consts != mutant.code.co_consts
