"""Real demand, with results that are published: Microsoft's Philly trace, where it lies beside this checkout.

`make bench ARGS=simulator` plays all of it; here are the two published means, and two weeks of sharing.
"""

from datetime import UTC, datetime
from functools import cache

import pytest

from benchmarks import philly
from fairpool.core.ids import SECOND
from fairpool.sim.jobs import Job, Order, in_order
from fairpool.sim.ledger import Ledger
from fairpool.sim.owners import Progress

pytestmark = pytest.mark.skipif(not philly.TRACES.is_dir(), reason="the traces are not beside this checkout")

TWO_WEEKS = int(datetime(2017, 10, 15, tzinfo=UTC).timestamp()) * SECOND


def ends(ledger: Ledger) -> dict[str, int]:
    return {job.name: at for job, at in zip(ledger.jobs, ledger.ended, strict=True)}


@cache
def first_jobs() -> tuple[Job, ...]:
    """Oldest first inside a team, whatever runs already: as each team alone does it."""
    return tuple(job for job in philly.oldest_first() if job.submitted_at < TWO_WEEKS)


@cache
def alone() -> dict[str, int]:
    """When they end with each team alone on its GPUs, first come, first served."""
    found: dict[str, int] = {}
    for team in philly.nodes():
        mine = in_order((job for job in first_jobs() if philly.team_of(job) == team), Order.TRACE)
        found |= ends(philly.played(philly.on_a_count(team), mine))
    return found


def test_the_experiment_has_as_many_jobs_as_the_published_one() -> None:
    assert len(philly.jobs()) == philly.JOBS


@pytest.mark.parametrize("team", philly.PUBLISHED_MEAN_WAIT_S)
def test_a_team_alone_on_its_nodes_waits_as_long_as_published_to_the_second(team: str) -> None:
    ledger = philly.played(philly.on_nodes(team), philly.of_team(team))
    assert f"{philly.mean_wait_s(ledger):.2f}" == philly.PUBLISHED_MEAN_WAIT_S[team]


@pytest.mark.parametrize("progress", Progress)
def test_sharing_with_reservations_makes_no_job_later_than_its_team_alone(progress: Progress) -> None:
    ledger = philly.played(philly.shared(), first_jobs(), progress)
    assert [name for name, at in ends(ledger).items() if at > alone()[name]] == []
    assert len(ledger.evictions) > 50, "what was lent was taken back"
    assert sum(at < alone()[name] for name, at in ends(ledger).items()) > 1_000


def test_one_queue_for_all_makes_jobs_later_than_their_team_alone() -> None:
    ledger = philly.played(philly.one_queue(), in_order(first_jobs(), Order.TRACE))
    assert any(at > alone()[name] for name, at in ends(ledger).items()), (
        "without reservations somebody is hurt: the check above can fail"
    )
