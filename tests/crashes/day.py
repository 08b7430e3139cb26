"""The scripted day: a little of everything that a server for teams does, each request under a name of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from fairpool.app import erasing
from fairpool.app.authz import Principal, Role
from fairpool.app.errors import AppError, NotFound, NotLeading, Stale
from fairpool.app.leading import LEADER_TTL_S
from fairpool.app.manifests.values import Scope
from fairpool.app.records import Kind, RunStatus, WebhookCursor
from fairpool.app.schedules import Window
from fairpool.app.store_errors import StaleLeader
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import (
    components,
    policies,
    pools,
    profiles,
    requests,
    runs,
    service_accounts,
    settings,
    stacks,
    teams,
    tokens,
    users,
    vaults,
    webhooks,
    workspaces,
)
from fairpool.app.use_cases.pools import PoolChange
from fairpool.app.use_cases.profiles import ProfileChange
from fairpool.app.use_cases.teams import TeamChange
from fairpool.app.use_cases.vaults import Setting, VaultChange
from fairpool.app.use_cases.webhooks import WebhookChange
from fairpool.core.amounts import amount, vector
from fairpool.core.errors import CoreError
from fairpool.core.ids import ProfileId, RequestId
from fairpool.core.policies import Profile, Subject
from fairpool.core.pools import Node, NodeState
from fairpool.core.requests import Demand
from tests.crashes.living import Life, Server, Step
from tests.crashes.saying import LONG, Doing, ask, call, ends, once, policy, pool, status_is, submit, until
from tests.unit.server.applying import SEALER, carrying

HOUR = 3_600
SECRET = b"of this installation"
GANG = Demand((vector({"gpu": 2}), vector({"gpu": 1})))


def the_day() -> tuple[Step, ...]:
    """All of it, in order."""
    return (
        *_declaring(),
        *_people(),
        *_files(),
        *_asking(),
        *_reclaim(),
        *_own_work(),
        *_ends(),
        *_reports(),
        *_nodes(),
        *_windows(),
        *_leaving(),
        *_pools_go(),
        *_another_leads(),
        *_a_workspace(),
        *_evening(),
    )


# ---- the morning: rules, people, files -------------------------------------------------------------------------------


def _node(name: str) -> Node:
    return Node(name=name, capacity=vector({"gpu": 4, "mcpu": 64_000}), gpu_type="A100")


def _declaring() -> tuple[Step, ...]:
    night = Window(start="0 20 * * *", duration_s=10 * HOUR, reserved=vector({"gpu": 5}))
    half = Profile(id=ProfileId(""), name="half", demand=vector({"gpu": 0.5}), pools=("gpus", "cloud"))
    return (
        once("pool gpus", lambda tx: pools.create(tx, pool("gpus", {"licence": 3}, nodes=(_node("n1"), _node("n2"))))),
        once("pool cloud", lambda tx: pools.create(tx, pool("cloud", {"gpu": 4}), description="rented")),
        once("pool lab", lambda tx: pools.create(tx, pool("lab", {"gpu": 2}))),
        once("red on gpus", lambda tx: policies.attach(tx, "gpus", policy("team:red", {"gpu": 3}, priority=10))),
        once(
            "blue on gpus",
            lambda tx: policies.attach(tx, "gpus", policy("team:blue", {"gpu": 2}), schedule=(night,)),
        ),
        once(
            "green on gpus and cloud",
            lambda tx: policies.attach(tx, "cloud", policy("team:green", {"gpu": 2}, weight=amount(2)), also=("gpus",)),
        ),
        once("green on lab", lambda tx: policies.attach(tx, "lab", policy("team:green", {"gpu": 1}, grace_s=0))),
        once("profile half", lambda tx: profiles.create(tx, half)),
        once(
            "component k8s",
            lambda tx: components.create(tx, "k8s", kind="step_operator", flavor="local", config={"context": "prod"}),
        ),
        once("stack prod", lambda tx: stacks.create(tx, "prod", orchestrator="local", step_operators=["k8s"])),
        call("prod is active", lambda _, tx: stacks.activate(tx, "prod")),
        call("who has no policy waits for nothing", lambda _, tx: settings.update(tx, require_policy=True)),
    )


def _people() -> tuple[Step, ...]:
    def token(owner: str, name: str) -> Doing:
        return lambda _, tx: tokens.create_once(
            tx, Subject.parse(owner), name, key=f"key of {name}", fingerprint=name, secret=SECRET, life_s=30 * LONG
        )

    return (
        once("alice", lambda tx: users.create(tx, "alice", role=Role.ADMIN, email="alice@example.com")),
        once("bob", lambda tx: users.create(tx, "bob")),
        once("carol", lambda tx: users.create(tx, "carol", role=Role.VIEWER)),
        once("team red", lambda tx: teams.create(tx, "red", members=["alice"])),
        once("team blue", lambda tx: teams.create(tx, "blue", members=["bob"])),
        once("team green", lambda tx: teams.create(tx, "green", members=["bob", "carol"])),
        once("ci", lambda tx: service_accounts.create(tx, "ci", teams=["green"])),
        call("alice's token", token("user:alice", "laptop"), actor="user:alice"),
        call("bob's token", token("user:bob", "desktop"), actor="user:bob"),
        call("ci's token", token("service-account:ci", "nightly")),
        call(
            "the laptop is used",
            lambda life, tx: tokens.used(tx, [(life.answers["alice's token"].record.id, tx.now)]),
            at_s=60,
        ),
        call("ci's token is revoked", lambda life, tx: tokens.revoke(tx, life.answers["ci's token"].record.id)),
        once("a vault", lambda tx: vaults.create(tx, "red", _vault_of("old"), SEALER)),
        call("the vault changes", lambda _, tx: vaults.update(tx, "red", _vault_of("new"), SEALER)),
        once(
            "a webhook",
            lambda tx: webhooks.create(
                tx,
                "chat",
                WebhookChange(url="http://127.0.0.1:9/hook", events=("request.granted", "request.preempting")),
                secret="whsec_" + "c2VjcmV0" * 5,
                sealer=SEALER,
            ),
        ),
    )


def _vault_of(value: str) -> VaultChange:
    return VaultChange(environment={"MODE": Setting(value=value)}, secrets={"KEY": Setting(value=value * 3)})


def _files() -> tuple[Step, ...]:
    """Rules as documents, applied twice: several objects appear, change and go in one commit."""
    scope = Scope(set_name="site", prune=True)
    one = {"kind": "pool", "name": "batch", "capacity": {"gpu": 2}}
    two = {"kind": "policy", "pool": "batch", "subject": "team:blue", "reserved": {"gpu": 1}, "grace_s": 20}
    three = {"kind": "pool", "name": "scratch", "capacity": {"gpu": 1}}
    four = {"kind": "profile", "name": "quarter", "demand": {"gpu": 0.25}, "pools": ["batch"]}
    return (
        call("files are applied", lambda _, tx: carrying(tx, (one, two, three), scope), at_s=120),
        call(
            "other files are applied",
            lambda _, tx: carrying(tx, ({**one, "capacity": {"gpu": 3}}, {**two, "reserved": {"gpu": 2}}, four), scope),
        ),
    )


# ---- asking, borrowing, being told to let go -------------------------------------------------------------------------


def _asking() -> tuple[Step, ...]:
    bulk: list[requests.Ask | AppError | CoreError] = [
        ask("bulk-1", "team:green", 1, pool="cloud"),
        ask("bulk-2", "team:green", 1, pool="cloud", labels={"sweep": "a"}),
        NotFound("pool", "nowhere"),
        ask("bulk-3", "team:green", 99),
        ask("bulk-4", "team:green", 0.5, profile="half"),
    ]

    def together(life: Life) -> Any:
        """Three calls that arrive at once share a commit; one of them is refused and alone in that."""
        made = life.server.round(
            [
                (lambda tx: requests.submit(tx, ask("at-once-1", "team:blue", 0.5)), "local"),
                (lambda tx: requests.submit(tx, ask("at-once-2", "team:blue", 0.25)), "user:bob"),
                (lambda tx: requests.submit(tx, ask("at-once-3", "team:blue", pool="nowhere")), "user:bob"),
            ]
        )
        assert isinstance(made[2].exception(timeout=0), AppError)
        return [made[0].result(timeout=0).id, made[1].result(timeout=0).id]

    return (
        submit("ungoverned", "team:nobody", at_s=300, expect="rejected"),
        call("bulk", lambda _, tx: requests.submit_many(tx, bulk), at_s=310),
        submit("gang", "team:blue", at_s=320, demand=GANG, pool="gpus", expect="allocated"),
        Step(name="at once", do=together, at_s=330),
        call(
            "they go",
            lambda life, tx: _all_of(*(requests.release(tx, made) for made in life.answers["at once"])),
            at_s=340,
        ),
        call(
            "bob's own",
            lambda _, tx: requests.submit(
                tx, ask("bob's own", "user:bob", 1, team="blue"), caller=_principal("bob", "blue", "green")
            ),
            actor="user:bob",
        ),
    )


def _principal(name: str, *of: str) -> Principal:
    return Principal(subject=Subject.parse(f"user:{name}"), role=Role.MEMBER, teams=frozenset(of))


def _all_of(*answers: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: [answer() for answer in answers]


def _reclaim() -> tuple[Step, ...]:
    """Blue holds seven GPUs and two are its own: it borrows the rest, and red takes back what it needs."""
    return (
        submit("blue borrows", "team:blue", 3, pool="gpus", at_s=400, expect="allocated"),
        submit("red is entitled", "team:red", 2, at_s=420, expect="queued"),
        until("a grace period ends by itself", status_is("red is entitled", "allocated"), at_s=460),
        submit("blue borrows the rest", "team:blue", 2, pool="gpus", at_s=465, expect="allocated"),
        submit("red is entitled again", "team:red", 1, at_s=470, expect="queued"),
        Step(name="who was told lets go", do=_let_go, at_s=480),
        until("red has it", status_is("red is entitled again", "allocated"), at_s=481),
    )


def _let_go(life: Life) -> list[RequestId]:
    """Whoever is being evicted saves its work and releases, before its deadline."""
    told = sorted(
        record.id for record in life.server.scheduler.memory.live.values() if record.status.value == "preempting"
    )
    for request in told:
        life.server.do(partial(requests.release, ref=request), actor="local")
    return told


def _own_work() -> tuple[Step, ...]:
    """Firm work of green's comes, and its own borrowed work gives way; what was evicted comes again in its place."""
    return (
        submit("green fills lab", "team:green", 2, pool="lab", at_s=520, expect="allocated"),
        submit("green is firm", "team:green", 1, pool="lab", at_s=530, preemptible=False, expect="allocated"),
        until("green's borrowed work is gone", status_is("green fills lab", "preempted"), at_s=531),
        submit("green comes again", "team:green", 2, pool="lab", at_s=540, retry_of="green fills lab", expect="queued"),
        ends("green comes again", requests.cancel, at_s=550, becomes="cancelled"),
    )


def _ends() -> tuple[Step, ...]:
    """Every way in which a request ends."""
    return (
        submit("short lease", "team:green", 1, pool="cloud", at_s=600, lease_s=60),
        call("owners renew", lambda life, tx: requests.renew(tx, [life.id("short lease"), life.id("gang")]), at_s=650),
        until("a lease lapses", status_is("short lease", "expired"), at_s=720),
        submit("limited", "team:green", 1, pool="cloud", at_s=730, max_runtime_s=60, expect="allocated"),
        until("its run time is over", status_is("limited", "expired"), at_s=830),
        submit("impatient", "team:green", 4, pool="cloud", at_s=840, wait_timeout_s=30, expect="queued"),
        until("it waits no longer", status_is("impatient", "rejected"), at_s=880),
        submit("withdrawn", "team:green", 4, pool="cloud", at_s=890, expect="queued"),
        ends("withdrawn", requests.cancel, at_s=900, becomes="cancelled"),
        submit("finished", "team:green", 1, pool="cloud", at_s=910, expect="allocated"),
        ends("finished", requests.release, at_s=920, becomes="released"),
    )


def _reports() -> tuple[Step, ...]:
    """A run with a step, and a webhook's receiver that is told of it."""
    step = runs.NewStep(name="train", component="k8s")

    def told(life: Life, tx: Transaction) -> Callable[[], None]:
        hook = tx.memory.document(Kind.WEBHOOK, "chat").id
        return webhooks.told(tx, [WebhookCursor(name=hook, seq=tx.memory.history_seq)])

    def step_is(**change: Any) -> Doing:
        def do(life: Life, tx: Transaction) -> Callable[[], Any]:
            said = runs.StepChange(**change)
            if said.attempt is not None:
                said = replace(said, request=life.id("of the step"))
            return runs.update_step(tx, life.answers["a step"].id, said)

        return do

    def run_is(status: RunStatus) -> Doing:
        return lambda life, tx: runs.update_run(tx, life.answers["a run"].id, status=status)

    return (
        call("a run", lambda _, tx: runs.create_run(tx, runs.NewRun(name="sweep"), idempotency_key="run"), at_s=1_000),
        call("a step", lambda life, tx: runs.create_step(tx, life.answers["a run"].id, step, idempotency_key="step")),
        submit("of the step", "team:green", 0.5, profile="half", run="sweep"),
        call("the step runs", step_is(status=RunStatus.RUNNING, attempt=1)),
        call("the run runs", run_is(RunStatus.RUNNING)),
        call("the receiver is told", told, at_s=1_010),
        call("the step is done", step_is(status=RunStatus.COMPLETED, checkpoint="s3://checkpoint")),
        ends("of the step", requests.release, becomes="released"),
        call("the run is done", run_is(RunStatus.COMPLETED)),
    )


# ---- the afternoon: machines, windows, people who leave --------------------------------------------------------------


def _nodes() -> tuple[Step, ...]:
    def becomes(state: NodeState) -> Doing:
        return lambda _, tx: pools.update_node(tx, "gpus", "n2", lambda node: replace(node, state=state))

    return (
        call("a node goes down", becomes(NodeState.DOWN), at_s=2_000),
        submit("waits for the node", "team:blue", 4, at_s=2_010, expect="queued"),
        call("it is up again", becomes(NodeState.READY), at_s=2_020),
        call("it is cordoned", becomes(NodeState.CORDONED)),
        call("and open again", becomes(NodeState.READY)),
        ends("waits for the node", requests.cancel, becomes="cancelled"),
    )


def _windows() -> tuple[Step, ...]:
    """From eight in the evening until six in the morning blue has five reserved in place of two."""

    def reserved(gpus: int) -> Callable[[Life], bool]:
        def is_so(life: Life) -> bool:
            memory = life.server.scheduler.memory
            return dict(memory.world.policies[memory.policy("gpus/team:blue").spec.id].reserved)["gpu"] == gpus * 1000

        return is_so

    return (
        until("a window opens", reserved(5), at_s=12 * HOUR),
        submit("red borrows", "team:red", 2, pool="gpus", at_s=12 * HOUR + 30, expect="allocated"),
        submit("in the window", "team:blue", 2, pool="gpus", at_s=12 * HOUR + 60, expect="queued"),
        until("what the window needs is there", status_is("in the window", "allocated"), at_s=12 * HOUR + 100),
        until("a window closes", reserved(2), at_s=22 * HOUR),
    )


def _leaving() -> tuple[Step, ...]:
    def of_carol(_: Life, tx: Transaction) -> Callable[[], Any]:
        asked = ask("carol's", "user:carol", 4, team="green", pool="cloud")
        return requests.submit(tx, asked, caller=_principal("carol", "green"))

    def of_bob(_: Life, tx: Transaction) -> Callable[[], Any]:
        asked = ask("bob waits", "user:bob", 4, team="blue")
        return requests.submit(tx, asked, caller=_principal("bob", "blue", "green"))

    renamed = policies.PolicyChange(priority=1, limit=vector({"gpu": 6}))
    return (
        submit("cloud is taken", "team:green", 1, pool="cloud", at_s=23 * HOUR),
        call("carol's", of_carol, actor="user:carol"),
        call("bob waits", of_bob, actor="user:bob"),
        call("carol leaves green", lambda _, tx: teams.update(tx, "green", TeamChange(remove=("carol",)))),
        until("what waited through it is cancelled", status_is("carol's", "cancelled"), at_s=23 * HOUR + 10),
        call("bob goes", lambda _, tx: users.delete(tx, "bob"), again=NotFound),
        until("what he had waiting goes", status_is("bob waits", "cancelled"), at_s=23 * HOUR + 20),
        call("blue is azure", lambda _, tx: teams.update(tx, "blue", TeamChange(name="azure")), again=NotFound),
        call("its policy changes", lambda _, tx: policies.update(tx, "gpus/team:azure", renamed)),
        call("half is a half", lambda _, tx: profiles.update(tx, "half", ProfileChange(name="a-half")), again=NotFound),
        submit("red waits", "team:red", 4, pool="gpus"),
        submit("red has no way", "team:red", 3, pool="batch", expect="rejected"),
        call("red's policy goes", lambda _, tx: policies.detach(tx, "gpus/team:red"), again=NotFound),
        until("who waited through it waits no more", status_is("red waits", "cancelled"), at_s=23 * HOUR + 30),
    )


def _pools_go() -> tuple[Step, ...]:
    def smaller(_: Life, tx: Transaction) -> Callable[[], Any]:
        change = PoolChange(capacity=vector({"gpu": 2}), evict_borrowers=True)
        return pools.update(tx, "cloud", change, version=1)

    return (
        submit("more than there will be", "team:green", 1, pool="cloud", at_s=24 * HOUR, expect="allocated"),
        call("the cloud shrinks", smaller, at_s=24 * HOUR + 10, again=Stale),
        until("borrowers are gone", status_is("more than there will be", "preempted"), at_s=24 * HOUR + 60),
        call("lab drains", lambda _, tx: pools.delete(tx, "lab", on_work="drain"), again=NotFound),
        submit("too late for lab", "team:green", 1, pool="lab"),
        ends("green is firm", requests.release, becomes="released"),
        until("lab is gone", lambda life: life.server.scheduler.memory.named(Kind.POOL, "lab") is None, at_s=0),
        submit("in batch", "team:azure", 1, pool="batch", expect="allocated"),
        submit("waits for batch", "team:azure", 3, pool="batch", expect="queued"),
        call("batch is let go", lambda _, tx: pools.delete(tx, "batch", on_work="let-go"), again=NotFound),
        call("gpus is metal", lambda _, tx: pools.update(tx, "gpus", PoolChange(name="metal")), again=NotFound),
        call("the webhook goes", lambda _, tx: webhooks.delete(tx, "chat"), again=NotFound),
    )


# ---- the night: other servers, other workspaces ----------------------------------------------------------------------


def _another_leads() -> tuple[Step, ...]:
    def hand_over(life: Life) -> None:
        old = life.server
        old.scheduler.resign()
        life.begin(old.store, other_than(old.holder))

    def pause(life: Life) -> None:
        """A server that stood still for longer than its lease decides on what it knew, and may not write it down."""
        old = life.server
        life.clock.advance(LEADER_TTL_S + 1)
        life.begin(old.store, other_than(old.holder))
        late = old.round([(lambda tx: requests.submit(tx, ask("too late", "team:green")), "local")])[0]
        assert isinstance(late.exception(timeout=0), StaleLeader | NotLeading)

    return (
        Step(name="one server hands over", do=hand_over, at_s=25 * HOUR),
        submit("under the next leader", "team:green", 1, pool="cloud"),
        Step(name="another takes over", do=pause),
        ends("under the next leader", requests.cancel, becomes="cancelled"),
    )


def other_than(holder: str) -> str:
    """Another server's name."""
    return "two" if holder == "one" else "one"


def _a_workspace() -> tuple[Step, ...]:
    def beside(life: Life) -> None:
        """A workspace has its own leader and its own history in the same sequence of numbers."""
        store = life.server.store.beside("research")
        server = Server(life, store, "of research")
        server.begin()
        for name in ("own", "other"):
            if server.scheduler.memory.named(Kind.POOL, name) is None:
                server.do(partial(pools.create, pool=pool(name, {"gpu": 1})), actor="local")
        server.scheduler.resign()
        store.close()

    def close(_: Life, tx: Transaction) -> Callable[[], Any]:
        return workspaces.delete(tx, "research", workspaces.Work(), {})

    def remove(life: Life) -> None:
        record = life.server.scheduler.memory.named(Kind.WORKSPACE, "research")
        if record is None:
            return
        store = life.server.store.beside("research")
        known = life.server.scheduler.memory.document(Kind.WORKSPACE, record.id)
        done = erasing.finish(
            known, store, lambda command: life.server.do(command, actor="system"), life.clock, holder="eraser"
        )
        assert done
        store.close()

    return (
        once("workspace research", lambda tx: workspaces.create(tx, "research"), at_s=26 * HOUR),
        Step(name="its rules", do=beside),
        call("it closes", close, again=NotFound),
        Step(name="it is removed", do=remove),
    )


def _evening() -> tuple[Step, ...]:
    def everybody_lets_go(life: Life) -> list[RequestId]:
        """One call for each: a crash in between leaves some to be told again."""
        live = sorted(life.server.scheduler.memory.live)
        for request in live:
            if request in life.server.scheduler.memory.live:
                life.server.do(partial(requests.cancel, ref=request), actor="local")
        return live

    return (Step(name="everybody lets go", do=everybody_lets_go, at_s=27 * HOUR),)
