"""`make mutation`: which changes of the core's code no test notices.

python -m tests.mutation [MODULE…] [--share 0.1] [--seed 1] [--log FILE] [--again FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.mutation.running import Verdict

TESTS = ("tests/unit/core", "tests/scenarios", "tests/property")
ELSEWHERE = (
    "tests/property/test_simulator_is_the_server.py",  # about the application
    "tests/property/test_invariants.py::test_the_hash_seed_changes_nothing",  # runs in processes of its own
    "tests/unit/core/test_what_a_round_costs.py::test_ten_kinds_cost_eleven_looks_however_many_wait[20000]",  # as 1000
)
THOROUGHNESS = "0.1"
"""The properties of the core are tried in a tenth of the usual worlds: what a mutant does shows in few, or in none."""


def main() -> int:
    """Run, and print what survived."""
    os.environ |= {"HYPOTHESIS_PROFILE": "mutation", "FAIRPOOL_THOROUGHNESS": THOROUGHNESS}
    import pytest

    from tests.mutation.mutants import Mutant, mutants_of
    from tests.mutation.running import CORE, Mutating

    asked = _arguments(sorted(path.stem for path in CORE.glob("*.py") if path.stem != "__init__"))
    every = [mutant for module in asked.modules for mutant in mutants_of(CORE / f"{module}.py")]
    if asked.again is not None:
        survived = {(each["module"], each["change"]) for each in _read(asked.again) if not each["by"]}
        chosen = [mutant for mutant in every if (mutant.module, mutant.change) in survived]
    else:
        chosen = random.Random(asked.seed).sample(every, max(1, round(len(every) * asked.share)))
    print(f"{len(chosen)} of {len(every)} mutants in {len(asked.modules)} modules", file=sys.stderr)
    verdicts: list[Verdict] = []

    def told(verdict: Verdict) -> None:
        verdicts.append(verdict)
        _log(asked.log, verdict.mutant, verdict.by)
        if verdict.survived:
            print(f"survived ({len(verdicts)} of {len(chosen)}): {verdict.mutant}", file=sys.stderr, flush=True)

    def _log(log: Path | None, mutant: Mutant, by: str) -> None:
        if log is not None:
            with log.open("a", encoding="utf-8") as file:
                told = {"module": mutant.module, "line": mutant.lines.start, "change": mutant.change, "by": by}
                file.write(json.dumps(told) + "\n")

    plugin = Mutating(chosen, told)
    skipped = [f"--deselect={name}" for name in ELSEWHERE]
    quiet = ["--capture=no", "-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:xdist"]
    status = pytest.main([*quiet, *skipped, *TESTS], plugins=[plugin])
    if plugin.failed:
        print(f"these fail without any mutant: {', '.join(plugin.failed)}", file=sys.stderr)
        return int(status) or 1
    _print(verdicts)
    return 0


def _arguments(modules: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutation", description="Which changes of the core no test notices.")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="modules of the core; all where none is named")
    parser.add_argument("--share", type=float, default=1.0, help="the share of mutants that is tried, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--log", type=Path, help="a file to which every verdict is added, as JSON lines")
    parser.add_argument("--again", type=Path, metavar="FILE", help="try those that survived, by such a file, instead")
    asked = parser.parse_args()
    unknown = sorted(set(asked.modules) - set(modules))
    if unknown:
        parser.error(f"no module {', '.join(unknown)}; there is {', '.join(modules)}")
    asked.modules = asked.modules or modules
    return asked


def _read(log: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def _print(verdicts: list[Verdict]) -> None:
    tried = Counter(verdict.mutant.module for verdict in verdicts)
    survived = Counter(verdict.mutant.module for verdict in verdicts if verdict.survived)
    for verdict in sorted(verdicts, key=lambda each: (each.mutant.module, each.mutant.number)):
        if verdict.survived:
            print(verdict.mutant)
    print(f"\n{'module':<14}{'mutants':>8}{'killed':>8}{'share':>8}")
    for module in [*sorted(tried), ""]:
        count = tried[module] if module else tried.total()
        killed = count - (survived[module] if module else survived.total())
        print(f"{module or 'all':<14}{count:>8}{killed:>8}{killed / count:>8.1%}")


if __name__ == "__main__":
    raise SystemExit(main())
