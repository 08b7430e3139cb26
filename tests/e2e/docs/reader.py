"""Somebody who follows a page: types what stands behind each `$`, and compares what is shown with what it says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

_END = "\x01"
_VARYING = (
    (r"\b0[0-9a-z]{18}\b", "ID"),
    (r"\bfp_\S+", "TOKEN"),
    (r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d UTC)?", "TIME"),
    (r"\b\d\d:\d\d:\d\d\b", "TIME"),
    (r"\bprocess \d+", "process N"),
    (r"\b(\d+d)?(\d+h)?(\d+m)?\d+s\b", "LENGTH"),
    (r"\b[\d,]+ bytes|\b\d+\.\d MB", "SIZE"),
    (r"\b(documents|history) \d+(, \w+ \d+)*|\b(pools) \d+(, \w+ \d+)*", "COUNTS"),
    (r"\b[A-Z]{4}-[A-Z]{4}\b", "CODE"),
    (r"http://(127\.0\.0\.1|10\.0\.0\.\d+):\d+", "SERVER"),
    (r"[ \t]+", " "),
)
"""What differs from one time to the next; a page shows it as it was once."""


class Reader:
    """A shell of one person in one folder. replaced: what a page says, and what it is called here."""

    def __init__(self, folder: Path, environment: Mapping[str, str], replaced: Mapping[str, str]) -> None:
        self._replaced = replaced
        self._token = ""
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def type(self, line: str) -> list[str]:
        """What a command shows, both of its outputs together. A token that it shows is the one that `fp_…` means."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(
            f"{{ {self.here(line).replace('fp_…', self._token)}\n}} < /dev/null\nprintf '\\n{_END}\\n'\n"
        )
        self._shell.stdin.flush()
        shown: list[str] = []
        for said in self._shell.stdout:
            if said == f"{_END}\n":
                break
            shown.append(said.rstrip("\n"))
        for said in shown:
            if said.startswith("fp_"):
                self._token = said
        return [said for said in shown if said]

    def here(self, line: str) -> str:
        """A line of the page, with what things are called here."""
        for told, here in self._replaced.items():
            line = line.replace(told, here)
        return line

    def close(self) -> None:
        """End the shell."""
        self._shell.communicate("exit\n", timeout=30)


def steps(session: str) -> list[tuple[str, list[str]]]:
    """The lines that a session has behind `$`, each with what is shown for it."""
    found: list[tuple[str, list[str]]] = []
    for line in session.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        elif found and line:
            found[-1][1].append(line)
    return found


def is_what_was_told(told: list[str], shown: list[str]) -> bool:
    """Whether a command showed what its page says; where it says nothing, it leaves that out. `…` is anything."""
    if not told:
        return True
    pattern = "\n".join(re.escape(line).replace("…", ".*") for line in _settled(told))
    return re.fullmatch(pattern, "\n".join(_settled(shown)), re.DOTALL) is not None


def _settled(lines: list[str]) -> list[str]:
    """The lines as they are every time. Whichever command comes first after a while says that it starts the server."""
    kept = "\n".join(line for line in lines if not line.startswith("fairpool: started a local server"))
    for varying, word in _VARYING:
        kept = re.sub(varying, word, kept)
    return [line.strip() for line in kept.splitlines()]
