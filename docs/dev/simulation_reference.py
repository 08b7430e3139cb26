"""What a simulation's report has in JSON, and in CSV, as Markdown: from the models themselves."""

from __future__ import annotations

from typing import Any

from fairpool.sim.reports.as_csv import FIGURES, JOBS
from fairpool.sim.reports.figures import SCHEMA_VERSION, Report


def fields() -> str:
    """Every object of the JSON, the report first, with its fields."""
    schema = Report.model_json_schema(mode="serialization")
    objects = {"Report": schema, **schema["$defs"]}
    told = [f"`schema_version` is {SCHEMA_VERSION}."]
    for name in ("Report", *(name for name in objects if name != "Report")):
        told += ["", f"### {name}", "", " ".join(objects[name].get("description", "").split()), ""]
        told += ["| Field | Is | Means |", "|---|---|---|"]
        told += [_row(field, said) for field, said in objects[name]["properties"].items()]
    return "\n".join(told)


def _row(field: str, said: dict[str, Any]) -> str:
    return f"| `{field}` | {_type(said)} | {said.get('description', '').replace('|', '/')} |"


def _type(said: dict[str, Any]) -> str:
    if "$ref" in said:
        name = said["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in said:
        return " or ".join(_type(one) for one in said["anyOf"])
    if "enum" in said:
        return ", ".join(f"`{value}`" for value in said["enum"])
    if said.get("type") == "array":
        return "pairs" if "prefixItems" in said.get("items", {}) else f"list of {_type(said.get('items', {}))}"
    if said.get("format") == "date-time":
        return "time"
    return {"integer": "whole number", "string": "text", "boolean": "yes or no", "object": "texts by name"}.get(
        said.get("type", ""), said.get("type", "")
    )


def columns() -> str:
    """The columns of both files of CSV."""
    return "\n".join(
        (
            f"- One row for each job and replay: {', '.join(f'`{column}`' for column in JOBS)}.",
            f"- One row for each figure: {', '.join(f'`{column}`' for column in FIGURES)}.",
        )
    )
