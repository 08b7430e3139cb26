"""``fairpool token``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import Duration, body, confirm, connected, note, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client

COLUMNS = (
    Column("NAME", lambda token: token.name),
    Column("OWNER", lambda token: token.owner),
    Column("STATUS", lambda token: token.status),
    Column("EXPIRES", lambda token: token.expires_at or "never"),
    Column("LAST-USED", lambda token: token.last_used_at or "never"),
    Column("CREATED", lambda token: token.created_at, wide=True),
    Column("CREATED-BY", lambda token: token.created_by, wide=True),
    Column("ID", lambda token: token.id),
)


@click.group(cls=NounGroup)
def token() -> None:
    """Tokens: what lets people and programs in. Each is shown once."""


@token.command("create")
@click.argument("name")
@click.option("--for", "owner", metavar="SUBJECT", help="user:NAME or service-account:NAME (yourself).")
@click.option(
    "--expires", metavar="DURATION", help="How long it lasts: 90d, 12h (90d); 'never' is for service accounts."
)
@printed
@connected
@click.pass_context
def create(
    ctx: click.Context, /, client: Client, name: str, owner: str | None, expires: str | None, style: Style
) -> None:
    """Make a token and show it, this once. NAME tells it from the owner's others: what or where it is for."""
    from fairpool.wire.people import TokenCreate

    never = expires == "never"
    option = next(option for option in ctx.command.params if option.name == "expires")
    expires_s = None if expires is None or never else Duration().convert(expires, option, ctx)
    made = client.create_token(
        body(TokenCreate, name=name, owner=owner, expires_s=expires_s, never_expires=True if never else None)
    )
    if style.format in ("table", "wide"):
        click.echo(made.token)
        until = f"until {made.expires_at:%Y-%m-%d}" if made.expires_at is not None else "until it is revoked"
        note(f"this is the token {made.name} of {made.owner}, valid {until}; it is not shown again")
    else:
        render.print_one(made, [], style)


@token.command("list")
@click.option("--for", "owner", metavar="SUBJECT", help="Only those of user:NAME or service-account:NAME.")
@click.option("--all", "also_over", is_flag=True, help="Those that have expired or were revoked too.")
@printed
@connected
def list_(client: Client, owner: str | None, style: Style, *, also_over: bool) -> None:
    """List tokens, without what lets anybody in: your own, and to an admin everybody's."""
    found = client.tokens(owner)
    render.print_list([token for token in found if also_over or token.status == "valid"], COLUMNS, style)


@token.command("revoke")
@click.argument("token")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def revoke(client: Client, token: str, *, yes: bool) -> None:
    """Revoke a token at once. TOKEN is its name or its id."""
    confirm(f"Revoke token {token}? Whoever uses it is refused from then on.", yes=yes)
    gone = client.revoke_token(token)
    note(f"token {gone.name} of {gone.owner} revoked")
