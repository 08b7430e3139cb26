"""Vaults and webhooks as documents: kinds that keep secrets, which no document says and no plan shows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from fairpool.app.ports import Sealer
from fairpool.app.records import Document
from fairpool.app.transaction import Transaction
from fairpool.app.use_cases import vaults, webhooks
from fairpool.server import bodies, incoming
from fairpool.wire.vaults import VaultDocument
from fairpool.wire.webhooks import WebhookCreate

CheckUrl = Callable[[str], object]
"""Raises InvalidInput for an address that no webhook may call."""


class Vaults:
    """Vaults as documents; the secrets that they keep stay where a document names them."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def create(self, tx: Transaction, body: Document) -> str:
        said = VaultDocument.model_validate(body)
        return vaults.create(tx, said.name, bodies.change_of_vault(said), self._sealer)().id

    def change(self, tx: Transaction, object_id: str, body: Document) -> None:
        vaults.update(tx, object_id, bodies.change_of_vault(VaultDocument.model_validate(body)), self._sealer)

    def delete(self, tx: Transaction, object_id: str) -> None:
        vaults.delete(tx, object_id)


class Webhooks:
    """Webhooks as documents. A new one signs with a secret that nobody has seen: another one is drawn to be shown."""

    def __init__(self, sealer: Sealer, check_url: CheckUrl) -> None:
        self._sealer = sealer
        self._check_url = check_url

    def create(self, tx: Transaction, body: Document) -> str:
        said = WebhookCreate.model_validate(body)
        self._check_url(said.url)
        name, secret = incoming.name("name", said.name, what="webhook"), webhooks.new_secret()
        return webhooks.create(tx, name, bodies.change_of_webhook(said), secret=secret, sealer=self._sealer)().id

    def change(self, tx: Transaction, object_id: str, body: Document) -> None:
        said = WebhookCreate.model_validate(body)
        self._check_url(said.url)
        webhooks.update(tx, object_id, bodies.change_of_webhook(said))

    def delete(self, tx: Transaction, object_id: str) -> None:
        webhooks.delete(tx, object_id)


def shown_url(url: str) -> str:
    """An address in a plan, which many read: whose it is, and enough of a fingerprint to tell two of them apart."""
    host = webhooks.shown({"url": url})["url"]
    return f"{host} (sha256 {hashlib.sha256(url.encode()).hexdigest()[:12]})"
