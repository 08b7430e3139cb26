"""Tokens, documents of people, and requests that are from now on made as others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairpool.app.records import (
    DOCUMENTS,
    HistoryQuery,
    Kind,
    Leadership,
    RequestQuery,
    TokenRecord,
    WebhookCursor,
)
from fairpool.app.store_errors import InvariantBroken, MissingReference
from fairpool.core.ids import SECOND, Instant
from tests.conformance.store_samples import BLUE, K8S, NOW, RED, Trial, change, document, request


def token(token_id: str = "t1", *, owner: str = "user:alice", at: int = 0, **fields: object) -> TokenRecord:
    made = TokenRecord(
        id=token_id,
        workspace="default",
        name="laptop",
        owner=owner,
        hash="00ff" * 16,
        created_at=Instant(NOW + at),
        created_by="user:root",
    )
    return replace(made, **fields)  # type: ignore[arg-type]  # which they are is the test's business


def test_a_token_comes_back_as_it_was_put_and_is_found_by_its_id(on: Trial) -> None:
    whole = token(expires_at=Instant(NOW + 5), revoked_at=Instant(NOW + 6), last_used_at=Instant(NOW + 7))
    on.commit(tokens=(whole, token("t2")))
    assert on.store.reader.tokens.get("t1") == whole
    assert on.store.reader.tokens.get("t2") == token("t2")
    assert on.store.reader.tokens.get("t3") is None


def test_a_token_that_is_put_again_takes_the_place_of_the_old_one(on: Trial) -> None:
    on.commit(tokens=(token(),))
    on.commit(tokens=(token(revoked_at=Instant(NOW + 1)),))
    assert on.store.reader.tokens.all() == (token(revoked_at=Instant(NOW + 1)),)


def test_a_text_that_cannot_be_kept_is_the_batch_s_mistake_and_no_outage(on: Trial) -> None:
    """Whoever shares a round with it is then served without it."""
    odd = token("t1", name="a\0b")
    try:
        on.commit(tokens=(odd,))
    except InvariantBroken:
        assert on.store.reader.tokens.all() == ()
    else:
        assert on.store.reader.tokens.all() == (odd,)


def test_tokens_are_listed_by_age_and_by_owner(on: Trial) -> None:
    on.commit(tokens=(token("t2", at=2), token("t1", at=3), token("t0", owner="service-account:ci", at=1)))
    assert [one.id for one in on.store.reader.tokens.all()] == ["t0", "t2", "t1"]
    assert [one.id for one in on.store.reader.tokens.all("user:alice")] == ["t2", "t1"]


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_every_kind_of_document_is_kept(on: Trial, kind: Kind) -> None:
    one = document(kind, "one", {"of": [kind.value]})
    on.commit(put=(one,))
    assert on.store.reader.declared.all(kind) == (one,)
    assert one in on.store.load().declared


def test_a_redirected_request_keeps_all_but_whom_it_is_made_as_and_for_what(on: Trial) -> None:
    before = request("r1", subjects=(K8S, RED), profile="half", pool="shared")
    on.commit(inserted=(before, request("r2")))
    after = replace(before.request, subjects=(K8S, BLUE), profile="full", pool="")
    on.commit(redirected=(after,))
    assert on.store.reader.requests.get(["r1"])["r1"] == replace(before, request=after)  # type: ignore[index]
    assert on.store.load().live["r1"].request == after  # type: ignore[index]
    assert [one.id for one in on.store.reader.requests.page(RequestQuery(subject=str(BLUE))).items] == ["r1"]
    assert [one.id for one in on.store.reader.requests.page(RequestQuery(subject=str(RED))).items] == ["r2"]


def test_a_request_may_come_and_be_redirected_in_one_batch(on: Trial) -> None:
    made = request("r1", subjects=(RED,))
    after = replace(made.request, subjects=(BLUE,))
    on.commit(inserted=(made,), redirected=(after,))
    assert on.store.load().live["r1"].request == after  # type: ignore[index]


def test_redirecting_a_request_that_is_not_there_is_refused(on: Trial) -> None:
    with pytest.raises(MissingReference):
        on.commit(redirected=(request("r1").request,))


def test_history_says_from_where_a_change_came(on: Trial) -> None:
    on.commit(changes=(change("r1", source="127.0.0.1, token laptop"), change("r2")))
    found = on.store.reader.history.page(HistoryQuery()).items
    assert [entry.change.source for entry in found] == ["127.0.0.1, token laptop", ""]


def test_a_leader_says_where_it_takes_calls(on: Trial) -> None:
    store = on.store
    taken = store.leases.acquire("b", Instant(NOW + 3600 * SECOND), 3, "http://127.0.0.1:7001")
    assert taken.address == "http://127.0.0.1:7001"
    assert store.leases.current() == taken
    kept = store.leases.renew(taken.token, Instant(NOW + 3601 * SECOND), 3)
    assert kept == Leadership(
        holder="b", token=taken.token, until=Instant(NOW + 3604 * SECOND), address="http://127.0.0.1:7001"
    )


def test_how_far_a_webhook_has_come_is_kept_and_goes_with_it(on: Trial) -> None:
    hook = document(Kind.WEBHOOK, "w1", {"url": "https://example.org"})
    first = WebhookCursor(name=hook.id, seq=7, failures=2, next_try_at=Instant(NOW + 5), last_error="status 500")
    waiting = WebhookCursor(name=f"{hook.id}:waiting", seq=3)
    other = WebhookCursor(name="other", seq=1)
    on.commit(put=(hook,), cursors=(first, waiting, other))
    assert on.store.reader.cursors.all() == {first.name: first, waiting.name: waiting, "other": other}
    told = WebhookCursor(name=hook.id, seq=8)
    on.commit(cursors=(told,))
    assert on.store.reader.cursors.all()[hook.id] == told
    on.commit(drop=((Kind.WEBHOOK, hook.id),))
    assert on.store.reader.cursors.all() == {"other": other}
