"""The base install is the client lane and stays thin: asserted on what is imported, never on time."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

SERVER_LANE = {"sqlalchemy", "alembic", "starlette", "uvicorn", "uvloop", "httptools", "numpy", "sklearn"}
SERVER_LANE |= {"aiohttp", "authlib", "cronsim", "cryptography", "httpx2", "prometheus_client", "psycopg"}
# Each costs tens of milliseconds or more: loaded when a command needs it, not to print what commands there are.
LOADED_WHEN_NEEDED = SERVER_LANE | {"pydantic", "rich", "urllib3", "fsspec", "cloudpickle", "yaml"}


def modules_after(code: str, *, without: set[str] | None = None) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after running this; `without` cannot be imported."""
    program = f"""
import sys
for name in {sorted(without or set())!r}:
    sys.modules[name] = None
try:
{textwrap.indent(textwrap.dedent(code), "    ")}
except SystemExit as end:
    assert not end.code, f"it ended with {{end.code!r}}"
loaded = [name for name, module in sys.modules.items() if module is not None]
import json
sys.stderr.write("\\n" + json.dumps(loaded))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stderr.splitlines()[-1]))


def command(*words: str) -> str:
    return f"""
import sys
sys.argv = ["fairpool", *{list(words)!r}]
from fairpool.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "module", ["fairpool", "fairpool.wire", "fairpool.client", "fairpool.sdk", "fairpool.cli.main"]
)
def test_the_client_lane_loads_nothing_of_the_server_lane(module: str) -> None:
    assert not modules_after(f"import {module}") & SERVER_LANE


def test_the_client_lane_works_where_the_server_lane_is_not_installed() -> None:
    assert modules_after(command("--help"), without=SERVER_LANE)


@pytest.mark.parametrize("words", [("doctor",), ("vault", "key"), ("schema", "pool"), ("completion", "bash")])
def test_what_needs_no_server_part_works_without_one(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FAIRPOOL_SERVER", raising=False)
    monkeypatch.setenv("FAIRPOOL_DATA_DIR", str(tmp_path))
    assert modules_after(command(*words), without=SERVER_LANE)


def test_importing_the_package_loads_nothing_until_a_name_is_used() -> None:
    assert not modules_after("import fairpool") & LOADED_WHEN_NEEDED


@pytest.mark.parametrize("words", [("--help",), ("version",), ("pool", "--help"), ("run", "--help")])
def test_saying_what_there_is_loads_nothing_heavy(words: tuple[str, ...]) -> None:
    assert not modules_after(command(*words)) & LOADED_WHEN_NEEDED


def test_the_core_loads_only_the_standard_library() -> None:
    """Simulators and notebooks may use the core alone."""
    loaded = modules_after("import fairpool.core, fairpool.core.planner, fairpool.core.audit")
    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"__main__", "fairpool"}
    # What an editable install and the interpreter's own start-up put there.
    assert {name for name in foreign if not name.startswith(("_", "sitecustomize", "usercustomize"))} == set()
