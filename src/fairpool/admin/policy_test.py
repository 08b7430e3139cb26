"""``fairpool policy test``: scenario files against the rules."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fairpool.sim.scenarios import run_files


def run(paths: Sequence[str]) -> int:
    """Run the files and print the report; 0 all hold, 1 an expectation fails, 2 a file is wrong."""
    outcome = run_files(paths)
    for line in outcome.lines():
        stream = sys.stderr if line.startswith("WRONG") else sys.stdout
        stream.write(line + "\n")
    return outcome.exit_status
