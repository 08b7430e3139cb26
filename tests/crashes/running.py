"""Running the crashes for a test: in a process of its own, which has no threads and may be forked."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.tidy import tree


def crashed(*options: str) -> dict[str, Any]:
    """The report of ``python -m tests.crashes`` with these options."""
    command = [sys.executable, "-m", "tests.crashes", "--json", *options]
    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.stdout, done.stderr
    (report,) = json.loads(done.stdout)
    return dict(report)
