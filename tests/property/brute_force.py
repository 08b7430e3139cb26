"""The rules of one pool without nodes, said again as plainly as possible: everything is counted anew at every question,
and of victims all subsets are tried. It shares nothing with the core.

Amounts are whole units of named keys.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

from tests.property.plain_values import Ask, Team, Units, within


@dataclass
class BruteForce:
    capacity: Units
    waiting: dict[str, Ask] = field(default_factory=dict)
    running: dict[str, Ask] = field(default_factory=dict)
    kept: dict[str, Ask] = field(default_factory=dict)  # for whom it is that what lets go is kept (S31)
    before: list[Ask] = field(default_factory=list)  # who comes first for room that is being made anyway
    now: int = 0

    def leaving(self) -> list[Ask]:
        return [ask for ask in self.running.values() if ask.until is not None]

    def left(self, most: Units, team: Team | None, later: bool, firm: bool = False, out: Collection[str] = ()) -> Units:
        """What of `most` is not used (S19); later: by those who stay, and those whom room is kept for."""
        asks = [ask for ask in self.running.values() if ask.id not in out and not (later and ask.until is not None)]
        asks += [*self.kept.values(), *self.before] if later else []
        asks = [ask for ask in asks if team in (None, ask.team) and (ask.firm or not firm)]
        return {key: most.get(key, 0) - sum(ask.needs.get(key, 0) for ask in asks) for key in self.capacity}

    def is_impossible(self, ask: Ask) -> bool:
        """S16."""
        most = [self.capacity, self.capacity | ask.team.limit, *([ask.team.reserved] if ask.firm else [])]
        return not all(within(ask.needs, units) for units in most)

    def fits(self, ask: Ask, later: bool = False, out: Collection[str] = ()) -> bool:
        """The pool, the limit, and of firm requests the reservation (S22)."""
        limit = dict.fromkeys(self.capacity, 10**9) | ask.team.limit
        owed = not ask.firm or within(ask.needs, self.left(ask.team.reserved, ask.team, later, firm=True, out=out))
        mine = within(ask.needs, self.left(limit, ask.team, later, out=out))
        return owed and mine and within(ask.needs, self.left(self.capacity, None, later, out=out))

    def share(self, team: Team, later: bool, out: Collection[str] = ()) -> Fraction:
        left = self.left(team.reserved, team, later, out=out)
        return max(Fraction(max(0, -left[key]), max(1, most) * team.weight) for key, most in self.capacity.items())

    def in_order(self, asks: Iterable[Ask]) -> Iterator[Ask]:
        """S23: the head of each team's requests of a standing, and of these heads the first."""
        left = {ask.id: (self.standing(ask), ask) for ask in asks}
        while left:
            heads: dict[object, tuple[object, Ask]] = {}
            for placed, ask in sorted(left.values(), key=lambda pair: pair[1].urgency):
                heads.setdefault((ask.team.name, placed), (placed, ask))
            yield left.pop(min((placed, ask.queued_at, ask.id) for placed, ask in heads.values())[2])[1]

    def standing(self, ask: Ask) -> tuple[bool, int, bool, Fraction]:
        entitled = within(ask.needs, self.left(ask.team.reserved, ask.team, False, firm=ask.firm))
        return (
            not entitled,
            -ask.team.priority,
            not ask.firm,
            Fraction(0) if entitled else self.share(ask.team, False),
        )

    def borrowing(self, asks: Iterable[Ask], left: Units) -> Iterator[Ask]:
        """S20."""
        for ask in sorted(asks, key=lambda ask: ask.precedence):
            if within(ask.needs, left):
                left = {key: value - ask.needs.get(key, 0) for key, value in left.items()}
            else:
                yield ask

    def victims_for(self, ask: Ask) -> list[set[str]]:
        """Every set that may be evicted for it; none where that would be no use, or where it only has to wait."""
        firm = [self.left(ask.team.reserved, ask.team, later, firm=True) for later in (False, True)]
        if self.fits(ask, later=True) or (ask.firm and not all(within(ask.needs, left) for left in firm)):
            return []
        own, others = self.giving(ask)
        for count in range(len(own) + 1):  # as little own work as will do
            chosen = own[:count]
            right = self.in_turn([name for name in others if self.may(ask, {name}, chosen)], chosen)
            if self.fits(ask, True, {*chosen, *right}):
                while not self.fits(ask, True, chosen):
                    chosen = [*chosen, right.pop(0)]
                some = [set(each) for n in range(len(chosen) + 1) for each in combinations(chosen, n)]
                some = [each for each in some if self.fits(ask, True, each) and self.may(ask, each - {*own}, each)]
                return [each for each in some if not any(fewer < each for fewer in some)]
        return []

    def may(self, ask: Ask, others: Collection[str], out: Collection[str]) -> bool:
        """S28: reclaim, or preempt."""
        below = not ask.firm and all(self.running[name].team.priority < ask.team.priority for name in others)
        return below or not others or within(ask.needs, self.left(ask.team.reserved, ask.team, True, out=out))

    def giving(self, ask: Ask) -> tuple[list[str], list[str]]:
        """Who may give way at all (S27, S30): own work that comes after it, the first to go first (S28, S29), and of
        others who borrows both as things are and as they will be (S31), in their own precedence."""
        own, others = list[Ask](), list[Ask]()
        for team in {each.team.name: each.team for each in self.running.values()}.values():
            theirs = [each for each in self.running.values() if each.team is team]
            staying = [each for each in theirs if each.until is None]
            if team is ask.team:
                after = [each for each in self.borrowing([*staying, ask], team.reserved) if each is not ask]
                own = [each for each in after[::-1] if ask.firm or each.priority < ask.priority]
            else:
                now = list(self.borrowing(theirs, team.reserved))
                others += [each for each in self.borrowing(staying, team.reserved) if each in now]
        ripe = {
            each.id for each in [*own, *others] if each.since + each.team.min_runtime_s <= self.now and not each.firm
        }
        return [each.id for each in own if each.id in ripe], [each.id for each in others if each.id in ripe]

    def in_turn(self, names: list[str], out: list[str]) -> list[str]:
        """S29."""
        order, left = list[str](), [self.running[name] for name in names]
        while left:
            last = {each.team.name: (each, self.share(each.team, True, {*out, *order})) for each in left}.values()
            first = min(last, key=lambda pair: (pair[0].team.priority, -pair[1], pair[0].priority, -pair[0].number))[0]
            order.append(first.id)
            left.remove(first)
        return order
