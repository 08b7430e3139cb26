"""``python tests/forked.py SOCKET MODULE…``: load these modules once, then fork a program for every message.

The program is the process that does not return from `main`. It finds itself as the operating system and Python would
have made it for its command line, but for the modules that are there already.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def main() -> None:
    """Fork until nobody is there any more who could ask."""
    del sys.path[0]  # the folder of this file, which no program would have
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a process that is forked off shares what it does not touch
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how it ended
    with socket.socket(fileno=int(sys.argv[1])) as control:
        while True:
            said, descriptors, _, _ = socket.recv_fds(control, 2**20, 4)
            if not said:
                return
            pid = os.fork()
            if pid == 0:
                break
            for descriptor in descriptors:
                os.close(descriptor)
            control.sendall(str(pid).encode())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    _run(json.loads(said), *descriptors)


def _run(said: Mapping[str, Any], stdin: int, stdout: int, stderr: int, told: int) -> None:
    """Be that program. told: where a server says that it is ready, and any other's exit code is written."""
    arguments = said["arguments"]
    if "program" in said:
        _say_how_it_ends(told, stdin, stdout, stderr)
    else:
        arguments[arguments.index("--ready-fd") + 1] = str(told)
    for standard, descriptor in enumerate((stdin, stdout, stderr)):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    for name, value in said["environment"].items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    time.tzset()
    os.chdir(said["folder"])
    sys.argv = [said.get("program") or said["module"], *arguments]
    if "program" in said:
        sys.path.insert(0, str(Path(said["program"]).parent))
        runpy.run_path(said["program"], run_name="__main__")
    else:
        runpy.run_module(said["module"], run_name="__main__", alter_sys=True)


def _say_how_it_ends(told: int, *others: int) -> None:
    """Fork once more: the program returns from here, and the other process waits for it."""
    pid = os.fork()
    if pid == 0:
        os.close(told)
        return
    for descriptor in others:
        os.close(descriptor)
    _, status = os.waitpid(pid, 0)
    os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
