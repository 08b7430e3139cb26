"""Settings, servers and folders that are wrong: the command says which, where it is set, and what to do about it."""

from __future__ import annotations

import resource
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from fairpool.wire import local_server
from tests.e2e.cli.conftest import Done, Machine

FAILED, USAGE, NOT_ALLOWED, UNREACHABLE = 1, 2, 4, 8


def refused(done: Done, code: int, *told: str) -> None:
    """It failed with that code and these words, and with nothing that only its makers understand."""
    assert (done.code, done.out) == (code, ""), done
    for words in told:
        assert words in done.err
    for words in ("Traceback", "this is a bug", "Warning", "<html", "object at 0x"):
        assert words not in done.err


# ---- servers --------------------------------------------------------------------------------------------------------

# fmt: off
ADDRESSES: list[tuple[str, int, tuple[str, ...]]] = [
    ("nonsense", USAGE, ("'nonsense' is no address", "http(s)://HOST:PORT", "fairpool doctor")),
    ("ftp://somewhere", USAGE, ("'ftp://somewhere' is no address", "http(s)://HOST:PORT")),
    ("http://", USAGE, ("'http://' is no address", "http(s)://HOST:PORT")),
    ("http://[::1", USAGE, ("'http://[::1' is no address", "http(s)://HOST:PORT")),
    ("http://here:99999", USAGE, ("'http://here:99999' is no address", "http(s)://HOST:PORT")),
    ("http://127.0.0.1:1", UNREACHABLE, ("http://127.0.0.1:1: nothing listens there", "fairpool doctor")),
]
# fmt: on


@pytest.mark.parametrize(("address", "code", "told"), ADDRESSES, ids=[row[0] for row in ADDRESSES])
def test_an_address_at_which_no_server_can_be_is_named(
    shared: Machine, address: str, code: int, told: tuple[str, ...]
) -> None:
    refused(shared("pool", "list", FAIRPOOL_SERVER=address), code, *told)


class _SomePage(BaseHTTPRequestHandler):
    """A server of something else: its own pages, or its own protocol."""

    def do_GET(self) -> None:
        page = b"<!DOCTYPE html>\n<html><body>Welcome</body></html>"
        self.send_response(200 if self.path.startswith("/api/v1/pools") else 404)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (as in the base class)
        """Say nothing."""


class _Greeting(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.recv(1000)
        self.request.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")


@contextmanager
def something_else(handler: type[socketserver.BaseRequestHandler]) -> Iterator[str]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_a_web_site_is_not_taken_for_a_server(shared: Machine) -> None:
    with something_else(_SomePage) as url:
        refused(shared("pool", "list", FAIRPOOL_SERVER=url), FAILED, url, "is not understood", "FAIRPOOL_SERVER")
        done = shared("request", "describe", "x", FAIRPOOL_SERVER=url)
        refused(done, FAILED, "answered 404, not as Fairpool does", "fairpool doctor shows which server")


def test_what_speaks_another_protocol_is_not_taken_for_a_server(shared: Machine) -> None:
    with something_else(_Greeting) as url:
        refused(shared("pool", "list", FAIRPOOL_SERVER=url), UNREACHABLE, url, "does not speak HTTP")


@pytest.mark.parametrize(
    ("token", "code", "told"),
    [
        ("", NOT_ALLOWED, "the call carries no token"),
        ("wrong", NOT_ALLOWED, "the token is not one of this server's"),
        ("\N{EURO SIGN}", USAGE, "the token holds characters that no token has"),
        ("a\nb", USAGE, "the token holds characters that no token has"),
    ],
)
def test_a_token_that_lets_nobody_in_is_not_shown(shared: Machine, token: str, code: int, told: str) -> None:
    url = shared.client.url
    done = shared("pool", "list", FAIRPOOL_SERVER=url, FAIRPOOL_TOKEN=token)
    refused(done, code, told)
    assert not token.strip("\n") or token not in done.err.replace("token", "")


# ---- settings -------------------------------------------------------------------------------------------------------

# fmt: off
FILES: list[tuple[str, bytes, tuple[str, ...]]] = [
    ("broken", b"server = \n", ("line 1, column 10", "mend or remove the file")),
    ("no text", b"\xff\xfe", ("utf-8", "mend or remove the file")),
    ("unknown setting", b"sever = 'x'\n", ("unknown setting 'sever'", "server, token, workspace")),
    ("of a wrong type", b"server = 5\n", ("server is 5", "possible: text")),
    ("no address", b"server = 'nonsense'\n", ("'nonsense' is no address", "http(s)://HOST:PORT")),
]
# fmt: on


@pytest.mark.parametrize(("text", "told"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
@pytest.mark.parametrize("place", ["config/fairpool/config.toml", ".fairpool/config.toml"])
def test_a_settings_file_that_cannot_be_used_is_named_and_left_as_it_is(
    machine: Machine, place: str, text: bytes, told: tuple[str, ...]
) -> None:
    path = machine.file(place)
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    done = machine("pool", "list")
    named = () if b"nonsense" in text else (str(path),)
    refused(done, USAGE, *told, *named)
    assert path.read_bytes() == text
    assert not machine.data.exists()  # no server was started on the strength of it


def test_a_folder_in_the_place_of_the_settings_is_named(machine: Machine) -> None:
    path = machine.file("config/fairpool/config.toml")
    path.mkdir(parents=True)
    refused(machine("pool", "list"), USAGE, str(path), "Is a directory")


def test_a_setting_of_the_environment_that_is_not_possible_is_named(shared: Machine) -> None:
    refused(shared("pool", "list", FAIRPOOL_OUTPUT="xml"), USAGE, "'xml'", "table, wide, json")
    looked = shared("doctor", FAIRPOOL_OUTPUT="xml")
    assert looked.code == FAILED and "failed   setting output: xml (environment)" in looked.out
    done = shared("run", "--gpus", "1", "--pool", "gpus", "--", "true", FAIRPOOL_LEASE_S="soon")
    refused(done, USAGE, "FAIRPOOL_LEASE_S is 'soon'", "whole seconds from 1 to 86400")


# ---- the local server's folder --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("pool", "list"), ("run", "--", "true"), ("server", "start")], ids=" ".join)
def test_a_data_folder_that_cannot_be_written_is_named(machine: Machine, command: tuple[str, ...]) -> None:
    machine.file("taken").touch()
    for place in ("/proc/data", str(machine.file("taken"))):
        done = machine(*command, FAIRPOOL_DATA_DIR=place)
        refused(done, UNREACHABLE, "data folder cannot be used", place, "FAIRPOOL_DATA_DIR names another")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("pool", "list"), UNREACHABLE),
        (("run", "--", "true"), UNREACHABLE),
        (("server", "start"), UNREACHABLE),
        (("db", "check"), FAILED),
        (("db", "migrate"), FAILED),
        (("db", "backup", "copy.db"), FAILED),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_damaged_database_is_said_by_every_command_and_left_byte_by_byte(
    stopped: Machine, command: tuple[str, ...], code: int
) -> None:
    database = stopped.data / local_server.DATABASE_FILE
    damaged = database.read_bytes()[:5000]
    database.write_bytes(damaged)
    refused(stopped(*command), code, str(database), "is damaged", "put a backup in its place")
    assert database.read_bytes() == damaged
    assert not Path(stopped.file("copy.db")).exists()


def test_a_full_disk_is_said_and_the_same_command_works_once_there_is_room(pooled: Machine) -> None:
    assert pooled.client.pool("gpus").version == 1
    found = local_server.find(pooled.data)
    assert found is not None
    resource.prlimit(found.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    command = ("pool", "create", "more", "--capacity", "gpu: 1")
    refused(pooled(*command), FAILED, "disk of the server's database is full", "make room on it")
    assert "more" not in pooled.ok("pool", "list")
    resource.prlimit(found.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert "pool more created" in pooled.ok(*command)


def test_nothing_lies_where_a_backup_should_go_twice(pooled: Machine) -> None:
    pooled.file("copy.db").write_bytes(b"something dear")
    refused(pooled("db", "backup", "copy.db"), FAILED, "copy.db")
    assert pooled.file("copy.db").read_bytes() == b"something dear"
