"""What the plain model of the rules speaks of: teams, what they ask for, and what a plan tells."""

from dataclasses import dataclass

Units = dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Team:
    name: str
    priority: int
    reserved: Units
    limit: Units
    weight: int
    grace_s: int
    min_runtime_s: int


@dataclass(kw_only=True)
class Ask:
    """What waits, and once granted runs: then since when, as the how manieth, and until when it must have let go."""

    id: str
    team: Team
    needs: Units
    firm: bool
    priority: int
    queued_at: int
    since: int = 0
    number: int = 10**9  # after all that run
    until: int | None = None

    @property
    def kind(self) -> tuple[str, Units, bool]:
        """What equal requests have in common."""
        return (self.team.name, self.needs, self.firm)

    @property
    def urgency(self) -> tuple[int, int, str]:
        """Among requests of one standing and team (S23, criteria 6 to 8)."""
        return (-self.priority, self.queued_at, self.id)

    @property
    def precedence(self) -> tuple[bool, int, int]:
        """Among what runs of one team (S20)."""
        return (not self.firm, -self.priority, self.number)


@dataclass(kw_only=True)
class Told:
    """What of a plan is not yet accounted for. evicted: by the request that it is for."""

    ended: set[str]
    rejected: set[str]
    granted: set[str]
    evicted: dict[str, set[str]]


def within(needs: Units, most: Units) -> bool:
    return all(value <= most.get(key, 0) for key, value in needs.items())
