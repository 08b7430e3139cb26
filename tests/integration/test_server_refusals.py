"""Input that is wrong is refused with its field, its value and what is possible, by a real server over a real file.

One row of the table is one refusal: what is sent, the status and slug, the field, and words of the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from fairpool.wire.problems import MEDIA_TYPE
from tests.integration.serving import Answer, Caller, serving

BODY_LIMIT_MB = "0.05"


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRPOOL_BODY_LIMIT_MB", BODY_LIMIT_MB)
        with serving(tmp_path_factory.mktemp("refusals")) as call:
            call.ok("POST", "/pools", {"name": "gpus", "capacity": {"gpu": 8, "licence": 3}})
            call.ok("POST", "/pools", {"name": "gpus-two", "capacity": {"gpu": 2}})
            call.ok("POST", "/policies", policy(reserved={"gpu": 4}))
            call.ok("POST", "/policies", policy(subject="team:blue", reserved={"gpu": 2}))
            call.ok("POST", "/components", {"name": "k8s"})
            yield call


def policy(**fields: object) -> dict[str, object]:
    return {"pool": "gpus", "subject": "team:red", **fields}


def green(**fields: object) -> dict[str, object]:
    return policy(subject="team:green", **fields)


def pool(**fields: object) -> dict[str, object]:
    return {"name": "new", **fields}


def request(**fields: object) -> dict[str, object]:
    return {"demand": {"gpu": 1}, "subjects": ["team:red"], **fields}


@dataclass(frozen=True)
class Row:
    claim: str
    method: str
    path: str
    body: object
    status: int
    slug: str
    field: str | None
    told: tuple[str, ...]


AMOUNT = "0 to 1000000000000000 with at most three fractional digits"

ROWS = [
    Row(
        "negative amount",
        "POST",
        "/pools",
        pool(capacity={"gpu": -1}),
        422,
        "invalid-input",
        "capacity.gpu",
        ("-1", AMOUNT),
    ),
    Row(
        "too precise amount",
        "POST",
        "/pools",
        pool(capacity={"gpu": 0.0001}),
        422,
        "invalid-input",
        "capacity.gpu",
        (AMOUNT,),
    ),
    Row(
        "amount that is no number",
        "POST",
        "/pools",
        pool(capacity={"gpu": "many"}),
        422,
        "invalid-input",
        "capacity.gpu",
        ("many", AMOUNT),
    ),
    Row(
        "amount over 10^15",
        "POST",
        "/pools",
        pool(capacity={"gpu": 10**15 + 1}),
        422,
        "invalid-input",
        "capacity.gpu",
        ("too large", AMOUNT),
    ),
    Row(
        "amount just over 10^15",
        "POST",
        "/pools",
        pool(capacity={"gpu": "1000000000000000.001"}),
        422,
        "invalid-input",
        "capacity.gpu",
        ("too large",),
    ),
    Row(
        "true for an amount",
        "POST",
        "/pools",
        pool(capacity={"gpu": True}),
        422,
        "invalid-input",
        "capacity.gpu",
        ("not a number",),
    ),
    Row(
        "negative demand", "POST", "/requests", request(demand={"gpu": -1}), 422, "invalid-input", "demand.gpu", ("-1",)
    ),
    Row(
        "demand of one and a half GPUs",
        "POST",
        "/requests",
        request(demand={"gpu": 1.5}),
        422,
        "invalid-input",
        "demand.gpu",
        ("1.5", "a fraction below one"),
    ),
    Row("empty key", "POST", "/pools", pool(capacity={"": 1}), 422, "invalid-input", "capacity", ("empty",)),
    Row(
        "key over 63 characters",
        "POST",
        "/pools",
        pool(capacity={"k" * 64: 1}),
        422,
        "invalid-input",
        None,
        ("64 characters", "1 to 63"),
    ),
    Row(
        "key with a space",
        "POST",
        "/pools",
        pool(capacity={"a b": 1}),
        422,
        "invalid-input",
        "capacity.a b",
        ("'a b'",),
    ),
    Row(
        "key with a space in a demand",
        "POST",
        "/requests",
        request(demand={"a b": 1}),
        422,
        "invalid-input",
        "demand.a b",
        ("'a b'",),
    ),
    Row("empty pool name", "POST", "/pools", {"name": ""}, 422, "invalid-input", "name", ("empty",)),
    Row(
        "pool name over 63 characters",
        "POST",
        "/pools",
        {"name": "p" * 64},
        422,
        "invalid-input",
        "name",
        ("64 characters",),
    ),
    Row(
        "pool name with a control character",
        "POST",
        "/pools",
        {"name": "a\x1b[2Jb"},
        422,
        "invalid-input",
        "name",
        ("\\x1b",),
    ),
    Row("second pool of that name", "POST", "/pools", {"name": "gpus"}, 409, "already-exists", None, ("gpus",)),
    Row(
        "reserved over limit",
        "POST",
        "/policies",
        green(reserved={"gpu": 2}, limit={"gpu": 1}),
        422,
        "invalid-rules",
        "reserved.gpu",
        ("2", "at most 1"),
    ),
    Row(
        "limit over capacity",
        "POST",
        "/policies",
        green(limit={"gpu": 9}),
        422,
        "invalid-rules",
        "limit.gpu",
        ("9", "at most 8"),
    ),
    Row(
        "reservations over capacity",
        "POST",
        "/policies",
        green(reserved={"gpu": 3}),
        422,
        "invalid-rules",
        "reserved.gpu",
        ("team:red 4", "at most 8"),
    ),
    Row(
        "policy on a key the pool lacks",
        "POST",
        "/policies",
        green(reserved={"tpu": 1}),
        422,
        "invalid-rules",
        "reserved.tpu",
        ("'tpu'", "gpu"),
    ),
    Row("second policy of a subject", "POST", "/policies", policy(), 409, "already-exists", None, ("team:red", "gpus")),
    Row(
        "unknown kind of subject",
        "POST",
        "/policies",
        policy(subject="squad:red"),
        422,
        "invalid-input",
        "subject",
        ("squad", "team"),
    ),
    Row(
        "shrinking below reservations",
        "PATCH",
        "/pools/gpus",
        {"capacity": {"gpu": 5}},
        422,
        "invalid-rules",
        None,
        ("team:red 4", "team:blue 2", "5"),
    ),
    Row(
        "removing a reserved key",
        "PATCH",
        "/pools/gpus",
        {"capacity": {"gpu": 0}},
        422,
        "invalid-rules",
        None,
        ("gpu",),
    ),
    Row("policy on an unknown pool", "POST", "/policies", policy(pool="gpu"), 404, "not-found", None, ("'gpu'",)),
    Row("unknown pool", "GET", "/pools/nope", None, 404, "not-found", None, ("nope",)),
    Row("unknown policy", "GET", "/policies/nope", None, 404, "not-found", None, ("nope",)),
    Row("unknown component", "GET", "/components/nope", None, 404, "not-found", None, ("nope",)),
    Row("unknown stack", "GET", "/stacks/nope", None, 404, "not-found", None, ("nope",)),
    Row(
        "stack of an unknown component",
        "POST",
        "/stacks",
        {"name": "s", "orchestrator": "nope"},
        404,
        "not-found",
        None,
        ("nope",),
    ),
    Row("unknown request", "GET", "/requests/nope", None, 404, "not-found", None, ("nope",)),
    Row("request for an unknown pool", "POST", "/requests", request(pool="nope"), 404, "not-found", None, ("nope",)),
    Row("unknown run", "GET", "/runs/nope", None, 404, "not-found", None, ("nope",)),
    Row(
        "malformed JSON",
        "POST",
        "/pools",
        b'{"name": "p",\n "capacity": {"gpu": }}',
        400,
        "malformed-body",
        None,
        ("line 2, column 22",),
    ),
    Row("NaN", "POST", "/pools", b'{"name": "p", "capacity": {"gpu": NaN}}', 400, "malformed-body", None, ("NaN",)),
    Row("body over the limit", "POST", "/pools", {"name": "p" * 60_000}, 413, "body-too-large", None, ("52428",)),
    Row(
        "unknown field",
        "POST",
        "/pools",
        pool(capcity={}),
        422,
        "invalid-input",
        "capcity",
        ("did you mean 'capacity'",),
    ),
    Row(
        "unknown query parameter", "GET", "/pools?limt=3", None, 422, "invalid-input", "limt", ("did you mean 'limit'",)
    ),
    Row("unknown view", "GET", "/requests?view=waiting", None, 422, "invalid-input", "view", ("queued", "active")),
    Row(
        "unknown status",
        "GET",
        "/requests?status=waiting",
        None,
        422,
        "invalid-input",
        "status",
        ("queued", "allocated"),
    ),
    Row("cursor that no page gave", "GET", "/requests?cursor=%21", None, 422, "invalid-input", "cursor", ()),
    Row(
        "request that asks for nothing",
        "POST",
        "/requests",
        {"subjects": ["team:red"]},
        422,
        "invalid-input",
        "demand",
        ("gpu",),
    ),
    Row(
        "parts and a demand",
        "POST",
        "/requests",
        request(parts=[{"gpu": 1}]),
        422,
        "invalid-input",
        "parts",
        ("either",),
    ),
    Row(
        "no parts",
        "POST",
        "/requests",
        {"parts": [], "subjects": ["team:red"]},
        422,
        "invalid-input",
        "parts",
        ("one or more",),
    ),
    Row(
        "node twice",
        "POST",
        "/pools",
        pool(nodes=[{"name": "n", "capacity": {"gpu": 1}}] * 2),
        422,
        "invalid-rules",
        "nodes",
        ("'n'", "twice"),
    ),
    Row(
        "key of nodes and pool",
        "POST",
        "/pools",
        pool(capacity={"gpu": 1}, nodes=[{"name": "n", "capacity": {"gpu": 1}}]),
        422,
        "invalid-rules",
        "capacity.gpu",
        ("nodes",),
    ),
    Row(
        "profile of an unknown pool",
        "POST",
        "/profiles",
        {"name": "p", "demand": {"gpu": 1}, "pools": ["nope"]},
        404,
        "not-found",
        None,
        ("nope",),
    ),
    Row("weight of nothing", "POST", "/policies", green(weight=0), 422, "invalid-rules", "weight", ("above 0",)),
    Row(
        "negative grace",
        "POST",
        "/policies",
        green(grace_s=-1),
        422,
        "invalid-input",
        "grace_s",
        ("-1", "0 or more"),
    ),
]


def refused(answer: Answer, status: int, slug: str) -> dict[str, object]:
    assert (answer.status, answer.headers["content-type"]) == (status, MEDIA_TYPE), answer.body
    found: dict[str, object] = answer.json
    assert (found["status"], found["type"]) == (status, slug)
    assert found["title"] and found["detail"]
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.claim)
def test_what_is_wrong_is_named_with_what_is_possible(call: Caller, row: Row) -> None:
    answer = call(row.method, row.path, row.body)
    found = refused(answer, row.status, row.slug)
    if row.field is not None:
        assert row.field in [error["field"] for error in answer.json["errors"]]
    for words in row.told:
        assert words in answer.body.decode() or words in str(found), found
    assert "\x1b" not in answer.json["detail"]


def test_refusals_have_changed_nothing(call: Caller) -> None:
    assert [found["name"] for found in call.ok("GET", "/pools")["items"]] == ["gpus", "gpus-two"]
    assert len(call.ok("GET", "/policies")["items"]) == 2
    assert call.ok("GET", "/requests?view=all")["items"] == []


def test_a_stale_if_match_is_refused_and_says_what_the_version_is_now(call: Caller) -> None:
    stale = call("GET", "/pools/gpus-two").etag
    call.ok("PATCH", "/pools/gpus-two", {"capacity": {"gpu": 3}}, headers={"If-Match": stale})
    found = refused(call("PATCH", "/pools/gpus-two", {"backfill": False}, headers={"If-Match": stale}), 412, "stale")
    assert call("GET", "/pools/gpus-two").etag.strip('"') in str(found["detail"])
    refused(call("DELETE", "/pools/gpus-two", headers={"If-Match": stale}), 412, "stale")


def test_an_ambiguous_id_prefix_lists_what_it_could_mean(call: Caller) -> None:
    ids = [found["id"] for found in call.ok("GET", "/policies")["items"]]
    common = ids[0]
    while not all(found.startswith(common) for found in ids):
        common = common[:-1]
    found = refused(call("GET", f"/policies/{common}"), 409, "ambiguous-name")
    assert len(found["candidates"]) == 2  # type: ignore[arg-type]


def test_a_dry_run_refuses_the_same_and_changes_nothing(call: Caller) -> None:
    refused(call("POST", "/pools?dry_run=true", {"name": "gpus"}), 409, "already-exists")
    call.ok("POST", "/pools?dry_run=true", {"name": "dry", "capacity": {"gpu": 1}})
    refused(call("GET", "/pools/dry"), 404, "not-found")
