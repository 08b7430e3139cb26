"""Reading what a scenario sets up: pools, policies, profiles."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fairpool.core import amounts
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import Instant, PolicyId, PoolId, ProfileId
from fairpool.core.policies import DEFAULT_GRACE_S, Policy, Possible, Profile, Subject, SubjectKind
from fairpool.core.pools import DEFAULT_MAX_BYPASS_S, Node, NodeState, Ordering, Placement, Pool
from fairpool.sim.scenario_reading import Item

POOL_FIELDS = ("capacity", "nodes", "ordering", "backfill", "placement", "max_bypass_s", "components")
NODE_FIELDS = ("capacity", "state", "gpu_type", "labels")
POLICY_FIELDS = (
    "pool",
    "also",
    "pools",
    "subject",
    "priority",
    "reserved",
    "limit",
    "weight",
    "dedicated",
    "grace_s",
    "min_runtime_s",
    "profiles",
    "possible",
)


@dataclass(slots=True)
class Names:
    """What the file has spoken of so far, so that a slip of the pen is found where it is made.

    counted: the requests of a submission with `count`, by the id that is written there.
    """

    pools: dict[str, Pool] = field(default_factory=dict)
    profiles: dict[str, Profile] = field(default_factory=dict)
    policies: dict[tuple[frozenset[str], Subject], PolicyId] = field(default_factory=dict)
    requests: set[str] = field(default_factory=set)
    counted: dict[str, frozenset[str]] = field(default_factory=dict)

    def governed(self, policy: Policy) -> str | None:
        """The first of its pools on which its subject has a policy already; None where it has none."""
        governed = [pool for pools, subject in self.policies if subject == policy.subject for pool in pools]
        return next((pool for pool in policy.pools if pool in governed), None)

    def identified(self, policy: Policy) -> Policy:
        """The policy with the id of the one of its subject that shares a pool with it, or with a new one."""
        pools = frozenset[str](policy.pools)
        same = [key for key in self.policies if key[1] == policy.subject and not pools.isdisjoint(key[0])]
        taken = list(self.policies.values())  # one that was given to another subject keeps its id
        known = self.policies.pop(same[0]) if same else policy.id
        if not same and known in taken:
            known = PolicyId(f"{policy.id}+")
        self.policies[pools, policy.subject] = known
        return replace(policy, id=known)


def policy_id(pool: str, subject: Subject) -> PolicyId:
    """There is one policy per subject and pool (S13), so that they name it: as it was when it appeared."""
    return PolicyId(f"{pool}/{subject}")


def read_pool(name: str, item: Item) -> Pool:
    """One pool: ``{capacity: …, nodes: …, ordering: …}``."""
    found = item.fields(POOL_FIELDS)
    if "capacity" not in found and "nodes" not in found:
        raise item.wrong("needs a capacity or nodes")
    try:
        return Pool(
            id=PoolId(name),
            name=name,
            capacity=amounts.of(found["capacity"].amounts()) if "capacity" in found else (),
            nodes=tuple(_node(key, each) for key, each in found["nodes"].pairs().items()) if "nodes" in found else (),
            ordering=Ordering(found["ordering"].one_of(list(Ordering))) if "ordering" in found else Ordering.FAIR,
            backfill=found["backfill"].flag() if "backfill" in found else True,
            placement=Placement(found["placement"].one_of(list(Placement))) if "placement" in found else Placement.PACK,
            max_bypass_s=_whole_seconds(found.get("max_bypass_s"), DEFAULT_MAX_BYPASS_S),
            components=frozenset(_component(each) for each in found["components"].one_or_more())
            if "components" in found
            else frozenset(),
        )
    except InvalidInput as error:
        raise item.refused(error) from None


def _node(name: str, item: Item) -> Node:
    """One node: its capacity per key, or ``{capacity: …, state: …}`` where there is more to say."""
    plain = not (item.is_mapping and "capacity" in item.pairs() and item.pairs()["capacity"].is_mapping)
    found = {"capacity": item} if plain else item.fields(NODE_FIELDS)
    labels = found["labels"].pairs() if "labels" in found else {}
    try:
        return Node(
            name=name,
            capacity=amounts.of(found["capacity"].amounts()),
            state=NodeState(found["state"].one_of(list(NodeState))) if "state" in found else NodeState.READY,
            gpu_type=found["gpu_type"].text() if "gpu_type" in found else "",
            labels=tuple(sorted((key, value.text()) for key, value in labels.items())),
        )
    except InvalidInput as error:
        raise item.refused(error) from None


def _component(item: Item) -> str:
    subject = read_subject(item)
    if subject.kind is not SubjectKind.COMPONENT:
        raise item.wrong(f"{subject} is no component (S13b)", "names of components")
    return subject.name


def _whole_seconds(item: Item | None, default: int) -> int:
    return default if item is None else item.integer(minimum=0)


def read_subject(item: Item) -> Subject:
    """One subject: ``team:red``; ``component:`` may be left off."""
    try:
        return Subject.parse(item.text())
    except InvalidInput as error:
        raise item.refused(error) from None


def read_policy(item: Item, names: Names) -> Policy:
    """One policy. Whether it goes together with its pool and the other policies is for the core to say."""
    found = item.fields(POLICY_FIELDS, required=("subject",))
    pools = read_pools(item, found, names)
    subject = read_subject(found["subject"])
    offered = found.get("profiles")
    try:
        return Policy(
            id=policy_id(",".join(pools), subject),
            pool=PoolId(pools[0]),
            also=tuple(PoolId(pool) for pool in pools[1:]),
            subject=subject,
            priority=found["priority"].integer() if "priority" in found else 0,
            reserved=amounts.of(found["reserved"].amounts()) if "reserved" in found else (),
            limit=tuple(sorted(found["limit"].amounts().items())) if "limit" in found else (),
            weight=found["weight"].amount() if "weight" in found else amounts.WHOLE,
            dedicated=found["dedicated"].flag() if "dedicated" in found else False,
            grace_s=_whole_seconds(found.get("grace_s"), DEFAULT_GRACE_S),
            min_runtime_s=_whole_seconds(found.get("min_runtime_s"), 0),
            profiles=tuple(each.known("profile", names.profiles) for each in offered.one_or_more())
            if offered is not None
            else None,
            possible=_possible(found["possible"]) if "possible" in found else None,
        )
    except InvalidInput as error:
        raise item.refused(error) from None


def _possible(item: Item) -> Possible:
    """What the policy allows at other times: ``{reserved: …, limit: …, opens_at: …}``."""
    found = item.fields(("reserved", "limit", "opens_at"))
    return Possible(
        reserved=amounts.of(found["reserved"].amounts()) if "reserved" in found else (),
        limit=tuple(sorted(found["limit"].amounts().items())) if "limit" in found else (),
        opens_at=Instant(found["opens_at"].seconds()) if "opens_at" in found else None,
    )


def read_pools(item: Item, found: dict[str, Item], names: Names) -> tuple[str, ...]:
    """The pools of a policy: ``pool: a``, and ``also: [b]`` for further ones, or ``pools: [a, b]``."""
    if "pools" in found and ("pool" in found or "also" in found):
        raise found["pools"].wrong("a policy has either 'pool', and 'also', or 'pools'")
    if "pools" not in found and "pool" not in found:
        raise item.wrong("'pool' is missing")
    if "pools" in found:
        given = found["pools"].one_or_more()
    else:
        given = [found["pool"], *(found["also"].one_or_more() if "also" in found else ())]
    pools = tuple(each.known("pool", names.pools) for each in given)
    if not pools:
        raise found["pools"].wrong("a policy has one pool at least")
    return pools


def read_profile(name: str, item: Item, names: Names) -> Profile:
    """One profile: ``{demand: …, pools: […]}``."""
    found = item.fields(("demand", "pools"), required=("demand", "pools"))
    try:
        return Profile(
            id=ProfileId(name),
            name=name,
            demand=amounts.of(found["demand"].amounts()),
            pools=tuple(each.known("pool", names.pools) for each in found["pools"].one_or_more()),
        )
    except InvalidInput as error:
        raise item.refused(error) from None
