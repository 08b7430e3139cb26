"""What a real server refuses reaches the program as an exception that says what is possible, and nothing is held."""

from __future__ import annotations

import pytest

from tests.e2e.sdk.conftest import Installation

# fmt: off
ROWS: list[tuple[str, dict[str, object], str, str]] = [
    ("pool", {"gpu_count": 1, "pool": "gpuss"}, "HoldError", "no pool 'gpuss'; did you mean 'gpus'?"),
    ("profile", {"profile": "big"}, "HoldError", "no profile 'big'; fairpool profile list"),
    ("component", {"gpu_count": 1, "component": "loca"}, "HoldError", "no component 'loca'; did you mean 'local'?"),
    ("subject", {"gpu_count": 1, "subjects": ["squad:x"]}, "HoldError", "'squad' is no kind of subject (possible:"),
    ("too many", {"gpu_count": 9, "pool": "gpus"}, "HoldError", "9 gpu is asked for, pool gpus has 2 in all"),
]
# fmt: on


def test_what_a_server_refuses_says_what_is_possible(machine: Installation) -> None:
    machine.pool("gpus", gpu=2)
    machine.policy("gpus", "local")
    cases = [fields for _, fields, _, _ in ROWS]
    told = machine.run(
        f"""
        from fairpool import hold
        for fields in {cases!r}:
            try:
                with hold(**fields):
                    print("held")
            except Exception as error:
                print(f"{{type(error).__name__}}: {{error}}".replace(chr(10), " "))
        """
    ).splitlines()
    assert len(told) == len(ROWS)
    for line, (claim, _, kind, words) in zip(told, ROWS, strict=True):
        assert line.startswith(f"{kind}: "), claim
        assert words in line, claim
    assert set(machine.statuses()) <= {"rejected"}


@pytest.mark.parametrize(
    ("environment", "kind", "words"),
    [
        ({"FAIRPOOL_SERVER": "nonsense"}, "Refused", "'nonsense' is no address; possible: http(s)://HOST:PORT"),
        ({"FAIRPOOL_SERVER": "http://127.0.0.1:1"}, "Unreachable", "nothing listens there"),
        ({"FAIRPOOL_DATA_DIR": "/proc/data"}, "Unreachable", "the data folder cannot be used: /proc/data"),
    ],
    ids=["no address", "no server", "no folder"],
)
def test_a_server_that_cannot_be_is_said(
    machine: Installation, environment: dict[str, str], kind: str, words: str
) -> None:
    told = machine.run(
        """
        from fairpool import hold
        try:
            with hold(gpu_count=1):
                print("held")
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
        """,
        **environment,
    )
    assert told.startswith(f"{kind}: ")
    assert words in told
