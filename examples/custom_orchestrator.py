"""An orchestrator of one's own: steps run with low priority on this machine.

    python examples/custom_orchestrator.py

The same few lines start a container, an SSH command or a job of another scheduler. Used by name:

    fairpool component create gentle --flavor custom_orchestrator:GentleOrchestrator
    fairpool stack create quiet --orchestrator gentle
"""

from __future__ import annotations

import os
import signal
import subprocess

from fairpool import Job, Launch, Orchestrator, Stack, pipeline, step


class GentleJob(Job):
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def exit_code(self) -> int | None:
        return self.process.poll()

    def stop(self, reason: str, grace_s: float) -> None:
        self.process.send_signal(signal.SIGTERM)  # the step's own process runs its callbacks on it

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)


class GentleOrchestrator(Orchestrator):
    poll_interval_s = 0.1

    def launch(self, launch: Launch) -> Job:
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        with launch.log.open("ab") as log:
            process = subprocess.Popen(
                ["nice", "-n", str(self.config.get("nice", 10)), *launch.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=launch.cwd,
                env={**os.environ, **launch.environment},
                start_new_session=True,
            )
        return GentleJob(process)


@step
def niceness() -> int:
    return os.nice(0)


@pipeline(stack=Stack(orchestrator=GentleOrchestrator("gentle", {"nice": 5})))
def gentle() -> int:
    return niceness()


if __name__ == "__main__":
    print(f"the step ran with niceness {gentle()}")
