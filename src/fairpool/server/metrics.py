"""What the server counts, for Prometheus: calls by route, what rounds did, and what there is at the moment of asking.

`metric_families.py` says which metrics there are. Everything lives in a registry of its own.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from starlette.types import Scope

from fairpool.app.gauges import Gauges
from fairpool.app.metering import RoundReport
from fairpool.core.amounts import WHOLE
from fairpool.server.metric_families import FAMILIES

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4

MAX_SERIES: Final = 5_000
"""Label sets of one metric; what is beyond is counted under "other" in each label. Pools and policies come and go, and
their counts stay until the server restarts."""

# When a series began is of no use here, and would be told once more for each.
disable_created_metrics()  # type: ignore[no-untyped-call]

Series = TypeVar("Series", Counter, Histogram)

Sample = tuple[tuple[str, ...], float]
"""A gauge's label values, in its family's order, and its value."""


class Metrics:
    """Everything that is counted.

    under_way: calls that have begun and not ended. last_call: when the last one began or ended, by time.monotonic.
    """

    def __init__(self) -> None:
        self.under_way = 0
        self.last_call = time.monotonic()
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._known: dict[str, dict[tuple[str, ...], Counter | Histogram]] = {name: {} for name in FAMILIES}
        for family in FAMILIES.values():
            if family.kind == "counter":
                self._counters[family.name] = Counter(family.name, family.help, family.labels, registry=self._registry)
            elif family.kind == "histogram":
                self._histograms[family.name] = Histogram(
                    family.name, family.help, family.labels, buckets=family.buckets, registry=self._registry
                )

    def add(self, name: str, *labels: str, by: float = 1) -> None:
        """Count something. From any thread."""
        self._series(self._counters, name, labels).inc(by)

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Put a value into a histogram. From any thread."""
        self._series(self._histograms, name, labels).observe(value)

    def _series(self, families: Mapping[str, Series], name: str, labels: tuple[str, ...]) -> Series:
        """What counts under these labels. It is kept: finding it takes longer than counting."""
        if not labels:
            return families[name]
        known = self._known[name]
        found = known.get(labels)
        if found is not None:
            return cast("Series", found)
        if len(known) >= MAX_SERIES:
            return families[name].labels(*("other",) * len(labels))
        series = known[labels] = families[name].labels(*labels)
        return series

    def forget(self, workspace: str) -> None:
        """Nothing of that workspace has been counted: it goes, and another one may have its name. From any thread."""
        for name, known in self._known.items():
            at = FAMILIES[name].labels.index("workspace") if "workspace" in FAMILIES[name].labels else None
            for labels in [labels for labels in tuple(known) if at is not None and labels[at] == workspace]:
                known.pop(labels, None)
                with suppress(KeyError):  # it was about to be counted
                    (self._counters.get(name) or self._histograms[name]).remove(*labels)

    def begin(self) -> None:
        """A call begins."""
        self.under_way += 1
        self.last_call = time.monotonic()

    def end(self, scope: Scope, status: int, seconds: float) -> None:
        """A call has ended. The route is a template, so that ids make no new series.

        seconds: until its answer began, without what the caller asked to wait.
        """
        self.under_way -= 1
        self.last_call = time.monotonic()
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = scope.get("fairpool.route", "none")
        workspace = scope.get("fairpool.workspace", NOBODYS)
        self.add("fairpool_http_requests_total", workspace, method, route, str(status))
        self.observe("fairpool_http_request_duration_seconds", seconds, workspace, method, route)

    def meter(self, workspace: str) -> WorkspaceMeter:
        """What counts the rounds of a workspace's scheduler."""
        return WorkspaceMeter(self, workspace)

    def text(self, gauges: Mapping[str, Sequence[Sample]], *, only: str | None = None) -> bytes:
        """Everything, with the gauges given, as Prometheus reads it. only: nothing of other workspaces than this."""
        everything = {**gauges, "fairpool_http_requests_under_way": [((), float(self.under_way))]}
        return generate_latest(_Exposition(self._registry, everything, only))


NOBODYS: Final = ""
"""The label of what concerns no workspace: calls by nobody in particular."""

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class _Exposition:
    """A registry with gauges beside it, as the exposition format's writer wants to see it."""

    def __init__(
        self, registry: CollectorRegistry, gauges: Mapping[str, Sequence[Sample]], only: str | None = None
    ) -> None:
        self._registry = registry
        self._only = only
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        for metric in self._registry.collect():
            yield metric if self._only is None else self._of_one(metric, self._only)
        for name, samples in self._gauges.items():
            family = FAMILIES[name]
            gauge = GaugeMetricFamily(name, family.help, labels=family.labels)
            for labels, value in samples:
                gauge.add_metric(labels, value)
            yield gauge

    def _of_one(self, metric: Metric, workspace: str) -> Metric:
        """The metric with what is told of that workspace, or of none."""
        told = Metric(metric.name, metric.documentation, metric.type, metric.unit)
        told.samples = [
            sample for sample in metric.samples if sample.labels.get("workspace", NOBODYS) in (NOBODYS, workspace)
        ]
        return told


class WorkspaceMeter:
    """See `metering.Meter`."""

    def __init__(self, metrics: Metrics, workspace: str) -> None:
        self._metrics = metrics
        self._workspace = workspace

    def round(self, report: RoundReport) -> None:
        """See `metering.Meter`."""
        add, observe, workspace = self._metrics.add, self._metrics.observe, self._workspace
        add("fairpool_decisions_total", workspace, by=len(report.decisions))
        for took_s in report.decisions:
            observe("fairpool_decision_duration_seconds", took_s, workspace)
        if report.commit_s is not None:
            observe("fairpool_commit_duration_seconds", report.commit_s, workspace)
        if report.submitted:
            add("fairpool_requests_submitted_total", workspace, by=report.submitted)
        for status, count in report.ended.items():
            add("fairpool_requests_ended_total", workspace, status, by=count)
        for grant in report.grants:
            labels = (workspace, grant.pool, grant.policy, grant.profile)
            add("fairpool_grants_total", *labels)
            observe("fairpool_grant_wait_seconds", grant.waited_s, *labels)
        for (pool, reason), count in report.evictions.items():
            add("fairpool_evictions_total", workspace, pool, reason, by=count)
        for code, count in report.rejections.items():
            add("fairpool_rejections_total", workspace, code, by=count)

    def failed(self) -> None:
        """See `metering.Meter`."""
        self._metrics.add("fairpool_rounds_failed_total", self._workspace)


def build_info(version: str, database: str) -> Mapping[str, Sequence[Sample]]:
    """What runs."""
    return {"fairpool_build_info": [((version, platform.python_version(), database), 1.0)]}


def samples(workspace: str, found: Gauges) -> dict[str, list[Sample]]:
    """What there is in a workspace, by metric."""
    rows: dict[str, list[Sample]] = {
        "fairpool_requests": [((workspace, "queued"), found.queued), ((workspace, "active"), found.active)]
    }
    for pool in found.pools:
        for side in ("capacity", "used", "free", "reserved", "borrowed"):
            _amounts(rows, f"fairpool_pool_{side}", getattr(pool, side), workspace, pool.name)
        _counts(rows, "fairpool_pool_nodes", pool.nodes, workspace, pool.name)
    for policy in found.policies:
        for side in ("used", "reserved", "borrowed"):
            _amounts(rows, f"fairpool_policy_{side}", getattr(policy, side), workspace, policy.pool, policy.subject)
    for queue in found.queues:
        labels = (workspace, queue.pool, queue.policy, queue.profile)
        rows.setdefault("fairpool_queue_depth", []).append((labels, queue.depth))
        rows.setdefault("fairpool_queue_oldest_wait_seconds", []).append((labels, queue.oldest_wait_s))
    return rows


def _amounts(rows: dict[str, list[Sample]], name: str, amounts: Mapping[str, int], *labels: str) -> None:
    found = rows.setdefault(name, [])
    found += [((*labels, key), value / WHOLE) for key, value in sorted(amounts.items())]


def _counts(rows: dict[str, list[Sample]], name: str, counts: Mapping[str, int], *labels: str) -> None:
    found = rows.setdefault(name, [])
    found += [((*labels, key), count) for key, count in sorted(counts.items())]
