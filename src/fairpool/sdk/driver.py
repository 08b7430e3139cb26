"""Everything of this process that runs steps: one loop, one broker, however many runs and steps there are."""

from __future__ import annotations

import os
import threading
from typing import Any

from fairpool.sdk import granting
from fairpool.sdk.api import Api
from fairpool.sdk.broker import RENEWALS, Broker
from fairpool.sdk.calls import StepCall
from fairpool.sdk.console import Pace
from fairpool.sdk.execution import Execution
from fairpool.sdk.futures import StepFuture
from fairpool.sdk.loop import Loop
from fairpool.sdk.slots import Slots


class Driver:
    """Carries out calls of steps. Uses four threads, whatever the number of steps."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._loop = Loop("fairpool-driver")
        self._slots = Slots()
        self._pace = Pace()
        self._loop.start()

    @property
    def api(self) -> Api:
        """The server."""
        return self.broker.api

    def begin(self, call: StepCall) -> StepFuture[Any]:
        """Carry out one call; returns at once."""

        def cancel() -> None:
            self._loop.post(lambda: execution.cancel("its future was cancelled"))

        future: StepFuture[Any] = StepFuture(name=call.name, label=call.label, output=call.output, cancel=cancel)
        execution = Execution(call, future, broker=self.broker, loop=self._loop, slots=self._slots, pace=self._pace)
        future._execution = execution
        self._loop.post(execution.begin)
        return future

    def close(self) -> None:
        """End its thread; steps that still run are ended by their guardian when the program ends."""
        self._loop.stop()

    def cancel(self, futures: list[StepFuture[Any]], reason: str, *, at_once: bool = False) -> None:
        """End the steps behind these futures; those `at_once` are killed."""
        for future in futures:
            execution = future._execution
            if isinstance(execution, Execution):
                self._loop.post(lambda e=execution: e.cancel(reason, at_once=at_once))  # type: ignore[misc]


class _Shared:
    """The one driver and broker of this process, made when they are first needed."""

    lock = threading.RLock()
    broker: Broker | None = None
    driver: Driver | None = None


def shared_broker() -> Broker:
    """This process's broker."""
    with _Shared.lock:
        if _Shared.broker is None:
            from fairpool.sdk.connection import connect

            _Shared.broker = Broker(connect(), renew_every_s=granting.lease_s() / RENEWALS)
        return _Shared.broker


def shared_driver() -> Driver:
    """This process's driver."""
    with _Shared.lock:
        if _Shared.driver is None:
            _Shared.driver = Driver(shared_broker())
        return _Shared.driver


def use_broker(broker: Broker | None) -> None:
    """Take this broker from now on; None: make a new one when needed. For tests, and programs with several servers."""
    with _Shared.lock:
        if _Shared.driver is not None:
            _Shared.driver.close()
        if _Shared.broker is not None:
            _Shared.broker.close()
        _Shared.broker, _Shared.driver = broker, None


def _after_fork() -> None:
    # Threads do not live on in a forked process, and its requests are its parent's.
    _Shared.lock = threading.RLock()
    _Shared.broker = _Shared.driver = None


os.register_at_fork(after_in_child=_after_fork)
