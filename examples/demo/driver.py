"""One team's program: runs its pipeline on its stack and writes down what came out. Started by run.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import training


def main(which: str, report: str) -> None:
    """Run the pipeline of research or production."""
    if which == "research":
        results = training.research([16, 32, 48, 64], stack="research")
    else:
        results = [training.production(64, stack="production")]
    told = [
        {"width": r.width, "epochs": r.epochs, "accuracy": r.accuracy, "resumed": r.resumed_at, "aborted": r.aborted_at}
        for r in results
    ]
    Path(report).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
