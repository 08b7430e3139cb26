"""The repository as a whole: it installs anywhere, says nothing of one machine, and leaves nothing for later."""

import re
import tomllib
from pathlib import Path

from tests.tidy import tree

# Written in parts, so that this file does not name what it looks for.
PACKAGE_HOSTS = [
    "py" + "pi.org",
    "python" + "hosted.org",
    "registry." + "npmjs.org",
    "deb." + "debian.org",
    "conda." + "anaconda.org",
    "-" + "-index-url",
    "-" + "-extra-index-url",
    "-" + "-find-links",
]
MACHINE_PATHS = re.compile(r"(?<![\w.}$*-])/(?:work|farm|Users|home/(?!user\b|you\b|alice\b|fairpool\b)\w+)/" + r"\w")
LATER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")


def text_files() -> list[Path]:
    return [path for path in tree.files() if "\0" not in tree.text(path)]


def lines(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{tree.place(path, number)}: {line.strip()[:100]}"
        for path in text_files()
        for number, line in enumerate(tree.text(path).splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_package_host() -> None:
    hosts = re.compile("|".join(re.escape(host) for host in PACKAGE_HOSTS))
    tree.none_of(lines(hosts), "Where packages come from is the installing machine's business (a mirror, a proxy).")


def test_no_file_holds_a_path_of_one_machine() -> None:
    tree.none_of(lines(MACHINE_PATHS), "What is true on one machine is wrong on the next: start from the repository.")


def test_nothing_is_left_for_later_in_a_comment() -> None:
    tree.none_of(lines(LATER), "A note to do it later is never read: do it, or write it down where work is planned.")


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads(tree.text(tree.ROOT / "pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    wanted = {
        "requirements/client.txt": project["dependencies"],
        "requirements/dev.txt": project["dependencies"] + extras["server"] + extras["demo"] + extras["dev"],
    }
    tree.none_of(
        (
            f"{lock} lacks {name}"
            for lock, dependencies in wanted.items()
            for dependency in dependencies
            if (name := _package(dependency)) not in _locked(tree.ROOT / lock)
        ),
        "An install takes what the lock says and nothing else: make lock.",
    )


def test_every_locked_package_has_a_hash() -> None:
    tree.none_of(
        (
            f"{tree.place(lock)}: {entry.splitlines()[0]}"
            for lock in (tree.ROOT / "requirements").glob("*.txt")
            for entry in re.split(r"\n(?=[a-z])", tree.text(lock))
            if "==" in entry and "--hash=sha256:" not in entry
        ),
        "A version can be replaced, a hash cannot.",
    )


def test_both_locks_agree() -> None:
    """What people install and what the tests ran with are the same versions."""
    everything = tree.text(tree.ROOT / "requirements/dev.txt")
    tree.none_of(
        (
            pinned
            for pinned in re.findall(r"^[a-z][\w.-]*==[^ ]+", tree.text(tree.ROOT / "requirements/client.txt"), re.M)
            if f"{pinned} " not in everything
        ),
        "requirements/client.txt chose another version than requirements/dev.txt: make lock.",
    )


def _package(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name, f"no package name in {requirement!r}"
    return re.sub(r"[._-]+", "-", name[0]).lower()


def _locked(lock: Path) -> set[str]:
    return {_package(line) for line in tree.text(lock).splitlines() if "==" in line}
