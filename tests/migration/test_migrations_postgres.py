"""The same steps on PostgreSQL: what they make, and what happens when several run them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from fairpool.app.store_errors import StoreTooNew
from fairpool.store import maintenance, migrating, opening, schema
from fairpool.store.urls import database_of
from tests.migration.databases import at_revision
from tests.postgres import Cluster

REVISIONS = migrating.known_revisions()

COLUMNS = """
    SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
"""
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND conname <> 'alembic_version_pkc'
"""
INDEXES = """
    SELECT tablename, indexname, indexdef FROM pg_indexes
    WHERE schemaname = 'public' AND tablename <> 'alembic_version'
"""
MADE = (COLUMNS, CONSTRAINTS, INDEXES)


def made(url: str) -> list[set[tuple[object, ...]]]:
    with psycopg.connect(url) as connection:
        return [set(connection.execute(query.encode()).fetchall()) for query in MADE]


def test_tables_made_by_steps_and_by_the_models_are_the_same_to_the_letter(
    new_postgres_url: str, postgres_cluster: Cluster
) -> None:
    opening.migrate(new_postgres_url)
    by_models = postgres_cluster.new_database()
    writer = database_of(by_models).writer()
    schema.metadata.create_all(writer)
    writer.dispose()
    assert made(new_postgres_url) == made(by_models)
    postgres_cluster.drop_database(by_models)


def test_nothing_is_left_to_do_after_the_steps(postgres_url: str) -> None:
    readers = database_of(postgres_url).readers()
    with readers.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
    readers.dispose()


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_earlier_schema_is_brought_up_to_date_at_opening(revision: str, new_postgres_url: str) -> None:
    at_revision(new_postgres_url, revision)
    opening.open_store(new_postgres_url).close()
    report = maintenance.check(new_postgres_url)
    assert (report.revision, report.problems) == (migrating.HEAD, ())


def test_servers_that_start_at_once_migrate_one_after_the_other(new_postgres_url: str) -> None:
    with ThreadPoolExecutor(max_workers=4) as threads:
        done = list(threads.map(lambda _: opening.migrate(new_postgres_url), range(4)))
    assert sorted(one.before or "" for one in done) == ["", *[migrating.HEAD] * 3]
    assert {one.after for one in done} == {migrating.HEAD}


def test_a_step_that_fails_leaves_the_database_as_it_was(
    new_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = migrating.upgrade

    def fails_at_the_end(connection: Connection) -> None:
        real(connection)
        raise RuntimeError("the machine is on fire")

    monkeypatch.setattr(migrating, "upgrade", fails_at_the_end)
    with pytest.raises(RuntimeError):
        opening.migrate(new_postgres_url)
    monkeypatch.undo()
    assert made(new_postgres_url) == [set(), set(), set()]
    opening.open_store(new_postgres_url).close()


def test_a_database_of_a_newer_version_is_refused_and_left_alone(new_postgres_url: str) -> None:
    opening.migrate(new_postgres_url)
    with psycopg.connect(new_postgres_url, autocommit=True) as newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
        with pytest.raises(StoreTooNew, match="newer version of Fairpool") as refused:
            opening.open_store(new_postgres_url)
        assert (refused.value.found, refused.value.known) == ("9999", migrating.HEAD)
        assert "newer version" in maintenance.check(new_postgres_url).problems[0]
        assert newer.execute("SELECT version_num FROM alembic_version").fetchall() == [("9999",)]
