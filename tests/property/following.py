"""Following the plans of the core with the plain model: what the rules call for must be in a plan, and nothing else.

Where they leave a choice (which of several smallest sets of victims goes), any that they allow will do.
"""

from dataclasses import dataclass

from tests.property.brute_force import BruteForce
from tests.property.plain_values import Ask, Told, Units


@dataclass
class Following(BruteForce):
    grants: int = 0

    def follow(self, told: Told, now: int) -> None:
        self.now = now
        over = {ask.id for ask in self.leaving() if (ask.until or 0) <= now}
        never = {ask.id for ask in self.waiting.values() if self.is_impossible(ask)}
        assert (told.ended, told.rejected) == (over, never), "S31: who has let go; S16: who can never run"
        for asks in (self.running, self.waiting, self.kept):
            for name in (over | never) & asks.keys():
                del asks[name]
        while self.serve_kept(told) or self.consider_all(told):
            pass
        assert not told.granted and not told.evicted, f"the rules call for none of {told}"

    def serve_kept(self, told: Told) -> bool:
        """S23, criterion 1. Whether anything changes."""
        self.before = []
        for ask in self.in_order(self.kept.values()):
            del self.kept[ask.id]
            if self.fits(ask) and self.fits(ask, later=True):
                return self.start(ask, told)
            if not self.leaving():
                return True  # all have let go, and still it cannot start
            self.kept[ask.id] = ask
        return False

    def consider_all(self, told: Told) -> bool:
        """Everybody in order, ranked anew after each grant; of equal requests the first alone (decision 34)."""
        seen: list[tuple[str, Units, bool]] = []
        changed = False
        while asks := [ask for ask in self.waiting.values() if ask.id not in self.kept and ask.kind not in seen]:
            ask = next(self.in_order(asks))
            if self.fits(ask) and self.fits(ask, later=True):
                changed = self.start(ask, told)
            elif choices := self.victims_for(ask):
                chosen = told.evicted.pop(ask.id, set())
                assert chosen in choices, f"{ask.id} evicts {chosen}; the rules allow one of {choices}"
                for name in chosen:
                    self.running[name].until = self.now + self.running[name].team.grace_s
                self.kept[ask.id] = ask
                changed = True
            else:
                seen.append(ask.kind)
                if self.leaving() and self.fits(ask, later=True):
                    self.before.append(ask)
        return changed

    def start(self, ask: Ask, told: Told) -> bool:
        assert ask.id in told.granted, f"{ask.id} could start, and comes first"
        told.granted.discard(ask.id)
        self.grants += 1
        ask.since, ask.number = self.now, self.grants
        self.running[ask.id] = self.waiting.pop(ask.id)
        return True

    def keep_anew(self) -> None:
        """The rules have changed: what no longer fits is kept no longer."""
        kept, self.kept, self.before = self.kept, {}, []
        for name, ask in sorted(kept.items()):
            if self.fits(ask, later=True):
                self.kept[name] = ask
