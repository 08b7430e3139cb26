"""The first admin's token, told once and never written into the log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairpool.wire import local_server

if TYPE_CHECKING:
    from fairpool.bootstrap.wiring import Runtime

log = logging.getLogger(__name__)

FILE: Final = "bootstrap-token"


def make(runtime: Runtime) -> str | None:
    """The token of the first admin, who is made where there are no users yet and this server decides."""
    from fairpool.app.errors import NotLeading
    from fairpool.app.use_cases.bootstrap import first_admin

    try:
        issued = runtime.services.workspaces.default.loop.do("system", first_admin).result()
    except NotLeading:
        return None  # there is another server already, which has seen to it
    return None if issued is None else issued.text.reveal()


def tell(token: str, directory: Path, starter: Callable[[str], None] | None) -> None:
    """Tell it to whoever starts the server, or to the terminal; where there is neither, leave it in a file that only
    the server's user may read. starter: takes a line for whoever waits for the server to be ready."""
    if starter is not None:
        starter(f"{local_server.TOKEN_WORD} {token}\n")
    elif sys.stdout.isatty():
        sys.stdout.write(f"the first admin is user 'admin'; this is their token, shown this once:\n{token}\n")
        sys.stdout.flush()
    else:
        path = directory / FILE
        local_server.write_private(path, token + "\n")
        log.info("the token of the first admin, user 'admin', is in %s: read it, and delete the file", path)
