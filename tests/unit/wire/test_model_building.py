"""Models are worked out when they are first used: all of them can be, and by any number of threads at once."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator

import fairpool.wire
from fairpool.wire.model import Body, View

FIRST_TO_USE_IT = """
import threading
from fairpool.wire.pools import PoolCreate

together = threading.Barrier(16)
read = []

def use() -> None:
    together.wait()
    read.append(PoolCreate.model_validate({"name": "gpus", "capacity": {"gpu": 8}}))

threads = [threading.Thread(target=use) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(read), all(one == read[0] for one in read))
"""


def _kinds_of(model: type[Body] | type[View]) -> Iterator[type[Body] | type[View]]:
    for kind in model.__subclasses__():
        yield kind
        yield from _kinds_of(kind)


def test_every_model_can_be_worked_out() -> None:
    for module in pkgutil.walk_packages(fairpool.wire.__path__, "fairpool.wire."):
        importlib.import_module(module.name)
    models = [*_kinds_of(Body), *_kinds_of(View)]
    assert len(models) > 100
    for model in models:
        model.model_rebuild()  # raises where something in it is not defined
        assert model.__pydantic_complete__, model


def test_threads_that_are_the_first_to_use_a_model_at_once_all_can() -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", FIRST_TO_USE_IT], capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == ("16 True\n", "")
