"""`make demo` is what a newcomer sees first: it must work, and its own checks must all hold."""

from __future__ import annotations

import subprocess
import sys

from tests.tidy import tree

LONGEST_S = 280


def test_the_demo_tells_its_whole_story_and_each_of_its_checks_holds() -> None:
    """Lent, taken back within the grace period, never interrupted what was promised, resumed from the epoch saved."""
    done = subprocess.run(
        [sys.executable, str(tree.ROOT / "examples" / "demo" / "run.py")],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    checked = [line for line in done.stdout.splitlines() if line.startswith(("✓", "✗"))]
    told = {line[2:].partition(":")[0] for line in checked}
    assert told >= {"Lent", "Evicted", "Taken back", "Promised to finish", "Resumed", "Finished"}
    assert not [line for line in checked if line.startswith("✗")]
