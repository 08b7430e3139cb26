"""``fairpool``: the command line. Data goes to stdout, all else to stderr; exit codes are in wire/problems.py."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

import click

from fairpool.cli.lazy import LazyGroup

COMMANDS = {
    "run": ("run", "run", "run a command with resources, waiting until they are granted"),
    "top": ("top", "top", "live view of pools, shares and the queue"),
    "pool": ("pool", "pool", "what there is: create, list, describe, update, delete, requests"),
    "policy": ("policy", "policy", "who may use what: attach, list, describe, update, detach, test"),
    "request": ("request", "request", "who asks: list, describe, explain, cancel, release, watch"),
    "runs": ("runs", "runs", "runs of commands and pipelines: list, describe, logs"),
    "webhook": (
        "webhook",
        "webhook",
        "programs that are called when something happens: create, list, describe, secret, test",
    ),
    "events": ("events", "events", "what has happened, and what happens: --follow"),
    "profile": ("profile", "profile", "what can be asked for by name: create, list, describe, update, delete"),
    "queue": ("queue", "queue", "what a team sees of a profile: list, describe"),
    "vault": ("vault", "vault", "what a team's steps get: list, describe, set, unset, delete, rotate, key"),
    "node": ("node", "node", "machines of pools: list, describe, cordon, uncordon, label"),
    "stack": ("stack", "stack", "choices of components: create, list, describe, activate, delete"),
    "component": ("component", "component", "where steps run: create, list, describe, delete"),
    "user": ("user", "user", "people: create, list, describe, update, delete"),
    "team": ("team", "team", "who belongs together: create, list, describe, update, add, remove, delete"),
    "service-account": (
        "service_account",
        "service_account",
        "who programs are: create, list, describe, update, delete",
    ),
    "token": ("token", "token", "what lets people and programs in: create, list, revoke"),
    "workspace": ("workspace", "workspace", "installations in one: create, list, describe, update, delete"),
    "apply": ("apply", "apply", "make everything as files have it, after showing the plan"),
    "diff": ("diff", "diff", "how the server differs from files"),
    "delete": ("delete", "delete", "delete what files name, after showing what goes along"),
    "history": ("history", "history", "who changed which rules and rights, when, from where"),
    "report": ("report", "report", "who used what: usage"),
    "simulate": ("simulate", "simulate", "replay demand under given rules, before they apply"),
    "schema": ("schema", "schema", "JSON Schemas of these files, for editors"),
    "server": ("server", "server", "the local server: start, stop, status"),
    "db": ("db", "db", "its database: migrate, check, backup, restore"),
    "doctor": ("doctor", "doctor", "what is set, where from, and whether it works"),
    "context": ("context", "context", "which server is used, and use another one"),
    "login": ("login", "login", "sign in at a server"),
    "logout": ("login", "logout", "sign out: revoke the token and forget it"),
    "whoami": ("login", "whoami", "who you are at the server, and until when"),
    "completion": ("completion", "completion", "completion for bash, zsh or fish"),
    "version": ("version", "version", "the versions of this program and of the server"),
}


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: fairpool pool create NAME --capacity '{\"gpu\": 8}', or just fairpool run -- COMMAND.",
)
@click.option("--server", metavar="URL", help="The server to talk to (FAIRPOOL_SERVER).")
@click.option("--token", metavar="TOKEN", help="The token to show it (FAIRPOOL_TOKEN).")
@click.option("--workspace", metavar="NAME", help="The workspace it is about (FAIRPOOL_WORKSPACE; the token's).")
@click.pass_context
def cli(ctx: click.Context, server: str | None, token: str | None, workspace: str | None) -> None:
    """Fair GPU and compute sharing: pools, policies and requests."""
    ctx.obj = {"server": server, "token": token, "workspace": workspace}
    if os.environ.get("NO_COLOR"):
        ctx.color = False


_YOUNG_OBJECTS = 50_000
"""Objects made before Python's cyclic collector looks at them (Python: 700). Nearly all that a command makes is what it
loads, which stays: looking through that again and again would take a tenth of its time."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    gc.set_threshold(_YOUNG_OBJECTS)
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    try:
        result = cli.main(list(arguments) if arguments is not None else None, "fairpool", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads any more: what is buffered goes nowhere
        return 141
    except Exception as error:  # noqa: BLE001 (what nobody foresaw is raised again there)
        return _told(error)
    return result if isinstance(result, int) else 0


def _told(error: Exception) -> int:
    """Tell a failure in a few lines, never as a traceback, unless FAIRPOOL_DEBUG asks for one."""
    from fairpool.client.errors import ClientError, Problem
    from fairpool.wire.problems import Exit

    if os.environ.get("FAIRPOOL_DEBUG"):
        raise error
    if not isinstance(error, ClientError):
        from fairpool.sdk.errors import InvalidUse, SdkError

        if isinstance(error, SdkError):
            sys.stderr.write(f"fairpool: {error}\n")
            return int(Exit.USAGE if isinstance(error, InvalidUse) else Exit.FAILED)
        sys.stderr.write(
            f"fairpool: this is a bug: {type(error).__name__}: {str(error).partition(chr(10))[0]}\n"
            "  FAIRPOOL_DEBUG=1 shows where; please report it with that\n"
        )
        return int(Exit.FAILED)
    lines = [f"fairpool: {error.message}"]
    if isinstance(error, Problem):
        lines += [f"  {candidate}" for candidate in error.document.candidates]
        if error.document.instance:
            lines.append(f"  incident {error.document.instance}: the server's log says more")
    if error.hint:
        lines.append(f"  {error.hint}")
    sys.stderr.write("\n".join(lines) + "\n")
    return int(error.exit_code)


if __name__ == "__main__":
    main()
