"""Counts of the server in Prometheus' text format."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping

from starlette.types import Scope

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Calls by route, method and status, and the seconds that they took.

    under_way: calls that have begun and not ended. last_call: when the last one began or ended, by time.monotonic.
    """

    def __init__(self) -> None:
        self.under_way = 0
        self.last_call = time.monotonic()
        self._lock = threading.Lock()
        self._calls: dict[Labels, int] = {}
        self._seconds: dict[Labels, float] = {}

    def begin(self) -> None:
        """A call begins."""
        self.under_way += 1
        self.last_call = time.monotonic()

    def count(self, scope: Scope, status: int, seconds: float) -> None:
        """Count one call that has ended; `route` is the template, so that ids make no new time series."""
        route = scope.get("fairpool.route", "none")
        where = (("method", scope["method"]), ("route", route))
        calls = (*where, ("status", str(status)))
        self.under_way -= 1
        self.last_call = time.monotonic()
        with self._lock:
            self._calls[calls] = self._calls.get(calls, 0) + 1
            self._seconds[where] = self._seconds.get(where, 0.0) + seconds

    def text(self, gauges: Mapping[str, Iterable[tuple[Labels, float]]]) -> str:
        """Everything counted, with the gauges given, as Prometheus reads it."""
        with self._lock:
            calls, seconds = dict(self._calls), dict(self._seconds)
        lines = ["# TYPE fairpool_http_requests_under_way gauge", f"fairpool_http_requests_under_way {self.under_way}"]
        lines.append("# TYPE fairpool_http_requests_total counter")
        lines += [_line("fairpool_http_requests_total", labels, value) for labels, value in sorted(calls.items())]
        lines.append("# TYPE fairpool_http_request_seconds_total counter")
        lines += [_line("fairpool_http_request_seconds_total", labels, v) for labels, v in sorted(seconds.items())]
        for name, values in gauges.items():
            lines.append(f"# TYPE {name} gauge")
            lines += [_line(name, labels, value) for labels, value in values]
        return "\n".join(lines) + "\n"


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{inside}}} {value:g}" if labels else f"{name} {value:g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
