"""Of others' requests, field by field: nothing that is not meant to be told gets through, whatever is in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairpool.server.redaction import foreign
from fairpool.wire.requests import AllocationView, DeviceView, EvictionView, PlacementView, ReasonView, RequestView
from fairpool.wire.values import RequestStatus

AT = datetime(2026, 11, 21, tzinfo=UTC)
PRIVATE = st.text(alphabet="xyz", min_size=3, max_size=12).map(lambda text: f"secret-{text}")
SUBJECTS = st.lists(
    st.one_of(PRIVATE.map(lambda name: f"user:{name}"), PRIVATE.map(lambda name: f"service-account:{name}")), min_size=1
)


@st.composite
def views(draw: st.DrawFn) -> RequestView:
    """A request with something private wherever a request can have it."""
    word, owner = draw(PRIVATE), draw(SUBJECTS)[0]
    held: Any = AllocationView(
        pool="shared",
        policy="p1",
        subject=owner,
        parts=[PlacementView(node=word, demand={"gpu": 1}, devices=[DeviceView(index=3)])],
        granted_at=AT,
        in_share=False,
    )
    return RequestView(
        id="r1",
        version=2,
        status=draw(st.sampled_from(RequestStatus)),
        name=word,
        demand={"gpu": 1},
        subjects=["component:local", "team:nlp", owner],
        profile=word,
        lease_until=AT,
        retry_of=word,
        run=word,
        step=word,
        labels={word: word, "command": word},
        idempotency_key=word,
        created_at=AT,
        queued_at=AT,
        allocation=held,
        eviction=EvictionView(cause=word, policy=owner),
        reasons=[ReasonView(code="POLICY_GONE", message=word)],
        ended_by=owner,
    )


@given(views())
def test_no_private_word_is_told(view: RequestView) -> None:
    assert "secret-" in view.model_dump_json()
    assert "secret-" not in foreign(view).model_dump_json()


@given(views())
def test_the_team_the_demand_and_since_when_are_told(view: RequestView) -> None:
    told = foreign(view)
    assert told.foreign
    assert (told.subjects, told.demand, told.queued_at, told.status) == (
        ["team:nlp"],
        view.demand,
        view.queued_at,
        view.status,
    )


@given(views())
def test_redacting_twice_changes_nothing(view: RequestView) -> None:
    assert foreign(foreign(view)) == foreign(view)


def test_a_field_that_is_new_is_told_to_nobody_before_somebody_decides_so() -> None:
    """Whoever adds a field to requests comes here and says whether others may see it."""
    told = {"id", "version", "status", "demand", "parts", "subjects", "pool", "preemptible", "priority", "foreign"}
    told |= {"created_at", "queued_at", "allocation", "eviction"}
    hidden = {"name", "profile", "max_runtime_s", "wait_timeout_s", "lease_s", "lease_until", "retry_of", "run", "step"}
    hidden |= {"labels", "idempotency_key", "ended_at", "reasons", "ended_by"}
    assert set(RequestView.model_fields) == told | hidden
