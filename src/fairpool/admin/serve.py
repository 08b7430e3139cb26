"""``python -m fairpool.admin.serve``: one server process, from taking the folder's lock to giving it back.

Two that start at once end as one server: the second sees the lock held, waits until the first takes calls, and says
that it is ready too.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fairpool.admin import first_token
from fairpool.wire import local_server
from fairpool.wire.local_server import READY_LINE, ServerFile

if TYPE_CHECKING:
    from fairpool.bootstrap.settings import Settings

log = logging.getLogger(__name__)

_OTHER_STARTS_S = 60.0
"""How long to wait for the server that holds the lock to take calls."""

_SWITCH_S = 0.001
"""How long the scheduler's thread may compute before the thread that answers calls gets its turn (Python: 5 ms)."""

_YOUNG_OBJECTS = 50_000
"""Objects made before Python's cyclic collector looks at them (Python: 700). Hardly anything here is part of a cycle,
and looking through a million queued requests over and over would take a tenth of the server's time."""

_ANY_HOST = ("0.0.0.0", "::")  # noqa: S104 (compared only)

_LOG_KEPT_BYTES = 5 * 2**20
"""A log above this is put aside when a server starts, in place of the one that was put aside before."""


class CannotServe(Exception):
    """The server cannot start. Its message says why and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a server until it is stopped. Returns the exit code: 0 after an orderly end, 1 where it could not start."""
    options = _parser().parse_args(arguments)
    ready = _ready_signal(options.ready_fd)
    try:
        _serve(options, ready)
    except CannotServe as error:
        ready(f"{error}\n".encode())
        sys.stderr.write(f"fairpool: {error}\n")
        return 1
    except Exception:  # the starter waits for a word, whatever went wrong; the traceback is for the log
        log.exception("the server ended by an error of its own")
        ready(b"the server ended by an error of its own; its log (server.log in the data folder) has it\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fairpool server start", description=__doc__)
    parser.add_argument("--data-dir", help="the folder of its database, token and lock")
    parser.add_argument("--database-url", help="where it keeps its memory; the folder's SQLite file otherwise")
    parser.add_argument("--host", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", help="the port to listen on (any free one)")
    parser.add_argument("--advertise", help="the URL at which other servers of the database find it (where it listens)")
    parser.add_argument("--token-file", help="the file of the installation's token (the data folder's)")
    parser.add_argument("--allow-remote", action="store_const", const="true", help="listen on other than loopback too")
    parser.add_argument("--idle-s", help="stop after so many seconds without calls and work (0: never)")
    parser.add_argument("--log-level")
    parser.add_argument("--log-format", help="text for people (the default), or json for programs")
    parser.add_argument("--log-to-file", action="store_true", help="write the log into the data folder")
    parser.add_argument("--bootstrap", action="store_true", help="make a first admin where there are no users yet")
    parser.add_argument("--hears-token", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--ready-fd", type=int, help="file descriptor to write 'ready' to once it takes calls")
    return parser


def _serve(options: argparse.Namespace, ready: Callable[[bytes], None]) -> None:
    gc.set_threshold(_YOUNG_OBJECTS, 20, 20)  # first of all: what is loaded below stays
    try:
        from fairpool.bootstrap import oidc_settings
        from fairpool.bootstrap.settings import WrongSetting, load
        from fairpool.bootstrap.wiring import CannotWire, build
        from fairpool.server.process import Process
    except ModuleNotFoundError as error:
        raise CannotServe(
            f"this needs the server extra ({error.name} is missing): pip install 'fairpool[server]'"
        ) from None
    flags = {name: getattr(options, name) for name in ("data_dir", "database_url", "host", "port", "advertise")}
    flags |= {name: getattr(options, name) for name in ("token_file", "allow_remote", "idle_s")}
    flags |= {name: getattr(options, name) for name in ("log_level", "log_format")}
    try:
        settings, oidc = load(flags), oidc_settings.load()
        directory = _own_directory(settings.data_dir)
        with _lock(directory) as taken:
            if not taken:
                ready(READY_LINE)
                return
            sys.setswitchinterval(_SWITCH_S)
            with _using(directory):
                _begin_log(directory if options.log_to_file else None, settings)
                token = _token(settings.token_file or directory / local_server.TOKEN_FILE, directory)
            listening = _listen(settings)
            url = _url(listening, settings)
            reached_at = settings.advertise or _address(url, settings)
            with build(settings, token, address=reached_at, oidc=oidc) as runtime:
                _tune_collector()
                told: list[str] = []
                if options.bootstrap or settings.shares_database:
                    token_of_first = first_token.make(runtime)
                    if token_of_first is not None:
                        first_token.tell(token_of_first, directory, told.append if options.hears_token else None)
                server = Process(
                    runtime.app,
                    runtime.services,
                    on_ready=lambda: _announce(directory, url, lambda: ready("".join(told).encode() + READY_LINE)),
                    idle_s=_idle_s(settings, in_background=options.log_to_file),
                )
                server.run_on(listening)
            (directory / local_server.SERVER_FILE).unlink(missing_ok=True)
            log.info("stopped")
    except (WrongSetting, CannotWire) as error:
        raise CannotServe(str(error)) from None


def _tune_collector() -> None:
    gc.collect()
    gc.freeze()


def _idle_s(settings: Settings, *, in_background: bool) -> float | None:
    """A server that somebody watches stays; one that started by itself goes by itself, unless a setting says more."""
    from fairpool.bootstrap.settings import DEFAULT_IDLE_S

    if "idle_s" in dict(settings.sources) or not in_background:
        return settings.idle_s
    return DEFAULT_IDLE_S


@contextlib.contextmanager
def _using(directory: Path) -> Iterator[None]:
    """Within the block, what goes wrong with a file is said of the folder."""
    try:
        yield
    except OSError as error:
        where = error.filename2 or error.filename or directory
        told = f"the data folder cannot be used: {where}: {error.strerror}; FAIRPOOL_DATA_DIR names another"
        raise CannotServe(told) from None


def _own_directory(directory: Path) -> Path:
    with _using(directory):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(directory, os.W_OK | os.X_OK):
            raise PermissionError(13, "not writable", str(directory))
        os.close(os.open(directory / local_server.LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        if (directory / local_server.SERVER_FILE).is_dir():
            raise IsADirectoryError(21, "Is a directory", str(directory / local_server.SERVER_FILE))
    return directory


@contextlib.contextmanager
def _lock(directory: Path) -> Iterator[bool]:
    """The folder's lock inside the block, or False once another server holds it and takes calls."""
    give_up_at = time.monotonic() + _OTHER_STARTS_S
    while True:
        with local_server.exclusive(directory / local_server.LOCK_FILE) as taken:
            if taken:
                # What a killed server left behind must not be taken for this one before it listens.
                (directory / local_server.SERVER_FILE).unlink(missing_ok=True)
                yield True
                return
        # Held: by a server, or for an instant by somebody who looks whether one lives.
        if local_server.find(directory) is not None:
            yield False
            return
        if time.monotonic() > give_up_at:
            lock = directory / local_server.LOCK_FILE
            raise CannotServe(f"another process holds {lock} and does not become ready; fairpool server stop ends it")
        time.sleep(0.02)


def _begin_log(directory: Path | None, settings: Settings) -> None:
    from fairpool.server import logs

    if directory is not None:
        path = directory / local_server.LOG_FILE
        with contextlib.suppress(OSError):
            if path.stat().st_size > _LOG_KEPT_BYTES:
                path.replace(path.with_suffix(".log.1"))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        for standard in (1, 2):
            os.dup2(descriptor, standard)
        os.close(descriptor)
    logs.begin(settings.log_level, settings.log_format)


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise CannotServe(f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}") from None
    return listening


def _token(file: Path, directory: Path) -> str:
    """The installation's token; drawn by whoever comes first. The data folder has it in any case, for the command
    line of this machine."""
    if file == directory / local_server.TOKEN_FILE and local_server.read_token(directory) is None:
        file.unlink(missing_ok=True)  # empty or no text: nobody but this folder knows it
    if not file.exists():
        drawn = file.with_name(f".{file.name}.{os.getpid()}")
        local_server.write_private(drawn, secrets.token_urlsafe(32) + "\n")
        with contextlib.suppress(FileExistsError):  # another server was faster: its token it is
            file.hardlink_to(drawn)
        drawn.unlink()
    try:
        token = file.read_text("utf-8").strip()
    except UnicodeDecodeError:
        token = ""
    if not token:
        raise CannotServe(f"the token file {file} holds no token; remove it to have one drawn")
    if local_server.read_token(directory) != token:
        local_server.write_private(directory / local_server.TOKEN_FILE, token + "\n")
    return token


def _url(listening: socket.socket, settings: Settings) -> str:
    """Where it listens, for callers on this machine."""
    port = listening.getsockname()[1]
    host = "127.0.0.1" if settings.host in (*_ANY_HOST, "localhost") else settings.host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _address(url: str, settings: Settings) -> str:
    """Where other machines find it, as far as it can tell."""
    return url.replace("127.0.0.1", socket.gethostname()) if settings.host in _ANY_HOST else url


def _announce(directory: Path, url: str, ready: Callable[[], None]) -> None:
    from fairpool.bootstrap.workspaces import version

    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    local_server.write(directory, ServerFile(url=url, pid=os.getpid(), version=version(), started_at=started_at))
    log.info("takes calls at %s", url)
    ready()


def _ready_signal(descriptor: int | None) -> Callable[[bytes], None]:
    if descriptor is None:
        return lambda text: None

    def tell(text: bytes) -> None:
        # The starter may be gone already; that is no reason not to serve.
        with contextlib.suppress(OSError):
            os.write(descriptor, text)
            os.close(descriptor)

    return tell


if __name__ == "__main__":
    sys.exit(main())
