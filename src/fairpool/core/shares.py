"""Shares: what a policy is still owed, and how far it is above what is reserved for it (S21, S23)."""

from __future__ import annotations

from fairpool.core.accounts import Account, PolicyBooks
from fairpool.core.amounts import WHOLE, Amounts

RESOLUTION = 1 << 80
"""Shares are compared as whole numbers of 2^-80, finer than one thousandth in the largest capacity: exact enough that
two shares tie only when they are equal for every practical purpose, and the same on every machine."""


def fits_reservation(used: dict[str, int], amounts: Amounts, books: PolicyBooks) -> bool:
    """Whether `used` and the amounts together stay inside the reservation, on each bounded key of the amounts (S21)."""
    reserved, bounded = books.reserved, books.bounded
    for key, value in amounts:  # noqa: SIM110 (a plain loop is twice as fast, and every pass asks this of every class)
        if key in bounded and used.get(key, 0) + value > reserved.get(key, 0):
            return False
    return True


def is_entitled(books: PolicyBooks, amounts: Amounts, preemptible: bool) -> bool:
    """S21: the demand fits the unused part of the reservation; for firm work only firm work counts as using it."""
    return fits_reservation(books.metered_now if preemptible else books.firm_now, amounts, books)


def dominant_borrowed_share(account: Account, used: dict[str, int]) -> int:
    """The largest, over keys, of usage above reservation divided by capacity, divided by weight; in 2^-80 (S23)."""
    share = 0
    reserved, capacity = account.reserved, account.capacity
    for key, value in used.items():
        over = value - reserved.get(key, 0)
        if over > 0 and key in account.bounded:
            of_key = over * RESOLUTION * WHOLE // ((capacity.get(key) or 1) * account.policy.weight)
            share = max(share, of_key)
    return share
