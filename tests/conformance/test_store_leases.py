"""Who is the one scheduler."""

from __future__ import annotations

import pytest

from fairpool.app.records import Leadership
from fairpool.app.store_errors import StaleLeader
from fairpool.core.ids import SECOND, Instant
from tests.conformance.store_samples import NOW, Trial


def later(seconds: float) -> Instant:
    return Instant(NOW + round(seconds * SECOND))


def test_a_lease_that_is_held_is_not_given_to_another(on: Trial) -> None:
    held = on.store.leases.acquire("second", later(59.999), 60)
    assert held == Leadership(holder="first", token=on.token, until=later(60))
    assert on.store.leases.current() == held


def test_a_lapsed_lease_goes_to_whoever_asks_with_a_higher_token(on: Trial) -> None:
    taken = on.store.leases.acquire("second", later(60), 10)
    assert taken == Leadership(holder="second", token=on.token + 1, until=later(70))


def test_a_renewed_lease_does_not_lapse(on: Trial) -> None:
    renewed = on.store.leases.renew(on.token, later(50), 60)
    assert renewed == Leadership(holder="first", token=on.token, until=later(110))
    assert on.store.leases.acquire("second", later(100), 60).holder == "first"


def test_the_same_holder_gets_a_new_token_that_fences_off_its_earlier_life(on: Trial) -> None:
    again = on.reopened().leases.acquire("first", later(1), 60)
    assert again.token == on.token + 1
    with pytest.raises(StaleLeader):
        on.store.leases.renew(on.token, later(2), 60)


def test_a_released_lease_is_free_at_once_and_its_token_never_comes_again(on: Trial) -> None:
    on.store.leases.release(on.token)
    taken = on.store.leases.acquire("second", later(1), 60)
    assert (taken.holder, taken.token) == ("second", on.token + 1)
    on.store.leases.release(on.token)  # a late release takes nothing from the new holder
    assert on.store.leases.acquire("third", later(2), 60).holder == "second"
