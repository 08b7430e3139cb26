"""Placement on a published workload: Alibaba's `openb` nodes and tasks, of Weng and others, "Beware of Fragmentation:
Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent" (USENIX ATC 2023).

All tasks of a mix in random order, then more drawn from them until they ask for 130 % of all GPUs. They are placed one
by one; one that fits nowhere is dropped, none ends. What counts is how many GPUs are allocated in the end, and how many
while tasks arrive. Every task goes through the decisions as in a server: submitted, decided, granted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.figures import Figure, at_least, at_most, steady
from benchmarks.openb_published import CURVES, PERCENTAGES
from fairpool.core import events as ev
from fairpool.core.amounts import GPU, WHOLE, Amounts, get
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.node_books import NodeBooks
from fairpool.core.placement import PoolNodes
from fairpool.core.planner import decide
from fairpool.core.policies import Policy, Subject
from fairpool.core.pools import Node, Placement, Pool
from fairpool.core.requests import Demand, PartPlacement, Request, Status
from fairpool.core.world import World
from fairpool.sim.traces import openb

TRACE = Path(__file__).resolve().parents[2] / "shared" / "traces" / "openb"
"""Beside the checkout; `shared/traces/README.md` there says where it is from."""

SEEDS = range(42, 52)
LOAD_PERCENT = 130
TRIES = 20
WITHIN_POINTS = 1.0
TASKS_PER_S = 5_000
PUBLISHED = {"random": "random", "pack": "best-fit", "defragment": "FGD"}
"""What is compared with what: ours, and what it is called there."""


@dataclass(slots=True)
class Run:
    """What one seed came to. curve: allocated per cent of all GPUs, by arrived per cent."""

    tasks: int = 0
    took_s: float = 0.0
    curve: dict[int, float] = field(default_factory=dict)


def run() -> Iterator[Figure]:
    """Final allocation of each placement on each mix, how far its curve is from the published one, and speed."""
    if not TRACE.is_dir():
        print("  (no traces in ../shared: left out)")
        return
    nodes = tuple(openb.read_nodes(TRACE / "openb_node_list_gpu_node.csv"))
    for mix, published in CURVES.items():
        tasks = read_tasks(TRACE / f"openb_pod_list_{mix}.csv.gz")
        for placement, theirs in PUBLISHED.items():
            with steady():
                runs = [replay(nodes, arrivals(nodes, tasks, Random(seed)), placement, seed) for seed in SEEDS]
            curve = {at: statistics.fmean(each.curve[at] for each in runs) for at in PERCENTAGES}
            final = curve[PERCENTAGES[-1]]
            yield Figure(
                name=f"{mix}, {placement}: GPUs allocated ({theirs}: {published[placement][-1]:.2f})",
                value=final,
                unit="%",
            )
            apart = max(abs(curve[at] - value) for at, value in zip(PERCENTAGES, published[placement], strict=True))
            yield at_most("… furthest from the published curve", apart, "points", WITHIN_POINTS)
            rate = max(each.tasks / each.took_s for each in runs)
            if placement != "random":
                yield at_least("… tasks placed or dropped per second", rate, "per s", TASKS_PER_S)


def read_tasks(path: Path) -> list[Demand]:
    """What the tasks ask for. None of the two mixes says which models a task may run on."""
    jobs = openb.read(path)
    assert not any(job.profile for job in jobs)
    return [job.demand for job in jobs if job.demand is not None]


def arrivals(nodes: tuple[Node, ...], tasks: list[Demand], rng: Random) -> list[Demand]:
    """The tasks in random order, then more drawn from them until they ask for LOAD_PERCENT of all GPUs."""
    most = sum(get(node.capacity, GPU) for node in nodes) * LOAD_PERCENT // 100
    found = rng.sample(tasks, len(tasks))
    asked = sum(get(task.total, GPU) for task in found)
    while asked + get((drawn := rng.choice(tasks)).total, GPU) <= most:
        asked += get(drawn.total, GPU)
        found.append(drawn)
    return found


def replay(nodes: tuple[Node, ...], tasks: list[Demand], placement: str, seed: int) -> Run:
    """Place the tasks one by one."""
    world, pool = _world(nodes, placement, Random(seed))
    capacity = sum(get(node.capacity, GPU) for node in nodes)
    subjects = (Subject.parse("team:all"),)
    made, arrived, used = Run(tasks=len(tasks)), 0, 0
    sums: dict[int, list[int]] = {}
    for number, demand in enumerate(tasks):
        now = Instant(number)
        request = Request(id=RequestId(f"t{number:06d}"), subjects=subjects, demand=demand, queued_at=now)
        start = time.perf_counter()
        world.apply(ev.Submitted(request=request), now)
        granted = decide(world, now).grants
        if not granted:
            world.apply(ev.Ended(request=request.id, how=Status.CANCELLED), now)
        made.took_s += time.perf_counter() - start
        arrived += get(demand.total, GPU)
        used += get(demand.total, GPU) if granted else 0
        sums.setdefault(round(arrived * 100 / capacity), []).append(used)
    assert used == world.usage(pool)[GPU]
    made.curve = {at: statistics.fmean(values) * 100 / capacity for at, values in sums.items()}
    return made


def _world(nodes: tuple[Node, ...], placement: str, rng: Random) -> tuple[World, PoolId]:
    world = World()
    kind = Placement.PACK if placement == "random" else Placement(placement)
    pool = Pool(id=PoolId("openb"), name="openb", nodes=nodes, placement=kind)
    world.apply(ev.PoolSet(pool=pool), Instant(0))
    if placement == "random":
        world.books[pool.id].nodes = AtRandom(world.books[pool.id].nodes.nodes, rng)
    policy = Policy(id=PolicyId("all"), pool=pool.id, subject=Subject.parse("team:all"))
    world.apply(ev.PolicySet(policy=policy), Instant(0))
    return world, pool.id


class AtRandom(PoolNodes):
    """Any fitting node, and any device on it that a fraction fits: for comparison alone."""

    __slots__ = ("_rng",)

    def __init__(self, nodes: Sequence[NodeBooks], rng: Random) -> None:
        super().__init__(nodes, flat=False, placement=Placement.PACK)
        self._rng = rng

    def place(self, parts: tuple[Amounts, ...]) -> tuple[PartPlacement, ...] | None:
        """Where the one part can lie."""
        (part,) = parts
        gpus = get(part, GPU)
        node = self._drawn(part, gpus)
        if node is None:
            return None
        if not gpus:
            return (PartPlacement(node.name),)
        if gpus >= WHOLE:
            return (PartPlacement(node.name, node.devices.choose(gpus)),)
        return (PartPlacement(node.name, ((self._rng.choice(_devices(node, gpus)), gpus),)),)

    def _drawn(self, part: Amounts, gpus: int) -> NodeBooks | None:
        """One of the fitting nodes; a few tries before all of them are looked for."""
        for node in self._rng.choices(self.nodes, k=TRIES):
            if _has_device(node, gpus) and node.fits(part):
                return node
        fitting = [node for node in self.nodes if _has_device(node, gpus) and node.fits(part)]
        return self._rng.choice(fitting) if fitting else None


def _has_device(node: NodeBooks, gpus: int) -> bool:
    """Whether so many whole ones are free, or the fraction fits one."""
    devices = node.devices
    return gpus <= devices.free * WHOLE or (gpus < WHOLE and devices.fraction_room(gpus) is not None)


def _devices(node: NodeBooks, gpus: int) -> list[int]:
    """The devices that the fraction fits."""
    used = node.devices.in_use()
    untouched = [device for device in range(node.devices.total) if device not in used]
    return [*untouched, *(device for device, fuller in node.devices.shared.items() if WHOLE - fuller >= gpus)]
