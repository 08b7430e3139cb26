"""``fairpool login``, ``logout`` and ``whoami``."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING, Final

import click

from fairpool.cli import render
from fairpool.cli.options import connected, flags_of, note, printed
from fairpool.cli.render import Style

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.client.settings import Setting
    from fairpool.wire.signin import DeviceView, SignedIn, SignInOptions, WhoAmI

_HERE: Final = ("http://127.0.0.1", "http://localhost", "http://[::1]")
_NO_DISPLAY: Final = "no browser can be opened here; --device signs in with a code that you enter elsewhere"


@click.command("login")
@click.argument("server", required=False)
@click.option("--device", is_flag=True, help="Without a browser here: enter a code on any other device.")
@click.option("--token", "by_token", is_flag=True, help="With a token that you have: typed, or from standard input.")
@click.option("--no-browser", is_flag=True, help="Only print the address that a browser on this machine should open.")
@click.option("--name", help="What the token is called (the name of this machine).")
@click.pass_context
def login(
    ctx: click.Context, server: str | None, name: str | None, *, device: bool, by_token: bool, no_browser: bool
) -> None:
    """Sign in at SERVER (the configured one) with your organisation's account. SERVER is used from then on."""
    from fairpool.client import signing_in
    from fairpool.client.api import Client
    from fairpool.client.settings import file_naming, use_server
    from fairpool.client.transport import Transport

    if sum((device, by_token, no_browser)) > 1:
        raise click.UsageError("--device, --token and --no-browser are different ways; possible: one of them")
    where = _server(ctx, server)
    settings = _settings(ctx)
    if server is not None:
        file_naming(where)  # refused before somebody signs in, not after
    if by_token:
        _with_token(where)
    else:
        client = Client(Transport(where, None, retries=1))
        options = client.sign_in_options()
        if not options.browser_url:
            raise signing_in.NotSignedIn(
                f"{where} has no provider to sign in at",
                hint="ask its administrator for a token, then: fairpool login --token",
            )
        called = name or signing_in.machine_name()
        done = _by_code(client, called) if device else _by_browser(client, options, called, opens=not no_browser)
        _keep(where, done, settings)
    if server is not None:
        use_server(where)


def _settings(ctx: click.Context) -> dict[str, Setting]:
    from fairpool.client.settings import resolve

    return resolve(flags_of(ctx))


def _server(ctx: click.Context, named: str | None) -> str:
    said = _settings(ctx).get("server")
    url = named or (said.value if said is not None else None)
    if url is None or url == "local":
        raise click.UsageError(
            "the local server knows you already: it reads your files. To sign in elsewhere: fairpool login https://HOST"
        )
    if not url.startswith(("http://", "https://")):
        raise click.UsageError(f"{url!r} is no address; possible: http(s)://HOST:PORT")
    if url.startswith("http://") and not url.startswith(_HERE):
        note(f"{url} is not encrypted: whoever is on the way reads the token")
    return url.rstrip("/")


# ---- ways ------------------------------------------------------------------------------------------------------------


def _by_browser(client: Client, options: SignInOptions, name: str, *, opens: bool) -> SignedIn:
    from fairpool.client import signing_in

    def show(url: str) -> None:
        opened = opens and _can_open()
        if opened:  # on a thread of its own: some browsers return only when they are closed
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        note("sign in where the browser opens, or open:" if opened else "open in a browser on this machine:")
        click.echo(f"  {url}", err=True)
        if opens and not opened:
            note(_NO_DISPLAY)

    return signing_in.in_browser(client, options, name=name, show=show)


def _can_open() -> bool:
    """Whether there is a browser that a person would see: not a text browser in this very terminal."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))


def _by_code(client: Client, name: str) -> SignedIn:
    from fairpool.client import signing_in

    def show(begun: DeviceView) -> None:
        note(f"open {begun.verification_uri} on any device and enter the code:")
        click.echo(f"\n    {begun.user_code}\n", err=True)
        if begun.verification_uri_complete:
            note(f"or open {begun.verification_uri_complete}")
        note(f"waiting, for {begun.expires_in_s // 60} minutes at most; never enter a code that somebody sent you")

    return signing_in.on_another_device(client, name=name, show=show)


def _with_token(server: str) -> None:
    from fairpool.client import credentials
    from fairpool.client.api import Client
    from fairpool.client.transport import Transport

    text = click.prompt("Token", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    token = text.strip()
    if not token:
        raise click.UsageError("--token found no token; possible: fairpool login --token < FILE, or type it")
    who = Client(Transport(server, token, retries=1)).whoami()
    kept = credentials.Credential(
        token=token,
        token_name=who.token_name,
        subject=who.subject,
        expires_at=who.expires_at.isoformat() if who.expires_at else "",
    )
    credentials.keep(server, who.workspace, kept)
    note(f"signed in at {server}: {_described(who)}")


def _keep(server: str, done: SignedIn, settings: dict[str, Setting]) -> None:
    from fairpool.client import credentials

    _revoke(server, done.workspace)  # the one from the last time: nobody needs it any more
    kept = credentials.Credential(
        token=done.token,
        token_name=done.token_name,
        subject=done.subject,
        expires_at=done.expires_at.isoformat() if done.expires_at else "",
    )
    credentials.keep(server, done.workspace, kept)
    note(f"signed in at {server}: {_described(done)}")
    if "token" in settings and settings["token"].source == "environment":
        note("FAIRPOOL_TOKEN is set and goes first: unset it to use this sign-in")


def _revoke(server: str, workspace: str) -> bool:
    """Revoke the token that is kept, as far as the server can be reached; whether there was one."""
    from fairpool.client import credentials
    from fairpool.client.api import Client
    from fairpool.client.errors import ClientError
    from fairpool.client.transport import Transport

    kept = credentials.find(server, workspace)
    if kept is None:
        return False
    try:
        Client(Transport(server, kept.token, retries=1)).sign_out()
    except ClientError as error:
        if getattr(error, "slug", "") != "unauthenticated":  # expired, or revoked already
            told = f"the token {kept.token_name!r} could not be revoked: {error.message}"
            note(f"{told}; it expires {kept.expires_at or 'never'}")
    return True


# ---- out, and who ----------------------------------------------------------------------------------------------------


@click.command("logout")
@click.argument("server", required=False)
@click.pass_context
def logout(ctx: click.Context, server: str | None) -> None:
    """Sign out at SERVER (the configured one): the token is revoked there and forgotten here."""
    from fairpool.client import credentials

    where = _server(ctx, server)
    workspace = credentials.workspace_meant(where, _settings(ctx)["workspace"].value)
    if not _revoke(where, workspace):
        note(f"you were not signed in at {where}")
        return
    credentials.forget(where, workspace)
    note(f"signed out at {where}")


@click.command("whoami")
@printed
@connected
def whoami(client: Client, style: Style) -> None:
    """Show who you are at the server, and until when."""
    who = client.whoami()
    if style.format in ("table", "wide"):
        click.echo(f"{client.url}: {_described(who)}")
    else:
        render.print_one(who, [], style)


def _described(who: WhoAmI | SignedIn) -> str:
    told = [who.subject or "the owner of the installation", f"role {who.role}"]
    told.append(f"teams {', '.join(who.teams)}" if who.teams else "in no team")
    told.append(f"workspace {who.workspace}")
    if who.token_name:
        until = f" until {render.moment(who.expires_at)}" if who.expires_at else ""
        told.append(f"token {who.token_name}{until}")
    return ", ".join(told)
