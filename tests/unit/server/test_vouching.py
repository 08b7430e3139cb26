"""Who passes a call on says for whom, and is believed where it has the installation's token, for that call alone."""

from __future__ import annotations

from typing import Any

import pytest

from fairpool.server.vouching import HOP, Vouching, was_passed_on

FOLLOWER = "http://10.0.0.2:8700"


def call(client: tuple[str, int] | None = ("192.0.2.7", 40_000), **changes: Any) -> dict[str, Any]:
    headers = [(b"x-request-id", b"r1"), (b"authorization", b"Bearer a")]
    return {"method": "POST", "raw_path": b"/api/v1/pools", "client": client, "headers": headers, **changes}


def passed_on(scope: dict[str, Any], word: str) -> dict[str, Any]:
    """The call as the leader gets it: from the follower's address."""
    return {**scope, "client": ("10.0.0.2", 50_000), "headers": [*scope["headers"], (HOP, word.encode())]}


def test_the_first_address_comes_through() -> None:
    word = Vouching("secret").word(call(), by=FOLLOWER)
    got = passed_on(call(), word)
    assert was_passed_on(got)
    assert Vouching("secret").caller(got) == ("192.0.2.7", 0)
    assert not was_passed_on(call())
    assert Vouching("secret").caller(call()) is None


def test_a_caller_without_an_address_has_none_at_the_leader_either() -> None:
    word = Vouching("secret").word(call(client=None), by=FOLLOWER)
    assert Vouching("secret").caller(passed_on(call(), word)) == ("", 0)


@pytest.mark.parametrize(
    "word", ["", " ", FOLLOWER, f"{FOLLOWER} 192.0.2.9", f"{FOLLOWER} 192.0.2.9 " + "0" * 64, "\xff \xff \xff"]
)
def test_what_is_made_up_is_not_believed(word: str) -> None:
    headers = [*call()["headers"], (HOP, word.encode("latin-1"))]
    assert Vouching("secret").caller(call(headers=headers)) is None


@pytest.mark.parametrize(
    "other",
    [
        {"method": "DELETE"},
        {"raw_path": b"/api/v1/users"},
        {"headers": [(b"x-request-id", b"r2"), (b"authorization", b"Bearer a")]},
        {"headers": [(b"x-request-id", b"r1"), (b"authorization", b"Bearer b")]},
    ],
)
def test_a_proof_is_of_one_call(other: dict[str, Any]) -> None:
    word = Vouching("secret").word(call(), by=FOLLOWER)
    assert Vouching("secret").caller(passed_on(call(**other), word)) is None


def test_another_address_needs_another_proof() -> None:
    word = Vouching("secret").word(call(), by=FOLLOWER)
    assert Vouching("secret").caller(passed_on(call(), word.replace("192.0.2.7", "192.0.2.8"))) is None


def test_who_has_another_token_is_not_believed_and_who_has_none_believes_nobody() -> None:
    assert Vouching("secret").caller(passed_on(call(), Vouching("other").word(call(), by=FOLLOWER))) is None
    assert Vouching().caller(passed_on(call(), Vouching().word(call(), by=FOLLOWER))) is None
