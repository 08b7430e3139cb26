"""``fairpool policy test FILE…``: scenario files against the rules, without any server."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fairpool.admin.rule_files import read_rules
from fairpool.sim.scenario_file import Surroundings
from fairpool.sim.scenario_given import RulesFault
from fairpool.sim.scenarios import Outcome, run_files


def run(files: Sequence[str], rules: Sequence[str] = ()) -> int:
    """Run the files and report. Returns 0 when all hold, 1 when an expectation fails, 2 when a file is wrong.

    rules: files and folders of rules that every scenario is given.
    """
    try:
        given = tuple(read_rules(rules)) if rules else ()
    except RulesFault as fault:
        outcome = Outcome(faults=fault.faults)
    else:
        outcome = run_files(files, Surroundings(given, read_rules))
    stream = sys.stderr if outcome.faults else sys.stdout
    stream.write("\n".join(outcome.lines()) + "\n")
    return outcome.exit_status
