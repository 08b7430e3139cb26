"""Many seeds, and what they add up to; a seed that fails prints its story."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fairpool.store import opening
from tests.simulation.run import Ran, Simulation

IN_MEMORY = Path("/dev/shm")
STORY_LINES = 60


@dataclass
class Total:
    """What all seeds together came to."""

    seeds: int = 0
    seconds: int = 0
    requests: int = 0
    leaderships: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, ran: Ran) -> None:
        self.seeds += 1
        self.seconds += ran.seconds
        self.requests += ran.requests
        self.leaderships += ran.leaderships
        self.faults += ran.faults

    def __str__(self) -> str:
        kinds = ", ".join(f"{count:,} × {what}" for what, count in self.faults.most_common())
        return (
            f"simulated servers: {self.seeds:,} seeds, {self.seconds / 86_400:.1f} days, {self.requests:,} requests, "
            f"{self.leaderships:,} leaderships, {self.faults.total():,} faults ({kinds})"
        )


class SeedFailed(AssertionError):
    """A seed in which something did not hold. Its story is the message."""


@contextmanager
def a_place() -> Iterator[tuple[Path, Path]]:
    """A new database to copy, and a folder for the copies: in memory where there is one, since disks are not the
    subject here."""
    where = IN_MEMORY if IN_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        template = Path(folder) / "template.db"
        opening.open_store(f"sqlite:///{template}").close()
        yield template, Path(folder)


def hunt(seeds: Iterable[int]) -> Total:
    """Run these seeds. Raises SeedFailed for the first that fails."""
    total = Total()
    with a_place() as (template, folder):
        for seed in seeds:
            total.add(one(seed, template, folder))
    return total


def one(seed: int, template: Path, folder: Path) -> Ran:
    """One seed. Raises SeedFailed."""
    simulation = Simulation(seed, template, folder)
    try:
        return simulation.run()
    except Exception as error:
        story = "\n".join(simulation.story[-STORY_LINES:])
        again = f"python -m tests.simulation --from {seed} --seeds 1"
        raise SeedFailed(f"seed {seed}: {error!r}\n{story}\nagain: {again}") from error
    finally:
        simulation.close()
        for path in folder.glob(f"{seed}.db*"):
            path.unlink()
