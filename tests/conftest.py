"""What holds for every test: how Hypothesis looks for examples, and a PostgreSQL for those who ask for one."""

import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests import postgres

# No deadlines: how long an example takes is the machine's business, and a test that depends on it fails at random.
settings.register_profile("dev", deadline=None)
# The same examples on every run, so that a red build is red again on the next machine.
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
# For `make mutation`: the same examples for every mutant, and none made smaller: that one fails is enough.
settings.register_profile(
    "mutation", deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)
# For an evening's hunt: HYPOTHESIS_PROFILE=thorough make test
settings.register_profile(
    "thorough", deadline=None, max_examples=5_000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# Tests start Python a thousand times: what is compiled once is kept, whatever the surroundings say.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# What runs in the background of a script ignores Ctrl-C, and so would every process that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def pytest_configure(config: pytest.Config) -> None:
    """What `nohup` starts ignores that its terminal is gone, and so would all that tests start; they start none where
    others run them."""
    runs_tests = hasattr(config, "workerinput") or config.getoption("dist", "no") == "no"
    if runs_tests and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """At the end: what tests have counted, which they give as the property ``figure``."""
    reports = [report for found in ("passed", "failed") for report in terminalreporter.stats.get(found, [])]
    figures = [value for report in reports for name, value in report.user_properties if name == "figure"]
    if figures:
        terminalreporter.section("figures")
        terminalreporter.write("".join(f"{figure}\n" for figure in figures))


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[postgres.Cluster]:
    """A PostgreSQL server, started for the first test that needs it."""
    with postgres.running() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def postgres_database(postgres_cluster: postgres.Cluster) -> str:
    """The URL of the PostgreSQL database that tests share, of the current schema."""
    from fairpool.store import opening

    url = postgres_cluster.new_database()
    opening.migrate(url)
    return url


@pytest.fixture
def postgres_url(postgres_database: str) -> str:
    """The URL of a PostgreSQL database of the current schema with nothing in it, for a test that leaves it in order."""
    postgres.empty(postgres_database)
    return postgres_database


@pytest.fixture
def new_postgres_url(postgres_cluster: postgres.Cluster) -> Iterator[str]:
    """The URL of a new PostgreSQL database without any tables, for a test that does with it what it likes."""
    url = postgres_cluster.new_database()
    yield url
    postgres_cluster.drop_database(url)
