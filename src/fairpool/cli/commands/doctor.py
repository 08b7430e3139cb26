"""``fairpool doctor``."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from fairpool.cli.options import flags_of
from fairpool.cli.render import FORMATS

if TYPE_CHECKING:
    from fairpool.client.transport import Transport

CLOCK_TOLERANCE_S: Final = 2.0
"""Well below the shortest useful grace period."""


class Finding(NamedTuple):
    """One thing that was looked at."""

    name: str
    state: str
    text: str
    help: str = ""


@click.command("doctor")
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Show what is set and where it comes from, and whether server, database, disk and GPUs are well."""
    findings = [*_client(ctx), *_server_side(), *_gpus()]
    marks = {"ok": click.style("ok     ", fg="green"), "warning": click.style("warning", fg="yellow")}
    for finding in findings:
        mark = marks.get(finding.state, click.style("failed ", fg="red"))
        click.echo(f"{mark}  {finding.name}: {finding.text}")
        if finding.help:
            click.echo(f"         → {finding.help}")
    if any(finding.state == "failed" for finding in findings):
        ctx.exit(1)


def _client(ctx: click.Context) -> list[Finding]:
    from fairpool.client.connecting import connect, with_sign_in
    from fairpool.client.errors import ClientError
    from fairpool.client.settings import resolve

    found = []
    try:
        said = resolve(flags_of(ctx))
        for name, setting in with_sign_in(said).items():
            shown = "(set)" if name == "token" else setting.value
            possible = name != "output" or setting.value in FORMATS
            found.append(
                Finding(f"setting {name}", "ok", f"{shown} ({setting.source})")
                if possible
                else Finding(
                    f"setting {name}", "failed", f"{shown} ({setting.source})", f"possible: {', '.join(FORMATS)}"
                )
            )
        for transport in connect(flags_of(ctx), start=False).transport.each():
            found += _server(transport)
    except ClientError as error:
        state = "ok" if error.message == "no local server is running" else "failed"
        found.append(Finding("server", state, error.message, error.hint))
    return found


def _server(transport: Transport) -> list[Finding]:
    from fairpool.client.api import Client
    from fairpool.client.errors import ClientError

    client = Client(transport)
    try:
        info, workspaces = client.server(), client.workspaces()
    except ClientError as error:
        return [Finding("server", "failed", error.message, error.hint)]
    finally:
        client.close()
    text = f"{client.url} answers: version {info.version}, {info.queued} queued, {info.active} active"
    ahead_s = (datetime.now(UTC) - info.now).total_seconds()
    unserved = [_unserved(workspace.name) for workspace in workspaces if workspace.state == "unavailable"]
    return [Finding("server", "ok", text), *unserved, _version(info.version), _clock(ahead_s)]


def _unserved(workspace: str) -> Finding:
    told = f"{workspace} cannot be opened, or no server decides for it"
    return Finding("workspace", "failed", told, "the server's log says why; fairpool db check looks at its database")


def _version(server: str) -> Finding:
    from importlib import metadata

    ours = metadata.version("fairpool")
    if ours == server:
        return Finding("version", "ok", f"{ours}, here and at the server")
    told = f"{ours} here, {server} at the server"
    return Finding("version", "warning", told, "install the same version, or: fairpool server stop")


def _clock(ahead_s: float) -> Finding:
    if abs(ahead_s) <= CLOCK_TOLERANCE_S:
        return Finding("clock", "ok", "agrees with the server's")
    which = "ahead of" if ahead_s > 0 else "behind"
    told = f"{abs(ahead_s):.0f} s {which} the server's: deadlines are taken for others than they are"
    return Finding("clock", "warning", told, "set the clock (timedatectl set-ntp true)")


def _server_side() -> list[Finding]:
    from fairpool.cli.serverside import load

    try:
        found = load("fairpool.admin.doctor", "examine")()
    except (click.UsageError, ModuleNotFoundError):
        told = "not installed: this machine calls servers, and runs none (pip install 'fairpool[server]' if it should)"
        return [Finding("server extra", "ok", told)]
    return [Finding(each.name, each.state, each.text, each.help) for each in found]


def _gpus() -> list[Finding]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return [Finding("GPUs", "ok", "none seen here (no nvidia-smi)")]
    query = [program, "--query-gpu=index,name,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [Finding("GPUs", "warning", f"nvidia-smi does not answer: {error}", "look at the driver")]
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if done.returncode or not lines:
        return [Finding("GPUs", "warning", done.stderr.strip() or "nvidia-smi lists none", "look at the driver")]
    return [Finding("GPUs", "ok", f"{len(lines)}: {'; '.join(lines)}")]
