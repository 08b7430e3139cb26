"""Webhooks as documents: their secrets are in no file, no plan and no history, and stay what they are."""

from __future__ import annotations

from typing import cast

import pytest

from fairpool.app.errors import NotFound, NoVaultKey
from fairpool.app.manifests.carrying_out import Refusals
from fairpool.app.memory import Memory
from fairpool.app.records import Kind
from fairpool.app.use_cases import policies, pools, teams, webhooks
from fairpool.core.errors import InvalidInput
from fairpool.core.ids import Instant
from fairpool.server import declaring
from fairpool.wire.manifests.kinds import read_document
from fairpool.wire.reading import InvalidBody
from tests.documents import FULL, Data
from tests.unit.app.office import Office
from tests.unit.server.applying import SEALER, apply, attempt, plan

HOOK: Data = {
    "kind": "webhook",
    "name": "chat",
    "url": "https://hooks.example.org/kn0wn-by-this",
    "events": ["request.granted", "request.rejected"],
}


def secret_of(office: Office) -> str:
    return webhooks.webhook_of(office.memory.document(Kind.WEBHOOK, "chat")).secret


def test_a_secret_is_drawn_by_the_server_and_a_file_never_says_it() -> None:
    office = Office()
    apply(office, HOOK)
    drawn = secret_of(office)
    assert drawn.startswith("whsec_")
    apply(office, {**HOOK, "events": ["request.granted"], "description": "told"})
    assert secret_of(office) == drawn, "what signs does not change with what is told"
    office.do(webhooks.draw_secret, "chat", secret="whsec_other", sealer=SEALER)
    assert secret_of(office) == "whsec_other"
    assert "whsec_" not in str(office.told.entries)
    with pytest.raises(InvalidBody, match="the secret of a webhook does not belong into a file") as caught:
        read_document({**HOOK, "secret": "whsec_mine"})
    assert "whsec_mine" not in str(caught.value.problems)


def test_a_wrong_webhook_is_refused_without_repeating_its_address() -> None:
    with pytest.raises(InvalidBody) as caught:
        read_document({**HOOK, "url": ["https://hooks.example.org/kn0wn-by-this"]})
    assert "kn0wn" not in str(caught.value.problems)


def test_the_events_are_a_set_in_whatever_order_they_are_written() -> None:
    office = Office()
    apply(office, HOOK)
    again = {**HOOK, "events": ["request.rejected", "request.granted", "request.rejected"]}
    assert plan(office, again).pending == ()


def test_a_plan_tells_addresses_apart_without_showing_them() -> None:
    body = cast("Data", declaring.as_document(Kind.WEBHOOK, {**HOOK, "enabled": True}))
    other = declaring.as_document(Kind.WEBHOOK, {**HOOK, "url": "https://hooks.example.org/other"})
    assert str(body["url"]).startswith("https://hooks.example.org/… (sha256 ")
    assert body["url"] != other["url"]


def test_without_a_key_to_keep_secrets_with_a_webhook_is_refused_in_the_plan() -> None:
    from fairpool.app.use_cases.vaults import Keyless

    office = Office()
    found = plan(office, HOOK)
    uses = declaring.uses(Keyless(), str)
    from fairpool.app.manifests import what_if
    from fairpool.app.manifests.values import Scope

    stored = office.ask(lambda memory, now: what_if.frozen(memory))
    with pytest.raises(Refusals) as caught:
        what_if.attempt(stored, office.store.reader, office.clock.now(), found, Scope(), uses)
    assert isinstance(caught.value.refusals[0].error, NoVaultKey)


def test_a_webhook_waits_for_the_pool_that_the_same_files_make() -> None:
    office = Office()
    hook = {**HOOK, "pool": "gpus"}
    with pytest.raises(Refusals):
        attempt(office, hook)
    apply(office, hook, {"kind": "pool", "name": "gpus"})
    assert webhooks.webhook_of(office.memory.document(Kind.WEBHOOK, "chat")).pool == "gpus"
    assert FULL["webhook"]["pool"] == "gpus", "as the document that says everything"


def test_a_webhook_follows_the_new_names_of_its_pool_and_its_team() -> None:
    office = Office()
    office.do(teams.create, "red", members=[])
    apply(office, {"kind": "pool", "name": "gpus"}, {**HOOK, "pool": "gpus", "team": "red"}, {**HOOK, "name": "all"})
    office.do(pools.update, "gpus", pools.PoolChange(name="cards"))
    office.do(teams.update, "red", teams.TeamChange(name="crimson"))
    found = {hook.name: hook for hook in map(webhooks.webhook_of, office.ask(hooks))}
    assert (found["chat"].pool, found["chat"].team) == ("cards", "crimson")
    assert (found["all"].pool, found["all"].team) == ("", "")
    assert "whsec_" not in str(office.told.entries)


VAULT: Data = {"kind": "vault", "name": "red", "environment": {"A": {"value": "1"}}}


@pytest.mark.parametrize(("document", "field"), [(VAULT, "name"), ({**HOOK, "team": "red"}, "team")])
def test_a_team_that_there_is_not_has_neither_a_vault_nor_a_webhook(document: Data, field: str) -> None:
    office = Office()
    office.do(teams.create, "rod")
    with pytest.raises(Refusals) as caught:
        attempt(office, document)
    [refusal] = caught.value.refusals
    assert isinstance(refusal.error, InvalidInput)
    assert (refusal.error.field, refusal.error.value) == (field, "red")
    assert "(rod)" in refusal.error.possible
    apply(office, document, {"kind": "team", "name": "red"})


@pytest.mark.parametrize("document", [VAULT, {**HOOK, "team": "red"}])
def test_a_team_that_has_a_policy_is_one_though_nobody_declared_it(document: Data) -> None:
    office = Office()
    apply(office, {"kind": "pool", "name": "gpus"}, {"kind": "policy", "pool": "gpus", "subject": "team:red"}, document)
    assert len(office.memory.all(Kind(str(document["kind"])))) == 1


def test_with_a_team_go_the_webhooks_that_are_told_of_it_alone() -> None:
    office = Office()
    office.do(teams.create, "red")
    apply(office, {**HOOK, "team": "red"}, {**HOOK, "name": "all"}, VAULT)
    gone = office.memory.document(Kind.WEBHOOK, "chat").id
    office.do(teams.delete, "red", dry_run=True)
    assert len(office.memory.all(Kind.WEBHOOK)) == 2
    office.do(teams.delete, "red")
    assert [hook.name for hook in office.memory.all(Kind.WEBHOOK)] == ["all"]
    assert not office.memory.all(Kind.VAULT)
    assert office.history(gone) == ["created", "deleted"]


def test_a_webhook_whose_team_had_only_a_policy_can_be_changed_after_that_has_gone() -> None:
    office = Office()
    office.pool("p")
    office.policy("team:red")
    apply(office, {**HOOK, "team": "red"})
    [policy] = office.memory.all(Kind.POLICY)
    office.do(policies.detach, policy.id)
    office.do(webhooks.update, "chat", webhooks.WebhookChange(enabled=False))
    assert not webhooks.webhook_of(office.memory.document(Kind.WEBHOOK, "chat")).enabled


def test_a_webhook_of_a_pool_that_was_deleted_stays_as_it_is_and_can_be_changed() -> None:
    """What the pool leaves behind is still to be told, and whoever makes it again finds its webhook there."""
    office = Office()
    of_pool: Data = {**HOOK, "pool": "gpus"}
    apply(office, {"kind": "pool", "name": "gpus"}, of_pool)
    office.do(pools.delete, "gpus")
    assert plan(office, of_pool).pending == ()
    apply(office, {**of_pool, "description": "told"})
    office.do(webhooks.update, "chat", webhooks.WebhookChange(enabled=False))
    [found] = map(webhooks.webhook_of, office.ask(hooks))
    assert (found.pool, found.enabled) == ("gpus", False)
    with pytest.raises(NotFound):
        office.do(webhooks.update, "chat", webhooks.WebhookChange(pool="other"))
    office.do(webhooks.update, "chat", webhooks.WebhookChange(pool=""))
    assert webhooks.webhook_of(office.memory.document(Kind.WEBHOOK, "chat")).pool == ""


def hooks(memory: Memory, now: Instant) -> list[webhooks.WebhookRecord]:
    return [memory.document(Kind.WEBHOOK, declared.id) for declared in memory.all(Kind.WEBHOOK)]
