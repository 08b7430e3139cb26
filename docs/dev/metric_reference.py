"""The server's metrics as Markdown."""

from __future__ import annotations

from fairpool.server.metric_families import FAMILIES


def metrics() -> str:
    """Every metric with its kind, labels and meaning."""
    told = ["| Metric | Kind | Labels | Meaning |", "|---|---|---|---|"]
    for family in FAMILIES.values():
        labels = ", ".join(f"`{label}`" for label in family.labels)
        buckets = f" Buckets: {', '.join(f'{bound:g}' for bound in family.buckets)} s." if family.buckets else ""
        told.append(f"| `{family.name}` | {family.kind} | {labels} | {family.help}{buckets} |")
    return "\n".join(told)
