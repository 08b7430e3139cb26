"""Runs a program against a server in memory: ``python with_a_server_in_memory.py PROGRAM``, as its ``__main__``.

On SIGUSR1 the server tells the oldest step that runs to let go.
"""

from __future__ import annotations

import signal
import sys
import types
from pathlib import Path

from fairpool.sdk import driver
from fairpool.sdk.broker import Broker
from fairpool.wire.values import RequestStatus
from tests.unit.sdk.fake_server import FakeServer

server = FakeServer(gpus=2)
driver.use_broker(Broker(server, renew_every_s=0.2))
signal.signal(signal.SIGUSR1, lambda *_: server.preempt(server.with_status(RequestStatus.ALLOCATED)[0].id))
program = Path(sys.argv[1])
main = types.ModuleType("__main__")
main.__file__ = str(program)
main.__dict__["server"] = server
sys.modules["__main__"] = main
sys.path[0] = str(program.parent)
exec(compile(program.read_text(), str(program), "exec"), main.__dict__)
