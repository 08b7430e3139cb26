"""Every metric that a server has: its name, kind, labels and meaning. The reference page is made from this table.

Labels never name users, requests or runs: how many series there are follows from what administrators declare.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Kind = Literal["counter", "gauge", "histogram"]

CALL_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Buckets of what should take milliseconds, in seconds."""

WAIT_S: Final = (0.01, 0.1, 1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 604_800.0)
"""Buckets of waiting for resources: from at once to a week, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric. buckets: the upper bounds of a histogram's, in its unit."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def _counter(name: str, help_text: str, *labels: str) -> Family:
    return Family(name=name, kind="counter", help=help_text, labels=labels)


def _gauge(name: str, help_text: str, *labels: str) -> Family:
    return Family(name=name, kind="gauge", help=help_text, labels=labels)


def _histogram(name: str, help_text: str, buckets: tuple[float, ...], *labels: str) -> Family:
    return Family(name=name, kind="histogram", help=help_text, labels=labels, buckets=buckets)


_SERVER = (
    _gauge("fairpool_build_info", "1; the labels say what runs.", "version", "python", "database"),
    _gauge("fairpool_leading", "1 where this server decides for the workspace, else 0.", "workspace"),
    _counter("fairpool_http_requests_total", "Calls that were answered.", "workspace", "method", "route", "status"),
    _histogram(
        "fairpool_http_request_duration_seconds",
        "From the arrival of a call to the beginning of its answer, without the time that the caller asked to wait.",
        CALL_S,
        "workspace",
        "method",
        "route",
    ),
    _counter(
        "fairpool_webhook_deliveries_total",
        "Calls to webhooks' receivers, by what became of them: delivered, failed.",
        "workspace",
        "webhook",
        "outcome",
    ),
    _gauge("fairpool_http_requests_under_way", "Calls that have begun and not ended."),
)

_SCHEDULER = (
    _counter("fairpool_decisions_total", "Decisions that were taken (plans that were made).", "workspace"),
    _histogram("fairpool_decision_duration_seconds", "How long a decision took.", CALL_S, "workspace"),
    _histogram(
        "fairpool_commit_duration_seconds", "How long it took to make a round durable in the database.", CALL_S,
        "workspace",
    ),
    _counter("fairpool_rounds_failed_total", "Rounds that could not be committed and were undone.", "workspace"),
    _gauge("fairpool_calls_waiting", "Calls that wait for the scheduler's next round.", "workspace"),
    _counter("fairpool_requests_submitted_total", "Requests that were accepted into the queue.", "workspace"),
    _counter(
        "fairpool_requests_ended_total",
        "Requests that became final: released, preempted, cancelled, expired, rejected.",
        "workspace",
        "status",
    ),
    _counter(
        "fairpool_grants_total",
        "Requests that were granted. Pool and policy are empty for work that no policy governs.",
        "workspace",
        "pool",
        "policy",
        "profile",
    ),
    _histogram(
        "fairpool_grant_wait_seconds",
        "How long granted requests had waited since they were submitted.",
        WAIT_S,
        "workspace",
        "pool",
        "policy",
        "profile",
    ),
    _histogram(
        "fairpool_grant_latency_seconds",
        "From the arrival of a submission to its answer, for those that were granted at once: what deciding and "
        "remembering cost the caller.",
        CALL_S,
        "workspace",
    ),
    _counter(
        "fairpool_evictions_total",
        "Allocations that were told to let go, by why: reclaim, preemption, operator and so on.",
        "workspace",
        "pool",
        "reason",
    ),
    _counter(
        "fairpool_rejections_total",
        "Rejected requests by reason code; one that is impossible in several ways counts under each code.",
        "workspace",
        "code",
    ),
)  # fmt: skip

_NOW = (
    _gauge("fairpool_requests", "Requests that are queued, and that hold something.", "workspace", "status"),
    _gauge("fairpool_pool_capacity", "What a pool's ready nodes and pool-level keys have.", "workspace", "pool", "key"),
    _gauge("fairpool_pool_used", "What is in use, evictions under way included.", "workspace", "pool", "key"),
    _gauge("fairpool_pool_free", "What is in nobody's use.", "workspace", "pool", "key"),
    _gauge("fairpool_pool_reserved", "What the pool's policies reserve, in all.", "workspace", "pool", "key"),
    _gauge("fairpool_pool_borrowed", "What is used beyond reservations, in all.", "workspace", "pool", "key"),
    _gauge("fairpool_pool_nodes", "Nodes by state.", "workspace", "pool", "state"),
    _gauge("fairpool_policy_used", "What a policy's requests use in a pool.", "workspace", "pool", "policy", "key"),
    _gauge("fairpool_policy_reserved", "What a policy reserves.", "workspace", "pool", "policy", "key"),
    _gauge(
        "fairpool_policy_borrowed", "What a policy uses beyond its reservation.", "workspace", "pool", "policy", "key"
    ),
    _gauge(
        "fairpool_queue_depth",
        "Requests that wait for a pool through a policy; one that has several ways to start counts in each.",
        "workspace",
        "pool",
        "policy",
        "profile",
    ),
    _gauge(
        "fairpool_queue_oldest_wait_seconds",
        "How long the request that was queued first has waited, in the same queues.",
        "workspace",
        "pool",
        "policy",
        "profile",
    ),
)

FAMILIES: Final = MappingProxyType({family.name: family for family in (*_SERVER, *_SCHEDULER, *_NOW)})
"""All metrics by name, in the order in which the reference tells them."""
