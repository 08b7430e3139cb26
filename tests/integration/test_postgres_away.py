"""A PostgreSQL that is away, full, of the wrong kind, or not for us; and what is never told of it."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator

import psycopg
import pytest

from fairpool.app.records import RequestQuery
from fairpool.app.store_errors import (
    StoreForeign,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    StoreUnusable,
)
from fairpool.store import maintenance, opening, postgres
from fairpool.store.urls import database_of
from tests.conformance.store_samples import NOW, Trial, change, request, trial_of
from tests.postgres import Cluster, running
from tests.tidy import tree

SECRET = "s3cret/und%sehr"


@pytest.fixture
def on(postgres_url: str) -> Iterator[Trial]:
    trying = trial_of(postgres_url)
    yield trying
    trying.store.close()


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[Cluster]:
    """A server that a test may stop."""
    with running() as cluster:
        yield cluster


def test_commits_ask_for_a_durable_write_and_everything_has_a_time_limit(on: Trial) -> None:
    with on.store._writing() as writing, on.store._reading() as reading:  # type: ignore[attr-defined]
        asked = ("synchronous_commit", "transaction_isolation", "transaction_read_only")
        found = [[of.exec_driver_sql(f"SHOW {name}").scalar() for name in asked] for of in (writing, reading)]
        assert found == [["on", "read committed", "off"], ["on", "repeatable read", "on"]]
        limits = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        assert [writing.exec_driver_sql(f"SHOW {name}").scalar() for name in limits] == ["1min", "10s", "5s"]


def test_a_database_that_was_away_is_found_again_without_a_restart(own_cluster: Cluster) -> None:
    on = trial_of(own_cluster.new_database())
    on.commit(inserted=(request("before"),))
    own_cluster.control("stop")
    calls = (
        lambda: on.commit(inserted=(request("while"),)),
        on.store.load,
        lambda: on.store.reader.requests.get(["before"]),
        lambda: on.store.leases.renew(on.token, NOW, 60),
    )
    for call in calls:
        with pytest.raises(StoreUnavailable, match=r"the PostgreSQL database .* at 127.0.0.1"):
            call()
    own_cluster.control("start")
    on.commit(inserted=(request("after"),))
    assert set(on.store.load().live) == {"before", "after"}
    assert set(on.store.reader.requests.get(["before"])) == {"before"}
    on.store.leases.renew(on.token, NOW, 60)
    on.store.close()


def test_a_connection_that_was_cut_fails_one_call_and_no_more(on: Trial, postgres_url: str) -> None:
    on.commit(inserted=(request("r1"),))
    on.store.load()
    with psycopg.connect(postgres_url, autocommit=True) as operator:
        operator.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fairpool'")
    for call in (on.store.load, lambda: on.commit(inserted=(request("r2"),))):
        with pytest.raises(StoreUnavailable):
            call()
        call()
    assert set(on.store.load().live) == {"r1", "r2"}


def test_a_server_that_does_not_answer_is_given_up_after_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="timeout"):
            opening.open_store(f"postgresql://fairpool@127.0.0.1:{deaf.getsockname()[1]}/fairpool")
        assert time.monotonic() - began < 4 * postgres.CONNECT_TIMEOUT_S


FULL = """
CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER no_room BEFORE INSERT ON history FOR EACH ROW EXECUTE FUNCTION no_room();
"""


def test_a_full_disk_refuses_the_commit_whole_and_the_store_goes_on_when_there_is_room(new_postgres_url: str) -> None:
    on = trial_of(new_postgres_url)
    with psycopg.connect(new_postgres_url, autocommit=True) as operator:
        operator.execute(FULL)
        with pytest.raises(StoreFull, match="nothing was changed; make room"):
            on.commit(inserted=(request("r1"),), changes=(change("r1"),))
        assert on.store.load().live == {}
        operator.execute("DROP TRIGGER no_room ON history")
    on.commit(inserted=(request("r1"),), changes=(change("r1"),))
    assert set(on.store.load().live) == {"r1"}
    on.store.close()


def test_a_database_that_may_only_be_read_is_said_to_be_and_still_read(new_postgres_url: str) -> None:
    on = trial_of(new_postgres_url)
    on.commit(inserted=(request("r1"),))
    name = new_postgres_url.rpartition("/")[2]
    with psycopg.connect(new_postgres_url, autocommit=True) as operator:
        operator.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")  # as on a standby
    on.store.close()
    with pytest.raises(StoreReadOnly, match="cannot be written"):
        on.reopened().leases.renew(on.token, NOW, 60)
    assert set(on.store.load().live) == {"r1"}
    assert maintenance.check(new_postgres_url).is_sound
    on.store.close()


def test_a_user_without_rights_is_told_which(postgres_cluster: Cluster, new_postgres_url: str) -> None:
    trial_of(new_postgres_url).store.close()
    with psycopg.connect(new_postgres_url, autocommit=True) as operator:
        operator.execute("DROP ROLE IF EXISTS guest")
        operator.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(StoreReadOnly, match="permission denied"):
        opening.open_store(new_postgres_url.replace("fairpool@", "guest@"))


def test_a_database_that_cannot_keep_every_letter_is_refused(postgres_cluster: Cluster) -> None:
    url = postgres_cluster.new_database("TEMPLATE template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'")
    with pytest.raises(StoreUnusable, match=r"keeps its texts as LATIN1.*ENCODING 'UTF8'"):
        opening.open_store(url)
    postgres_cluster.drop_database(url)


def test_a_database_of_something_else_is_refused_and_left_alone(new_postgres_url: str) -> None:
    with psycopg.connect(new_postgres_url, autocommit=True) as other:
        other.execute("CREATE TABLE songs (title text)")
        with pytest.raises(StoreForeign, match="songs"):
            opening.open_store(new_postgres_url)
        assert other.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall() == [("songs",)]


def test_names_are_compared_letter_by_letter_whatever_the_language_of_the_database(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        other = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' "
            "AND table_name <> 'alembic_version' AND data_type = 'character varying' "
            "AND collation_name IS DISTINCT FROM 'C'"
        ).fetchall()
        assert connection.execute("SELECT 'a' < 'B'").fetchone() == (True,)  # or else this would prove nothing
    assert other == []


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_the_usual_ways_to_write_the_url_are_understood(scheme: str, postgres_url: str) -> None:
    assert maintenance.check(postgres_url.replace("postgresql", scheme, 1)).is_sound


def test_a_url_may_name_the_socket_of_this_machine(postgres_cluster: Cluster, postgres_url: str) -> None:
    name = postgres_url.rpartition("/")[2]
    url = f"postgresql://fairpool@/{name}?host={postgres_cluster.folder}&port={postgres_cluster.port}"
    assert maintenance.check(url).is_sound


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://fairpool:{SECRET}@127.0.0.1:1/fairpool",  # a sign that should have been written otherwise
        "postgresql://fairpool:s3cret%2Fund%25sehr@127.0.0.1:1/fairpool",
        "postgresql://fairpool@127.0.0.1:1/fairpool?password=s3cret%2Fund%25sehr",
        "postgresql://fairpool:s3cret%2Fund%25sehr@127.0.0.1:no-port/fairpool",
    ],
)
def test_a_password_stands_in_no_message_and_no_log(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises((StoreUnusable, StoreUnavailable)) as refused:
        opening.open_store(url)
    told = "".join(traceback.format_exception(refused.value)) + caplog.text
    assert "s3cret" not in told
    assert "sehr" not in told


def test_a_wrong_password_is_told_without_it(postgres_cluster: Cluster, postgres_url: str) -> None:
    name = database_of(postgres_url.replace("fairpool@", "fairpool:s3cret@")).name
    assert "s3cret" not in name
    assert name.endswith(f"at 127.0.0.1:{postgres_cluster.port}")


WITHOUT_DRIVER = """
import sys
sys.modules["psycopg"] = None
from fairpool.app.store_errors import StoreUnusable
from fairpool.store.opening import open_store
open_store(f"sqlite:///{sys.argv[1]}/f.db").close()
try:
    open_store("postgresql://127.0.0.1/fairpool")
except StoreUnusable as error:
    print(error.message)
"""


def test_without_the_driver_it_is_said_what_to_install(tmp_path: object) -> None:
    command = [sys.executable, "-c", WITHOUT_DRIVER, str(tmp_path)]
    done = subprocess.run(command, cwd=tree.ROOT, capture_output=True, text=True, timeout=90, check=True)
    assert "pip install 'fairpool[postgres]'" in done.stdout


def test_many_ask_at_once_and_each_gets_an_answer(on: Trial) -> None:
    """More than there are connections: they take turns."""
    on.commit(inserted=(request("r1"),))
    answers: list[object] = []

    def ask() -> None:
        for _ in range(10):
            answers.append(on.store.reader.requests.count(RequestQuery()))

    threads = [threading.Thread(target=ask) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 400
    assert all(answers)
