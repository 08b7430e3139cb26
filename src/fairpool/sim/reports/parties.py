"""For whom the jobs of a trace count, what they ask for, and how ids are called."""

from __future__ import annotations

from functools import lru_cache

from fairpool.app.memory import Memory
from fairpool.app.ports import Stored
from fairpool.app.sentences import Names, names_of
from fairpool.core.amounts import GPU, get
from fairpool.core.ids import Instant
from fairpool.core.policies import Subject, SubjectKind
from fairpool.core.pools import healthy_capacity
from fairpool.sim.jobs import Job
from fairpool.sim.ledger import NEVER, Ledger

_PEOPLE = (SubjectKind.USER, SubjectKind.SERVICE_ACCOUNT)


def measured_key(rules: Stored) -> str:
    """The resource that a report is about: GPUs where a pool has them, else the first key that one has; "" for none."""
    keys = sorted({key for pool in rules.snapshot.pools for key, _ in healthy_capacity(pool)})
    return GPU if GPU in keys else next(iter(keys), "")


def unit_of(key: str) -> str:
    """How a unit of the resource is called."""
    return "GPU" if key == GPU else key


def called(subject: Subject) -> str:
    """A subject as reports name it: a team by its name alone."""
    return subject.name if subject.kind is SubjectKind.TEAM else str(subject)


class Parties:
    """Whom the jobs under given rules count for."""

    def __init__(self, rules: Stored) -> None:
        memory = Memory(rules, Instant(0))
        self.names: Names = names_of(memory)
        self._memory = memory
        self._ruled = {policy.subject for policy in rules.snapshot.policies}
        self._demands = {profile.name: profile.demand for profile in rules.snapshot.profiles}
        self.of_subjects = lru_cache(maxsize=None)(self._of_subjects)

    def of(self, job: Job) -> str:
        """The team of a job, as reports name it."""
        return self.of_subjects(job.subjects)

    def _of_subjects(self, subjects: tuple[Subject, ...]) -> str:
        """Of its subjects and their teams, teams first, the first that a policy speaks of; else the first of all."""
        teams = [subject for subject in subjects if subject.kind is SubjectKind.TEAM]
        for subject in subjects:
            if subject.kind in _PEOPLE:
                teams += [Subject(SubjectKind.TEAM, name) for name in self._memory.teams_of(subject)]
        everybody = [*teams, *(subject for subject in subjects if subject not in teams)]
        found = next((subject for subject in everybody if subject in self._ruled), next(iter(everybody), None))
        return called(found) if found is not None else ""

    def asked(self, job: Job) -> tuple[tuple[str, int], ...]:
        """What a job asks for altogether, itself or by its profile."""
        return job.demand.total if job.demand is not None else self._demands.get(job.profile, ())

    def amounts(self, ledger: Ledger, key: str) -> list[int]:
        """What each job of the ledger asks of one key, in thousandths, by its number."""
        known: dict[tuple[object, str], int] = {}
        found = []
        for job in ledger.jobs:
            shape = (job.demand, job.profile)
            amount = known.get(shape)
            if amount is None:
                amount = known[shape] = get(self.asked(job), key)
            found.append(amount)
        return found

    def pool_names(self, ledger: Ledger) -> list[str]:
        """What the pools of a ledger are called, by their numbers; "" at the end, for NEVER."""
        assert NEVER == -1, "the last of a list"
        return [*(self.names.pool(pool) for pool in ledger.pools), ""]
