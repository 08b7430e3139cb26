"""Canaille as a process, from an environment of its own: its package has a module named `tests`, which would hide ours.

The environment is made when it is first needed, from `requirements/provider.txt`, inside the one that the tests run in.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.oidc.installation import Person
from tests.oidc.processes import CLIENT_ID, CLIENT_SECRET, ROOT, started

LOCKED = ROOT / "requirements" / "provider.txt"
PROGRAM = Path(__file__).with_name("canaille_process.py")
HOME = Path(sys.prefix) / "provider"

USER, PASSWORD = "ada", "correct horse battery staple"
"""Who can sign in there, in group ``ml-vision``."""


@contextmanager
def canaille(port: int, redirect_uri: str) -> Iterator[str]:
    """Canaille on that port for the block, which knows this server by that address; the issuer."""
    python = environment()
    # Of our own environment nothing reaches it: neither modules nor settings.
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FAIRPOOL", "VIRTUAL"))
    }
    command = [str(python), str(PROGRAM), str(port), CLIENT_ID, CLIENT_SECRET, redirect_uri]
    with started(command, **clean) as (url, _):
        yield url


def at_canaille(person: Person, back: str) -> str:
    """Sign in there through its pages; the address that it sends the browser back to, which begins with `back`."""
    page = person.browser.open(person.begin().headers["location"])
    filled = iter(({"login": USER}, {"password": PASSWORD}, {"answer": "accept"}))
    while not page.headers.get("location", "").startswith(back):
        if page.next_request is not None:
            page = person.browser.open(str(page.next_request.url))
        else:
            page = person.browser.send(page, **next(filled))
    return str(page.headers["location"])


def environment() -> Path:
    """The Python that has Canaille; made from the lock where it is missing or the lock has changed."""
    python, stamp = HOME / "bin" / "python", HOME / "locked.txt"
    HOME.parent.mkdir(exist_ok=True)
    with HOME.with_name("provider.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_bytes() != LOCKED.read_bytes():
            shutil.rmtree(HOME, ignore_errors=True)
            uv = str(Path(sys.executable).with_name("uv"))
            for words in (["venv", "--python", sys.executable, HOME], ["pip", "sync", "--require-hashes", LOCKED]):
                where = {**os.environ, "VIRTUAL_ENV": str(HOME)}
                subprocess.run([uv, "--quiet", "--system-certs", *map(str, words)], check=True, env=where, timeout=300)
            stamp.write_bytes(LOCKED.read_bytes())
    return python
