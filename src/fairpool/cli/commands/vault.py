"""``fairpool vault``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from fairpool.cli import render
from fairpool.cli.historyview import print_history
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import body, confirm, connected, note, pairs, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.vaults import VaultView

COLUMNS = (
    Column("TEAM", lambda vault: vault.name),
    Column("SECRETS", lambda vault: list(vault.secrets)),
    Column("ENVIRONMENT", lambda vault: list(vault.environment)),
    Column("IMAGE", lambda vault: vault.image is not None),
    Column("STORAGE", lambda vault: vault.storage_url is not None),
    Column("DESCRIPTION", lambda vault: vault.description, wide=True),
    Column("ID", lambda vault: vault.id, wide=True),
)


@click.group(cls=NounGroup)
def vault() -> None:
    """Vaults: what a team's steps get in their environment: variables, secrets, image, storage."""


@vault.command("list")
@printed
@connected
def list_(client: Client, style: Style) -> None:
    """List vaults; of secrets the names."""
    render.print_list(client.vaults(), COLUMNS, style)


@vault.command("describe")
@click.argument("team")
@printed
@connected
def describe(client: Client, team: str, style: Style) -> None:
    """Show the names in one vault, and who has changed and read it. Values of secrets are told to nobody."""
    found = client.vault(team)
    locked = {name for kept in (found.environment, found.secrets) for name, one in kept.items() if one.locked}
    lines = [
        ("Team", found.name),
        ("Description", found.description),
        ("Secrets", "\n".join(_shown(name, locked) for name in found.secrets)),
        ("Environment", "\n".join(_shown(name, locked) for name in found.environment)),
        ("Image", _one(found.image)),
        ("Storage", _one(found.storage_url)),
    ]
    render.print_one(found, lines, style)
    if style.format in ("table", "wide"):
        print_history(client, "vault", found.name)


def _shown(name: str, locked: set[str]) -> str:
    return f"{name} (locked)" if name in locked else name


def _one(kept: Any) -> str:
    return "" if kept is None else kept.value + (" (locked)" if kept.locked else "")


@vault.command("set")
@click.argument("team")
@click.option("--env", "variables", multiple=True, metavar="NAME=VALUE", help="A variable; repeatable.")
@click.option("--secret", "secrets", multiple=True, metavar="NAME", help="A secret: asked for, or read from stdin.")
@click.option("--image", metavar="IMAGE", help="The container image (FAIRPOOL_IMAGE in a step).")
@click.option("--storage-url", metavar="URL", help="Where to keep what is made (FAIRPOOL_STORAGE_URL in a step).")
@click.option("--locked/--default", default=False, help="Whether a step may set it otherwise (--default: it may).")
@click.option("--description", help="A line about it, for people.")
@connected
def set_(
    client: Client,
    team: str,
    variables: tuple[str, ...],
    secrets: tuple[str, ...],
    image: str | None,
    storage_url: str | None,
    description: str | None,
    *,
    locked: bool,
) -> None:
    """Set names in the vault of TEAM, which is made if it is not there. Secrets are never given on the command line:
    each is asked for at a terminal, or is a line of the standard input, in the order of the options."""
    given: dict[str, dict[str, object]] = {
        "environment": {name: _value(value, locked) for name, value in pairs(variables, option="--env").items()},
        "secrets": {name: _value(value, locked) for name, value in _asked(secrets).items()},
    }
    if image is not None:
        given["image"] = _value(image, locked)
    if storage_url is not None:
        given["storage_url"] = _value(storage_url, locked)
    if not any(given.values()) and description is None:
        raise click.UsageError("nothing to set; possible: --env, --secret, --image, --storage-url, --description")
    _put(client, team, {**given, "description": description})
    names = [*given["environment"], *given["secrets"], *(key for key in ("image", "storage_url") if key in given)]
    note(f"vault {team}: {', '.join(names) or 'description'} set{' and locked' if locked else ''}")


def _put(client: Client, team: str, given: dict[str, Any]) -> VaultView:
    from fairpool.client.errors import Problem
    from fairpool.wire.problems import Slug
    from fairpool.wire.vaults import VaultCreate, VaultUpdate

    update = body(VaultUpdate, **given)
    try:
        return client.update_vault(team, update)
    except Problem as problem:
        if problem.slug != Slug.NOT_FOUND:
            raise
    return client.create_vault(body(VaultCreate, name=team, **given))


def _value(value: str, locked: bool) -> dict[str, object]:
    return {"value": value, "locked": locked}


def _asked(names: tuple[str, ...]) -> dict[str, str]:
    """The secrets of these names, from a person or from the standard input."""
    if sys.stdin.isatty():
        return {name: click.prompt(name, hide_input=True, err=True) for name in names}
    found = {}
    for name in names:
        line = sys.stdin.readline()
        if not line.rstrip("\n"):
            raise click.UsageError(f"--secret {name}: the standard input holds no line for it")
        found[name] = line.rstrip("\n")
    return found


@vault.command("unset")
@click.argument("team")
@click.argument("names", nargs=-1)
@click.option("--image", is_flag=True, help="The container image.")
@click.option("--storage-url", is_flag=True, help="The storage URL.")
@connected
def unset(client: Client, team: str, names: tuple[str, ...], *, image: bool, storage_url: bool) -> None:
    """Take names out of the vault of TEAM, variables and secrets alike."""
    from fairpool.wire.vaults import VaultUpdate

    found = client.vault(team)
    missing = [name for name in names if name not in found.environment and name not in found.secrets]
    if missing:
        known = ", ".join([*found.secrets, *found.environment]) or "nothing"
        raise click.UsageError(f"vault {team} has no {missing[0]!r}; it has: {known}")
    single = {"image": None} if image else {}
    single |= {"storage_url": None} if storage_url else {}
    if not names and not single:
        raise click.UsageError("nothing to unset; possible: names, --image, --storage-url")
    gone = VaultUpdate(
        environment={name: None for name in names if name in found.environment},
        secrets={name: None for name in names if name in found.secrets},
        **single,
    )
    client.update_vault(team, gone, version=found.version)
    note(f"vault {team}: {', '.join([*names, *single])} taken out")


@vault.command("delete")
@click.argument("team")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def delete(client: Client, team: str, *, yes: bool) -> None:
    """Delete the vault of TEAM with everything in it."""
    found = client.vault(team)
    kept = len(found.secrets) + len(found.environment)
    confirm(f"Delete the vault of {found.name} with its {kept} names? Its secrets cannot be had back.", yes=yes)
    client.delete_vault(found.id)
    note(f"vault {found.name} deleted")


@vault.command("rotate")
@connected
def rotate(client: Client) -> None:
    """Seal all secrets anew with the newest key, the first in the server's FAIRPOOL_VAULT_KEY. After that the older
    keys are of no use."""
    done = client.rotate_vaults()
    hooks = f", webhooks {done.webhooks}" if done.webhooks else ""
    note(f"sealed with the newest key: secrets {done.secrets}, of vaults {done.vaults}{hooks}")


@vault.command("key")
def key() -> None:
    """Print a new key for the server's FAIRPOOL_VAULT_KEY. Keep it where the database is not."""
    import base64
    import os

    click.echo(base64.urlsafe_b64encode(os.urandom(32)).decode("ascii"))
