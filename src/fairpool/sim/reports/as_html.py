"""The report as one page of HTML that needs nothing besides."""

from __future__ import annotations

from fairpool.sim.reports.figures import Report


def as_html(report: Report) -> str:
    """The whole page."""
    return report.title
