"""``python -m tests.crashes``: crash at every commit of the scripted day, and print what came of it."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from tests import postgres
from tests.crashes.databases import PostgresDatabases, SqliteDatabases
from tests.crashes.day import the_day
from tests.crashes.killing import POINTS, Plan, Report, Watch, plainly
from tests.crashes.spoiling import SPOILS


def main() -> int:
    """Returns the exit code: 1 where anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.crashes", description=__doc__)
    parser.add_argument("--store", choices=["sqlite", "postgres"], action="append", help="by default both")
    parser.add_argument("--points", nargs="+", choices=POINTS, default=POINTS, help="where in each")
    parser.add_argument("--step", action="append", default=[], help="crash during such steps only")
    parser.add_argument("--spoil", choices=SPOILS, help="put a mistake in, which must be found")
    parser.add_argument("--every", type=int, default=1, help="crash at each such commit only")
    parser.add_argument("--whole-every", type=int, default=1, help="live each such day to its end, the others briefly")
    parser.add_argument("--json", action="store_true", help="print the reports as JSON")
    given = parser.parse_args()
    plan = Plan(
        every=given.every,
        points=tuple(given.points),
        steps=frozenset(given.step),
        whole_every=given.whole_every,
        wrap=SPOILS[given.spoil] if given.spoil else plainly,
    )
    reports = []
    for store in given.store or ["sqlite", "postgres"]:
        began = time.monotonic()
        reports.append(_run(store, plan))
        took = time.monotonic() - began
        if not given.json:
            sys.stdout.write("\n  ".join([f"{reports[-1]} ({took:.0f} s)", *reports[-1].problems]) + "\n")
    if given.json:
        json.dump([{**asdict(report), "told": str(report)} for report in reports], sys.stdout)
    return int(any(report.problems for report in reports))


def _run(store: str, plan: Plan) -> Report:
    if store == "postgres":
        with postgres.running() as cluster:
            return Watch(PostgresDatabases(cluster), the_day(), plan).run()
    with tempfile.TemporaryDirectory(prefix="fairpool-crashes-") as folder:
        return Watch(SqliteDatabases(Path(folder)), the_day(), plan).run()


if __name__ == "__main__":
    sys.exit(main())
