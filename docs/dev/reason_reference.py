"""The reason codes as Markdown: what each means, how its message reads, and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairpool.app.sentences import Names, reason
from fairpool.core.ids import Instant, PolicyId, PoolId, RequestId
from fairpool.core.reasons import NEVER, RIGHT_LOST, Code, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the page says of a code. numbers, name: those of the example; numbers in thousandths."""

    means: str
    do: str
    numbers: dict[str, int] = field(default_factory=dict)
    name: str = ""


TOLD = {
    Code.KEY_NOT_IN_POOL: Told(
        means="The pool does not have a resource key that is asked for. `mcpu`, `memory_mb` and `step_run` are "
        "unbounded where a pool does not list them; any other key that it does not list is not there.",
        do="Look for a typing error in the key, name another pool, or add the key: `fairpool pool update`.",
    ),
    Code.EXCEEDS_POOL_CAPACITY: Told(
        means="More is asked for than the pool has, even if it were empty.",
        do="Ask for less, name another pool, or enlarge this one: `fairpool pool update`.",
        numbers={"asked": 16_000, "possible": 8_000},
    ),
    Code.EXCEEDS_POLICY_LIMIT: Told(
        means="More is asked for than the policy's limit, even if nothing else ran through it.",
        do="Ask for less, or raise the limit: `fairpool policy update`.",
        numbers={"asked": 6_000, "possible": 4_000},
    ),
    Code.EXCEEDS_RESERVATION: Told(
        means="The request is firm, and firm work runs inside the reservation of its policy, which is smaller.",
        do="Let it be preempted (leave out `--non-preemptible`), ask for less, or reserve more: "
        "`fairpool policy update`.",
        numbers={"asked": 4_000, "possible": 2_000},
    ),
    Code.NO_NODE_FITS: Told(
        means="A part lies whole on one node, and no node of the pool is large enough.",
        do="Ask for smaller parts, several of them (`--nodes`), or name another pool.",
        numbers={"asked": 8_000, "possible": 4_000},
    ),
    Code.PROFILE_NOT_OFFERED: Told(
        means="The request names a profile, and the policy offers only others.",
        do="Name another profile, or let the policy offer this one: `fairpool policy update`.",
    ),
    Code.NO_POLICY: Told(
        means="Nothing lets the request into a pool: none of its subjects has a policy where it could run.",
        do="Say on behalf of whom it is (`--team`, `--as`), or attach a policy: `fairpool policy attach`.",
    ),
    Code.POOL_FULL: Told(
        means="The pool has room for it, and others are using that room. With nodes that are not ready the message "
        "says so.",
        do="Wait. `fairpool request explain` says who holds what is missing and when it may start.",
        numbers={"asked": 4_000, "free": 1_000, "possible": 8_000},
    ),
    Code.LIMIT_IN_USE: Told(
        means="Other work of the same policy uses the limit. Such a request is not "
        "blocked and keeps nothing from others.",
        do="Wait for that work, end some of it, or raise the limit: `fairpool policy update`.",
        numbers={"asked": 2_000, "used": 3_000, "limit": 4_000},
    ),
    Code.RESERVATION_IN_USE: Told(
        means="The request is firm, and other firm work uses the reservation of its policy.",
        do="Wait for that work, let this one be preempted, or reserve more: `fairpool policy update`.",
        numbers={"asked": 1_000, "used": 2_000, "reserved": 2_000},
    ),
    Code.WAITS_FOR_WINDOW: Told(
        means="The policy has a schedule, and at this time it allows or reserves less than is asked for, even if "
        "nothing else ran through it. At another time it allows enough.",
        do="Wait for that time, or ask for less.",
        numbers={"asked": 4_000, "limit": 2_000, "possible": 8_000, "opens_at": 1_767_297_600_000_000},
    ),
    Code.FRAGMENTED: Told(
        means="The pool has enough free in all, but on no node (or, for a fraction of a GPU, on no device) enough "
        "of it together.",
        do="Wait, or ask for smaller parts.",
        numbers={"asked": 4_000, "free": 4_000},
    ),
    Code.HELD_FOR_OLDER: Told(
        means="It would fit, but what is free is held for a request that is blocked and has waited for `max_bypass_s`.",
        do="Wait until that request has started. A smaller `max_bypass_s` lets less work overtake, a larger one more.",
    ),
    Code.DEDICATED_TO_OTHERS: Told(
        means="What is free belongs to a reservation that is dedicated: nobody borrows it.",
        do="Wait for the rest of the pool, or let that policy share: `fairpool policy update --shared`.",
        numbers={"asked": 2_000, "free": 1_000},
    ),
    Code.WAITING_FOR_EVICTION: Told(
        means="Others have been told to let go, and the request waits for them; or what they free is claimed by "
        "another request, which the message then names.",
        do="Wait: it is over by the end of the grace period at the latest.",
    ),
    Code.POOL_OVER_CAPACITY: Told(
        means="The pool uses more than it has by now, since it was made smaller or nodes went away. It grants none of "
        "that key until it fits again.",
        do="Wait for work to end, or bring back capacity.",
        numbers={"used": 8_000, "possible": 4_000},
    ),
    Code.POOL_DRAINING: Told(
        means="The pool goes as soon as its last work has ended.",
        do="Name another pool, or cancel the request.",
    ),
    Code.WAIT_TIMEOUT: Told(
        means="The request has waited for its `wait_timeout_s` and was rejected.",
        do="Submit it again with a longer one or none. `fairpool request describe` shows how long it waited.",
    ),
    Code.POLICY_GONE: Told(
        means="The policy through which the request waited was detached while it waited, and there was no other way. "
        "What runs through such a policy goes on.",
        do="Ask an administrator for a policy, or submit it again as a team that has one.",
        name="team:nlp",
    ),
    Code.POLICY_OF_OTHERS: Told(
        means="The policy through which the request waited speaks of somebody else now: it was given to another team, "
        "or whoever made the request has left the team. What runs already goes on.",
        do="Submit it again as a team that has a policy; a team's members get its rights at their next request.",
        name="team:nlp",
    ),
    Code.PROFILE_GONE: Told(
        means="The profile that the request asked for was deleted while it waited.",
        do="Ask for another profile: `fairpool profile list`.",
        name="a100-half",
    ),
    Code.PROFILE_WITHDRAWN: Told(
        means="The profile is still there, but the policy does not offer it on this pool any more, or it names other "
        "pools now.",
        do="Ask for a profile that is offered to you, or for its demand without naming a profile.",
        name="a100-half",
    ),
    Code.POOL_OUT_OF_REACH: Told(
        means="The pool names the components whose work it takes, and that of this request is none of them any more.",
        do="Run on a component that the pool takes: `fairpool pool describe`.",
        name="training",
    ),
    Code.POOL_GONE: Told(
        means="The pool was deleted, or is called otherwise, and there was no other way. What runs there goes on.",
        do="Submit it again for a pool that is there: `fairpool pool list`.",
        name="training",
    ),
}


def reasons() -> str:
    """Every code: a table of them all, then one by one."""
    told = ["| Code | When |", "|---|---|"]
    told += [f"| [`{code}`](#{code.lower()}) | {_when(code)} |" for code in Code]
    for code in Code:
        about = TOLD[code]
        told += ["", f"### {code}", "", f"**Means.** {about.means}"]
        told += ["", f"**Example.** {example(code)}", "", f"**To do.** {about.do}"]
    return "\n".join(told)


def example(code: Code) -> str:
    """The message of an example, as the server words it."""
    numbers = TOLD[code].numbers
    fact = Reason(
        code=code,
        pool=PoolId("p1"),
        policy=PolicyId("p2"),
        key="gpu",
        blocker=RequestId("req_7f3a"),
        asked=numbers.get("asked"),
        possible=numbers.get("possible"),
        free=numbers.get("free"),
        used=numbers.get("used"),
        reserved=numbers.get("reserved"),
        limit=numbers.get("limit"),
        name=TOLD[code].name,
        opens_at=Instant(numbers["opens_at"]) if "opens_at" in numbers else None,
    )
    return f"`{reason(fact, Names({'p1': 'training'}, {'p2': 'team:vision'}))}`"


def _when(code: Code) -> str:
    if code is Code.WAIT_TIMEOUT:
        return "rejected: waited too long"
    if code in RIGHT_LOST:
        return "cancelled: the right that it waited by is gone"
    if code is Code.POOL_GONE:
        return "rejected: what it waited for is gone"
    return "never: this candidate is impossible" if code in NEVER else "not yet: it waits"
