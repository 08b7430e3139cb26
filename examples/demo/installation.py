"""A Fairpool of its own in a temporary folder, and the programs that use it; nothing is left of either."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
FAIRPOOL = Path(sys.executable).with_name("fairpool")
GIVE_UP_S = 20.0


class DemoFailed(Exception):
    """A part of the story that did not happen."""


class Installation:
    """Commands and programs, as people would start them, against a server that only they know of."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fairpool-demo-"))
        self._say = say
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        for name in [name for name in os.environ if name.startswith("FAIRPOOL_")]:
            del os.environ[name]
        os.environ |= {
            "FAIRPOOL_DATA_DIR": str(self.folder / "data"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "FAIRPOOL_ARTIFACTS": str(self.folder / "artifacts"),
            "OMP_NUM_THREADS": "1",  # several small trainings side by side: one thread each
            "OPENBLAS_NUM_THREADS": "1",
        }

    def command(self, *words: str) -> str:
        """Run `fairpool` with these words, showing what was typed, and give back what it said."""
        typed = " ".join(f"'{word}'" if set(word) & set('{" ') else word for word in words)
        self._say(f"$ fairpool {typed}")
        done = subprocess.run([FAIRPOOL, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            raise DemoFailed(f"fairpool {typed} failed:\n{done.stderr}")
        return done.stdout

    def start(self, name: str, *command: str, shown: str, stack: str = "") -> None:
        """Start a program in the background; what it writes is kept in a file."""
        self._say(f"$ {shown} &")
        with (self.folder / f"{name}.out").open("wb") as out, (self.folder / f"{name}.err").open("wb") as err:
            self._programs[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=HERE,
                start_new_session=True,
                env=os.environ | ({"FAIRPOOL_STACK": stack} if stack else {}),
            )

    def running(self) -> bool:
        """Whether a program still runs. Raises DemoFailed when one has failed."""
        for name, program in self._programs.items():
            if program.poll():
                said = (self.folder / f"{name}.err").read_text(errors="replace")[-3000:]
                raise DemoFailed(f"{name} ended with exit code {program.returncode}:\n{said}")
        return any(program.poll() is None for program in self._programs.values())

    def said(self, name: str) -> str:
        """What a program has written to its standard output."""
        return (self.folder / f"{name}.out").read_text(errors="replace")

    def close(self) -> None:
        """End what still runs, stop the server, remove the folder. Ctrl-C while this goes on is not heard."""
        hears = signal.signal(signal.SIGINT, signal.SIG_IGN)
        running = [program for program in self._programs.values() if program.poll() is None]
        for program in running:
            program.terminate()
        give_up_at = time.monotonic() + GIVE_UP_S
        for program in running:
            try:
                program.wait(max(0.1, give_up_at - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGKILL)
        subprocess.run([FAIRPOOL, "server", "stop"], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
        signal.signal(signal.SIGINT, hears)
