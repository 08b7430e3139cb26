"""``python -m tests.simulation --seeds 10000``: hunt as long as you like."""

import argparse
import logging
import sys

from tests.simulation.hunting import SeedFailed, Total, hunt

STEP = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--from", dest="first", type=int, default=0)
    asked = parser.parse_args()
    logging.disable()  # what goes wrong is what this is about
    total = Total()
    for start in range(asked.first, asked.first + asked.seeds, STEP):
        try:
            part = hunt(range(start, min(start + STEP, asked.first + asked.seeds)))
        except SeedFailed as failed:
            sys.stdout.write(f"{failed}\n")
            return 1
        total.seeds += part.seeds
        total.seconds += part.seconds
        total.requests += part.requests
        total.leaderships += part.leaderships
        total.faults += part.faults
        sys.stdout.write(f"{total}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
