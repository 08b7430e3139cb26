"""When a waiting request may start, as callers read it (S37): of others' work nothing but that it is reckoned with."""

from __future__ import annotations

from collections.abc import Iterable

from fairpool.app.use_cases.requests import Explained
from fairpool.core.ids import RequestId
from fairpool.core.outlook import Estimate, Ground, Unknown, Why
from fairpool.core.usual import Basis
from fairpool.server.outgoing import maybe_moment
from fairpool.wire.explanations import EstimateView

MOST_GROUNDS = 3  # kinds of work that are named

_KNOWN = {
    Basis.GRACE_PERIOD: "those who were told to let go take their whole grace period",
    Basis.MAX_RUNTIME: "running work takes all the time that it asked for (max_runtime_s)",
    Basis.WINDOW: "the next change of the policy's numbers allows it; it cannot start before",
}
_WHY = {
    Why.GIVES_UP: "it will have waited as long as it is willing to before enough is known to end",
    Why.NOTHING_ENDS: "nothing that is known to end makes room for it",
    Why.TOO_FAR: "more has to start and end before it than is looked at",
    Why.BUSY: "too many others ask as well: ask again in a moment",
}


def estimate_view(explained: Explained) -> EstimateView | None:
    """The estimate of one that waits; of another None."""
    found = explained.explanation.estimate
    match found:
        case Estimate():
            return EstimateView(
                low=maybe_moment(found.low),
                about=maybe_moment(found.about),
                high=maybe_moment(found.high),
                basis=_basis(found, explained),
                as_of=maybe_moment(explained.as_of),
            )
        case Unknown():
            return EstimateView(
                low=maybe_moment(found.later_than),
                basis=_unknown(found, explained),
                as_of=maybe_moment(explained.as_of),
            )
    return None


def _basis(found: Estimate, explained: Explained) -> str:
    told = [_KNOWN[ground.basis] for ground in found.grounds if ground.basis in _KNOWN]
    seen = dict.fromkeys(_seen(ground, explained) for ground in found.grounds if ground.basis not in _KNOWN)
    if seen:
        named = list(seen)[:MOST_GROUNDS] + (["other work"] if len(seen) > MOST_GROUNDS else [])
        told.append(f"work runs as long as usual: {', '.join(named)}")
    return "; ".join(told)


def _seen(ground: Ground, explained: Explained) -> str:
    """Whose usual run times, where they are the caller's to know."""
    if not _is_told(ground.request, explained):
        return "others' work"
    kind = {Basis.STEP: "step ", Basis.PROFILE: "profile "}.get(ground.basis, "work of ")
    return f"{kind}{ground.name} ({ground.finished} finished)"


def _unknown(found: Unknown, explained: Explained) -> str:
    if found.why is not Why.RUN_TIMES:
        return _WHY[found.why]
    whose = " and ".join(_named(found.requests, explained)) or "running work"
    return f"nothing is known of how long {whose} takes; a max_runtime_s would tell"


def _named(requests: Iterable[RequestId], explained: Explained) -> Iterable[str]:
    texts = (f"request {request}" if _is_told(request, explained) else "others' work" for request in requests)
    return dict.fromkeys(texts)


def _is_told(request: RequestId | None, explained: Explained) -> bool:
    return request is None or (request in explained.mentioned and request not in explained.nameless)
