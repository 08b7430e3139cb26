"""The report as JSON, and the schema of that."""

from __future__ import annotations

import json

from fairpool.sim.reports.figures import Report


def as_json(report: Report) -> str:
    """The report, a line for each figure; times are UTC in ISO 8601."""
    return report.model_dump_json(indent=1) + "\n"


def schema() -> str:
    """The JSON Schema of the report; `schema_version` in it says which."""
    return json.dumps(Report.model_json_schema(mode="serialization"), indent=2) + "\n"
