"""``fairpool policy test FILE…``: scenario files against the rules, without any server."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fairpool.sim.scenarios import run_files


def run(files: Sequence[str]) -> int:
    """Run the files and report. Returns 0 when all hold, 1 when an expectation fails, 2 when a file is wrong."""
    outcome = run_files(files)
    stream = sys.stderr if outcome.faults else sys.stdout
    stream.write("\n".join(outcome.lines()) + "\n")
    return outcome.exit_status
