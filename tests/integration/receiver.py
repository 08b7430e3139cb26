"""A receiver of webhooks, as a process: keeps what it is told, and answers what a file says.

``python -m tests.integration.receiver FOLDER PORT``: each call is appended to ``FOLDER/calls.jsonl`` as JSON. The first
line of ``FOLDER/answers`` is taken off and answered: a status, or ``never`` for none at all; 200 without one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.waiting import wait_until


class Receiver:
    """The process, and what it has been told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is called."""
        return f"http://127.0.0.1:{self.port}/hook"

    def start(self) -> None:
        """Start it, at the same port as before."""
        ready = self.folder / "port"
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "tests.integration.receiver", str(self.folder), str(self.port)]
        self._process = subprocess.Popen(command)
        self.port = int(wait_until(lambda: ready.exists() and ready.read_text(), what="the receiver to listen"))

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def answers(self, *answers: str) -> None:
        """What it answers next."""
        (self.folder / "answers").write_text("".join(f"{answer}\n" for answer in answers))

    def calls(self) -> list[dict[str, Any]]:
        """All calls so far."""
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def taken(self) -> list[dict[str, Any]]:
        """The calls that it answered with 200."""
        return [call for call in self.calls() if call["status"] == 200]

    def events(self) -> list[str]:
        """The types of what it took, in order."""
        return [json.loads(call["body"])["type"] for call in self.taken()]


@contextmanager
def receiving(folder: Path) -> Iterator[Receiver]:
    """A receiver for the block."""
    folder.mkdir(parents=True, exist_ok=True)
    receiver = Receiver(folder)
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.stop()


def _serve(folder: Path, port: int) -> None:
    lock = threading.Lock()

    def answer() -> str:
        path = folder / "answers"
        first, _, rest = path.read_text().partition("\n") if path.exists() else ("", "", "")
        path.write_text(rest)
        return first or "200"

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            with lock:
                given = answer()
            if given == "never":
                threading.Event().wait()
            status = int(given)
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock, (folder / "calls.jsonl").open("a") as file:
                call = {"path": self.path, "headers": headers, "body": body, "status": status}
                file.write(json.dumps(call) + "\n")
            self.send_response(status)
            self.send_header("Content-Length", "0")
            if status in (301, 302, 307):
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name there)
            """The calls are in the file."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    (folder / "port.new").write_text(str(server.server_address[1]))
    (folder / "port.new").rename(folder / "port")
    server.serve_forever()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]))
