"""`make bench`, or `python -m benchmarks [SUITE…]`: measure, and compare with targets and recorded ranges."""

from __future__ import annotations

import importlib
import os
import platform
import sys

SUITES = (
    "core",
    "openb",
    "simulator",
    "peers",
    "estimates",
    "asking",
    "store",
    "scrape",
    "server",
    "abuse",
    "postgres",
    "servers",
)


def main(names: list[str]) -> int:
    """Run the suites; exits 1 when a target is missed."""
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        print(f"no suite {unknown[0]!r}; there are: {', '.join(SUITES)}", file=sys.stderr)
        return 2
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, {platform.system()}")
    missed = 0
    for name in names or SUITES:
        print(f"{name}:")
        for figure in importlib.import_module(f"benchmarks.{name}").run():
            print(figure.line(), flush=True)
            missed += figure.holds is False
    print(f"{missed} targets missed" if missed else "all targets hold")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
