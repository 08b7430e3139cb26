"""Demand: parts, fractions, and what quotas count (S2, S3, S4)."""

from __future__ import annotations

import pytest

from fairpool.core.amounts import vector
from fairpool.core.errors import InvalidInput
from fairpool.core.requests import Allocation, Because, Demand, Eviction, Status
from fairpool.testing import builders as make


def test_quotas_count_the_sum_of_the_parts() -> None:
    """S3: unequal parts, too."""
    demand = Demand((vector({"gpu": 8}), vector({"gpu": 4, "mcpu": 1000})))
    assert demand.total == vector({"gpu": 12, "mcpu": 1000})


def test_node_count_means_as_many_equal_parts() -> None:
    """S3."""
    part = vector({"gpu": 2})
    assert Demand.of(part, 3) == Demand((part, part, part))
    assert Demand.of(part) == Demand((part,))


def test_the_same_parts_make_the_same_demand() -> None:
    one, other = Demand((vector({"gpu": 1}),)), Demand((vector({"gpu": 1}),))
    assert one == other
    assert hash(one) == hash(other)
    assert one != Demand.of(vector({"gpu": 1}), 2)


@pytest.mark.parametrize("count", [0, -1])
def test_fewer_than_one_node_is_refused(count: int) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Demand.of(vector({"gpu": 1}), count)
    assert refusal.value.field == "node_count"


def test_a_demand_without_parts_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least one part"):
        Demand(())


@pytest.mark.parametrize("gpus", [1.5, 1.001, 2.25])
def test_a_fraction_above_one_is_refused(gpus: float) -> None:
    """S2: a fraction lives on one device."""
    with pytest.raises(InvalidInput, match="a fraction lives on one device") as refusal:
        Demand((vector({"gpu": gpus}),))
    assert refusal.value.field == "gpu"
    assert refusal.value.value == str(gpus)


@pytest.mark.parametrize("gpus", [0.001, 0.5, 0.999, 1, 2, 64])
def test_a_fraction_below_one_and_whole_numbers_are_taken(gpus: float) -> None:
    """S2."""
    assert Demand((vector({"gpu": gpus}),)).total == vector({"gpu": gpus})


def test_only_gpus_are_bound_to_devices() -> None:
    """Other keys may have any fraction."""
    assert Demand((vector({"tpu": 1.5}),)).total == (("tpu", 1500),)


def test_a_request_is_preemptible_unless_it_says_otherwise() -> None:
    """S4."""
    assert make.request("r").preemptible


def test_live_and_final_statuses() -> None:
    """Section 9."""
    live = {status for status in Status if not status.is_final}
    assert live == {Status.QUEUED, Status.ALLOCATED, Status.PREEMPTING}


def test_an_allocation_that_was_told_to_let_go_is_preempting() -> None:
    held = Allocation(request=make.request("r"), pool=None, policy=None, parts=(), granted_at=make.START, sequence=1)
    eviction = Eviction(cause=None, because=Because.CAPACITY, deadline_at=make.START)
    leaving = Allocation(
        request=held.request, pool=None, policy=None, parts=(), granted_at=make.START, sequence=1, eviction=eviction
    )
    assert (held.status, leaving.status) == (Status.ALLOCATED, Status.PREEMPTING)
