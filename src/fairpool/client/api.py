"""The calls of API v1, one method each, typed by the wire models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar
from uuid import uuid4

from pydantic import BaseModel

from fairpool.client.following import follow
from fairpool.client.people import PeopleCalls
from fairpool.client.transport import Query
from fairpool.client.workspaces import WorkspaceCalls
from fairpool.wire.events import Event, HistoryEntry
from fairpool.wire.explanations import CheckResult, Explanation
from fairpool.wire.manifests.plans import ApplyBody, ApplyResult
from fairpool.wire.policies import (
    PolicyCreate,
    PolicyUpdate,
    PolicyView,
    ProfileCreate,
    ProfileUpdate,
    ProfileView,
)
from fairpool.wire.pools import NodeUpdate, PoolCreate, PoolDeletion, PoolUpdate, PoolView
from fairpool.wire.queues import QueueDescription, QueueView
from fairpool.wire.requests import (
    BulkItem,
    BulkResult,
    LeaseBulkRenew,
    LeaseBulkResult,
    LeaseRenew,
    LeaseView,
    RequestBulkCreate,
    RequestCancel,
    RequestCreate,
    RequestRelease,
    RequestView,
)
from fairpool.wire.runs import RunCreate, RunUpdate, RunView, StepCreate, StepUpdate, StepView
from fairpool.wire.signin import (
    DeviceBegin,
    DevicePoll,
    DevicePolled,
    DeviceView,
    SignedIn,
    SignInExchange,
    SignInOptions,
    WhoAmI,
)
from fairpool.wire.stacks import (
    ComponentCreate,
    ComponentUpdate,
    ComponentView,
    StackCreate,
    StackUpdate,
    StackView,
)
from fairpool.wire.vaults import EnvironmentView, VaultCreate, VaultRotation, VaultUpdate, VaultView
from fairpool.wire.webhooks import NewWebhook, WebhookCreate, WebhookTrial, WebhookUpdate, WebhookView
from fairpool.wire.workspace import ServerInfo, SettingsUpdate, SettingsView

View = TypeVar("View", bound=BaseModel)
Item = TypeVar("Item", bound=BaseModel)


class Client(PeopleCalls, WorkspaceCalls):
    """A connection to one server. Each method raises `Problem` or `Unreachable`. Safe to use from several threads."""

    def within(self, workspace: str) -> Client:
        """A connection to the same server, by the same token, about another workspace."""
        return Client(self.transport.within(workspace))

    # ---- pools ------------------------------------------------------------------------------------------------------

    def pools(self, *, at: str | None = None) -> list[PoolView]:
        """All pools; with `at` as they were at that moment."""
        return list(self.pages("pool_list", PoolView, query={"at": at}))

    def pool(self, ref: str, *, at: str | None = None) -> PoolView:
        """One pool; with `at` as it was at that moment."""
        return self.transport.call("pool_get", PoolView, path={"ref": ref}, query={"at": at})

    def create_pool(self, body: PoolCreate, *, dry_run: bool = False) -> PoolView:
        """A new pool."""
        return self.transport.call("pool_create", PoolView, body=body, query={"dry_run": dry_run})

    def update_pool(self, ref: str, body: PoolUpdate, *, version: int | None = None, dry_run: bool = False) -> PoolView:
        """A pool changes."""
        query: Query = {"dry_run": dry_run}
        return self.transport.call("pool_update", PoolView, path={"ref": ref}, body=body, version=version, query=query)

    def delete_pool(self, ref: str, *, on_work: str = "refuse", dry_run: bool = False) -> PoolDeletion:
        """A pool goes (S10)."""
        query: Query = {"on_work": on_work, "dry_run": dry_run}
        return self.transport.call("pool_delete", PoolDeletion, path={"ref": ref}, query=query)

    def update_node(
        self, pool: str, node: str, body: NodeUpdate, *, version: int | None = None, dry_run: bool = False
    ) -> PoolView:
        """One node of a pool changes."""
        path, query = {"ref": pool, "node": node}, {"dry_run": dry_run}
        return self.transport.call("node_update", PoolView, path=path, body=body, version=version, query=query)

    # ---- policies, profiles -----------------------------------------------------------------------------------------

    def policies(
        self, *, pool: str | None = None, subject: str | None = None, at: str | None = None
    ) -> list[PolicyView]:
        """All policies, or those of a pool or subject; with `at` as they were at that moment."""
        return list(self.pages("policy_list", PolicyView, query={"pool": pool, "subject": subject, "at": at}))

    def policy(self, ref: str) -> PolicyView:
        """One policy, by id."""
        return self.transport.call("policy_get", PolicyView, path={"id": ref})

    def attach_policy(self, body: PolicyCreate, *, dry_run: bool = False) -> PolicyView:
        """A new policy."""
        return self.transport.call("policy_create", PolicyView, body=body, query={"dry_run": dry_run})

    def update_policy(
        self, ref: str, body: PolicyUpdate, *, version: int | None = None, dry_run: bool = False
    ) -> PolicyView:
        """A policy changes."""
        query: Query = {"dry_run": dry_run}
        return self.transport.call(
            "policy_update", PolicyView, path={"id": ref}, body=body, version=version, query=query
        )

    def detach_policy(self, ref: str, *, dry_run: bool = False) -> bytes:
        """A policy goes."""
        return self.transport.raw("policy_delete", path={"id": ref}, query={"dry_run": dry_run})

    def profiles(self, *, at: str | None = None) -> list[ProfileView]:
        """All profiles; with `at` as they were at that moment."""
        return list(self.pages("profile_list", ProfileView, query={"at": at}))

    def profile(self, ref: str, *, at: str | None = None) -> ProfileView:
        """One profile; with `at` as it was at that moment."""
        return self.transport.call("profile_get", ProfileView, path={"ref": ref}, query={"at": at})

    def create_profile(self, body: ProfileCreate, *, dry_run: bool = False) -> ProfileView:
        """A new profile."""
        return self.transport.call("profile_create", ProfileView, body=body, query={"dry_run": dry_run})

    def update_profile(
        self, ref: str, body: ProfileUpdate, *, version: int | None = None, dry_run: bool = False
    ) -> ProfileView:
        """A profile changes."""
        query: Query = {"dry_run": dry_run}
        return self.transport.call(
            "profile_update", ProfileView, path={"ref": ref}, body=body, version=version, query=query
        )

    def delete_profile(self, ref: str, *, dry_run: bool = False) -> bytes:
        """A profile goes."""
        return self.transport.raw("profile_delete", path={"ref": ref}, query={"dry_run": dry_run})

    # ---- queues -----------------------------------------------------------------------------------------------------

    def queues(self, *, subject: str | None = None, profile: str | None = None) -> list[QueueView]:
        """The queues that the caller sees, or those of a subject or profile."""
        return list(self.pages("queue_list", QueueView, query={"subject": subject, "profile": profile}))

    def queue(self, owner: str, profile: str) -> QueueDescription:
        """One queue: of a team by its name, of others by their subject."""
        return self.transport.call("queue_get", QueueDescription, path={"owner": owner, "profile": profile})

    # ---- vaults -----------------------------------------------------------------------------------------------------

    def vaults(self) -> list[VaultView]:
        """The vaults that the caller sees; of secrets only the names."""
        return list(self.pages("vault_list", VaultView))

    def vault(self, ref: str) -> VaultView:
        """One vault, by its team."""
        return self.transport.call("vault_get", VaultView, path={"ref": ref})

    def create_vault(self, body: VaultCreate) -> VaultView:
        """A new vault."""
        return self.transport.call("vault_create", VaultView, body=body)

    def update_vault(self, ref: str, body: VaultUpdate, *, version: int | None = None) -> VaultView:
        """A vault changes."""
        return self.transport.call("vault_update", VaultView, path={"ref": ref}, body=body, version=version)

    def delete_vault(self, ref: str) -> bytes:
        """A vault goes."""
        return self.transport.raw("vault_delete", path={"ref": ref})

    def rotate_vaults(self) -> VaultRotation:
        """Seal all secrets anew with the newest key."""
        return self.transport.call("vault_rotate", VaultRotation)

    # ---- webhooks ---------------------------------------------------------------------------------------------------

    def webhooks(self) -> list[WebhookView]:
        """All webhooks, and how telling each goes."""
        return list(self.pages("webhook_list", WebhookView))

    def webhook(self, ref: str) -> WebhookView:
        """One webhook."""
        return self.transport.call("webhook_get", WebhookView, path={"ref": ref})

    def create_webhook(self, body: WebhookCreate, *, dry_run: bool = False) -> NewWebhook:
        """A new webhook, with its secret."""
        return self.transport.call("webhook_create", NewWebhook, body=body, query={"dry_run": dry_run})

    def update_webhook(self, ref: str, body: WebhookUpdate, *, version: int | None = None) -> WebhookView:
        """A webhook changes."""
        return self.transport.call("webhook_update", WebhookView, path={"ref": ref}, body=body, version=version)

    def delete_webhook(self, ref: str) -> bytes:
        """A webhook goes."""
        return self.transport.raw("webhook_delete", path={"ref": ref})

    def draw_webhook_secret(self, ref: str) -> NewWebhook:
        """A webhook gets another secret."""
        return self.transport.call("webhook_secret", NewWebhook, path={"ref": ref})

    def try_webhook(self, ref: str) -> WebhookTrial:
        """Call a webhook's receiver now, once."""
        return self.transport.call("webhook_test", WebhookTrial, path={"ref": ref})

    def environment(self, request: str) -> EnvironmentView:
        """What the vault of its team gives to a granted request, values and all."""
        return self.transport.call("request_environment", EnvironmentView, path={"id": request})

    # ---- components, stacks, settings -------------------------------------------------------------------------------

    def components(self) -> list[ComponentView]:
        """All components."""
        return list(self.pages("component_list", ComponentView))

    def component(self, ref: str) -> ComponentView:
        """One component."""
        return self.transport.call("component_get", ComponentView, path={"ref": ref})

    def create_component(self, body: ComponentCreate, *, dry_run: bool = False) -> ComponentView:
        """A new component."""
        return self.transport.call("component_create", ComponentView, body=body, query={"dry_run": dry_run})

    def update_component(self, ref: str, body: ComponentUpdate, *, version: int | None = None) -> ComponentView:
        """A component changes."""
        return self.transport.call("component_update", ComponentView, path={"ref": ref}, body=body, version=version)

    def delete_component(self, ref: str, *, dry_run: bool = False) -> bytes:
        """A component goes."""
        return self.transport.raw("component_delete", path={"ref": ref}, query={"dry_run": dry_run})

    def stacks(self) -> list[StackView]:
        """All stacks."""
        return list(self.pages("stack_list", StackView))

    def stack(self, ref: str) -> StackView:
        """One stack."""
        return self.transport.call("stack_get", StackView, path={"ref": ref})

    def create_stack(self, body: StackCreate, *, dry_run: bool = False) -> StackView:
        """A new stack."""
        return self.transport.call("stack_create", StackView, body=body, query={"dry_run": dry_run})

    def update_stack(self, ref: str, body: StackUpdate, *, version: int | None = None) -> StackView:
        """A stack changes."""
        return self.transport.call("stack_update", StackView, path={"ref": ref}, body=body, version=version)

    def delete_stack(self, ref: str, *, dry_run: bool = False) -> bytes:
        """A stack goes."""
        return self.transport.raw("stack_delete", path={"ref": ref}, query={"dry_run": dry_run})

    def activate_stack(self, ref: str) -> StackView:
        """Runs that name no stack use this one."""
        return self.transport.call("stack_activate", StackView, path={"ref": ref})

    def settings(self) -> SettingsView:
        """The workspace's settings."""
        return self.transport.call("settings_get", SettingsView)

    def update_settings(self, body: SettingsUpdate) -> SettingsView:
        """Change the workspace's settings."""
        return self.transport.call("settings_update", SettingsView, body=body)

    def server(self) -> ServerInfo:
        """What the server says of itself."""
        return self.transport.call("server_info", ServerInfo)

    def plan(self, body: ApplyBody) -> ApplyResult:
        """What documents would change."""
        return self.transport.call("plan", ApplyResult, body=body)

    def apply(self, body: ApplyBody) -> ApplyResult:
        """Change what documents want changed: all of it or nothing."""
        return self.transport.call("apply", ApplyResult, body=body)

    # ---- signing in -------------------------------------------------------------------------------------------------

    def sign_in_options(self) -> SignInOptions:
        """How people sign in."""
        return self.transport.call("sign_in_options", SignInOptions)

    def begin_device(self, body: DeviceBegin) -> DeviceView:
        """Begin to sign in with a code that is entered on another device."""
        return self.transport.call("sign_in_device", DeviceView, body=body)

    def poll_device(self, body: DevicePoll) -> DevicePolled:
        """Whether somebody has entered the code by now."""
        return self.transport.call("sign_in_poll", DevicePolled, body=body)

    def exchange_sign_in(self, body: SignInExchange) -> SignedIn:
        """Exchange a one-time code for a token."""
        return self.transport.call("sign_in_exchange", SignedIn, body=body)

    def sign_out(self) -> bytes:
        """Revoke the token of these calls."""
        return self.transport.raw("sign_out")

    def whoami(self) -> WhoAmI:
        """Who calls."""
        return self.transport.call("whoami", WhoAmI)

    # ---- requests ---------------------------------------------------------------------------------------------------

    def requests(self, *, limit: int | None = None, **query: str | Sequence[str] | None) -> Iterator[RequestView]:
        """Requests, newest first unless ``order`` is ``oldest``; filters ``view, status, pool, subject, profile, name,
        run, label``, and ``at`` for a moment of the past."""
        return self.pages("request_list", RequestView, query=query, limit=limit)

    def request(self, ref: str, *, wait_s: float = 0, after_version: int | None = None) -> RequestView:
        """One request; with `wait_s` once it has changed, or as it is when the time is over."""
        query: Query = {"wait_s": wait_s or None, "after_version": after_version}
        return self.transport.call("request_get", RequestView, path={"id": ref}, query=query, wait_s=wait_s)

    def submit(self, body: RequestCreate, *, wait_s: float = 0, key: str | None = None) -> RequestView:
        """Submit a request; with `wait_s` answered once it is no longer queued, or when the time is over."""
        query: Query = {"wait_s": wait_s or None}
        return self.transport.call(
            "request_create", RequestView, body=body, query=query, wait_s=wait_s, idempotency_key=key
        )

    def submit_many(self, bodies: Sequence[RequestCreate]) -> list[BulkItem]:
        """Submit many requests at once; each succeeds or fails for itself. Those without an idempotency key get one."""
        keyed = [
            body if body.idempotency_key else body.model_copy(update={"idempotency_key": uuid4().hex})
            for body in bodies
        ]
        return self.transport.call("request_bulk", BulkResult, body=RequestBulkCreate(requests=keyed)).items

    def check(self, body: RequestCreate) -> CheckResult:
        """Whether a request would run: now, later or never, and why."""
        return self.transport.call("request_check", CheckResult, body=body)

    def explain(self, ref: str) -> Explanation:
        """Why a request is where it is."""
        return self.transport.call("request_explain", Explanation, path={"id": ref})

    def cancel(self, ref: str, *, reason: str = "") -> RequestView:
        """Withdraw a request."""
        return self.transport.call("request_cancel", RequestView, path={"id": ref}, body=RequestCancel(reason=reason))

    def release(self, ref: str, *, force: bool = False, reason: str = "") -> RequestView:
        """Let go of what a request holds."""
        body = RequestRelease(force=force, reason=reason)
        return self.transport.call("request_release", RequestView, path={"id": ref}, body=body)

    def renew(self, ref: str) -> LeaseView:
        """Renew one lease."""
        return self.transport.call("lease_renew", LeaseView, path={"id": ref}, body=LeaseRenew())

    def renew_many(self, requests: Sequence[str]) -> LeaseBulkResult:
        """Renew many leases at once."""
        return self.transport.call("lease_bulk", LeaseBulkResult, body=LeaseBulkRenew(requests=list(requests)))

    # ---- runs -------------------------------------------------------------------------------------------------------

    def runs(self, *, limit: int | None = None, label: Sequence[str] = ()) -> Iterator[RunView]:
        """Runs, newest first."""
        return self.pages("run_list", RunView, query={"label": label}, limit=limit)

    def run(self, ref: str) -> RunView:
        """One run with its steps."""
        return self.transport.call("run_get", RunView, path={"ref": ref})

    def create_run(self, body: RunCreate) -> RunView:
        """A run begins."""
        return self.transport.call("run_create", RunView, body=body)

    def update_run(self, ref: str, body: RunUpdate) -> RunView:
        """Something of a run changed."""
        return self.transport.call("run_update", RunView, path={"ref": ref}, body=body)

    def create_step(self, run: str, body: StepCreate) -> StepView:
        """A step of a run begins."""
        return self.transport.call("step_create", StepView, path={"ref": run}, body=body)

    def step(self, ref: str) -> StepView:
        """One step."""
        return self.transport.call("step_get", StepView, path={"id": ref})

    def update_step(self, ref: str, body: StepUpdate) -> StepView:
        """Something of a step changed."""
        return self.transport.call("step_update", StepView, path={"id": ref}, body=body)

    # ---- history, events --------------------------------------------------------------------------------------------

    def history_of(self, kind: str, ref: str, *, limit: int | None = 50) -> list[HistoryEntry]:
        """The history of a pool, policy, vault or request."""
        path = {"ref": ref} if kind in ("pool", "vault") else {"id": ref}
        return list(self.pages(f"{kind}_history", HistoryEntry, path=path, limit=limit))

    def history(
        self,
        *,
        kind: str | None = None,
        object_id: str | None = None,
        after: int | None = None,
        limit: int | None = None,
        **more: str | bool | None,
    ) -> list[HistoryEntry]:
        """What happened, the newest first; with `after` what came after that entry, the oldest first.

        more: ``named``, ``rules``, ``actor``, ``since``, ``until``.
        """
        query: Query = {"kind": kind, "object": object_id, "after": after, **more}
        return list(self.pages("history", HistoryEntry, query=query, limit=limit))

    def events(
        self, *, after: int | None = None, kind: str | None = None, object_id: str | None = None, run: str | None = None
    ) -> Iterator[Event]:
        """What happens, from now or from after an event on, for ever: each event once and in order, also when the
        connection breaks or the server restarts. Raises Problem where the server refuses."""
        return follow(self.transport, after=after, query={"kind": kind, "object": object_id, "run": run})
