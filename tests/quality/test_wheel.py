"""What is published holds the package, all of it, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel built from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    built = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_file_of_the_package(contents: set[str]) -> None:
    package = ROOT / "src" / "fairpool"
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "."], cwd=package, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    assert {f"fairpool/{name}" for name in tracked if name and (package / name).exists()} <= contents


def test_the_wheel_says_that_it_is_typed(contents: set[str]) -> None:
    assert "fairpool/py.typed" in contents


def test_the_wheel_holds_the_package_alone(contents: set[str]) -> None:
    assert {name.split("/")[0].split("-")[0] for name in contents} == {"fairpool"}
