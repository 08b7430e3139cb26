"""Another simulator on the same input in the same run: AccaSim (MIT licence, from PyPI, in an environment of its own).

A workload in the Standard Workload Format through nodes of which some are always free; both first come, first served,
first fit. AccaSim's own figure for its time is taken, without the end of its helpers. It is of 2018 and asks for names
that Python has moved since: they are put back where it looks for them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, at_least, steady
from fairpool.core.amounts import vector
from fairpool.core.ids import PolicyId, PoolId
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Node, Pool
from fairpool.sim.ledger import Fate
from fairpool.sim.owners import Owners
from fairpool.sim.replay import Replay
from fairpool.sim.rulebook import rulebook
from fairpool.sim.traces import swf
from fairpool.store.memory import MemoryStore

PEER = "accasim==1.1.3"
JOBS, NODES, CORES = 10_000, 64, 8

RUN = """
import collections, collections.abc, sys
for name in ("Mapping", "MutableMapping", "Iterable", "Sequence", "Callable"):
    setattr(collections, name, getattr(collections.abc, name))
from accasim.base.allocator_class import FirstFit
from accasim.base.scheduler_class import FirstInFirstOut
from accasim.base.simulator_class import Simulator
if __name__ == "__main__":
    Simulator("load.swf", "machines.json", FirstInFirstOut(FirstFit()), RESULTS_FOLDER_NAME="out").start_simulation()
"""
MACHINES = f'{{"groups": {{"g0": {{"core": {CORES}, "mem": 1000000}}}}, "resources": {{"g0": {NODES}}}}}'


def run() -> Iterator[Figure]:
    """Both, and how many times as fast this one is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "load.swf").write_text(_workload())
        theirs = JOBS / _peer_s(folder)
        ours = JOBS / _own_s(folder / "load.swf")
    yield Figure(name="AccaSim 1.1.3, first in, first out, first fit", value=theirs, unit="jobs/s")
    yield Figure(name="Fairpool, the same workload and nodes", value=ours, unit="jobs/s")
    yield at_least("… times as fast", ours / theirs, "×", 1)


def _workload() -> str:
    jobs = (f"{n + 1} {n} -1 {60 + n % 240} 1 -1 1 1 {60 + n % 240} 1 1 1 1 1 1 1 -1 -1" for n in range(JOBS))
    return "\n".join((f"; MaxNodes: {NODES}", f"; MaxProcs: {NODES * CORES}", *jobs, ""))


def _own_s(path: Path) -> float:
    """Reading included, as the peer reads while it simulates."""
    nodes = tuple(Node(name=f"n{at:03}", capacity=vector({"gpu": CORES})) for at in range(NODES))
    pool = Pool(id=PoolId("p"), name="p", nodes=nodes)
    rules = rulebook([pool], [Policy(id=PolicyId("g1"), pool=pool.id, subject=Subject.parse("team:g1"))])
    with steady():
        start = time.perf_counter()
        ledger = Replay(rules, swf.read(path, "gpu"), owners=Owners(), reader=MemoryStore().reader).run()
        took_s = time.perf_counter() - start
    assert all(fate == Fate.DONE for fate in ledger.fate)
    return took_s


def _peer_s(folder: Path) -> float:
    """What it says that the simulation took."""
    (folder / "run.py").write_text(RUN)
    (folder / "machines.json").write_text(MACHINES)
    python = _environment(folder)
    done = subprocess.run([python, "run.py"], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    told = done.stdout + done.stderr
    found = re.search(r"Simulation time: ([0-9.]+) secs", told)
    assert found is not None, told[-2000:]
    assert f"Total jobs: {JOBS}" in told
    return float(found[1])


def _environment(folder: Path) -> str:
    """A Python of its own with the peer in it."""
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, folder / "env"], check=True)
    python = str(folder / "env" / "bin" / "python")
    subprocess.run([uv, "pip", "install", "-q", "--python", python, PEER], check=True)
    return python
