"""From every schema that there ever was to this one; and what is refused."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Index, create_engine, inspect
from sqlalchemy.schema import SchemaItem

from fairpool.app.store_errors import StoreForeign, StoreTooNew
from fairpool.store import maintenance, migrating, opening, schema
from tests.conformance.store_samples import NOW, allocated, change, grant, policy, pool, request, trial
from tests.migration.databases import at_revision
from tests.tidy import tree

REVISIONS = migrating.known_revisions()


def made_by_steps(path: Path) -> Path:
    opening.migrate(f"sqlite:///{path}")
    return path


def created(connection: Connection) -> dict[str, set[str]]:
    """What each table is made of, clause by clause: columns, and constraints with their conditions."""
    rows = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").all()
    return {name: clauses(sql) for kind, name, sql in rows if kind != "trigger" and name != "alembic_version"}


def clauses(sql: str) -> set[str]:
    """What stands between the outer brackets, and around them, with neither quotes nor order: a column that was added
    later stands at the end of the statement."""
    head, _, rest = re.sub(r"\s+", " ", sql.replace('"', "")).partition("(")
    body, _, tail = rest.rpartition(")")
    found, depth, part = {head.strip(), tail.strip()}, 0, ""
    for sign in body + ",":
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and not depth:
            found.add(part.strip())
            part = ""
        else:
            part += sign
    return found


def is_for_sqlite(thing: SchemaItem, name: str, kind: str, reflected: bool, other: SchemaItem) -> bool:
    """Some indexes are made on PostgreSQL alone."""
    return not (isinstance(thing, Index) and thing._ddl_if)


def test_the_steps_end_at_the_schema_that_the_code_knows(tmp_path: Path) -> None:
    assert ScriptDirectory.from_config(migrating._config()).get_heads() == [migrating.HEAD]
    engine = create_engine(f"sqlite:///{made_by_steps(tmp_path / 'f.db')}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_object": is_for_sqlite})
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


def test_tables_made_by_steps_and_by_the_models_are_the_same_to_the_letter(tmp_path: Path) -> None:
    """Conditions of CHECKs and of partial indexes too, which Alembic does not compare."""
    by_steps = create_engine(f"sqlite:///{made_by_steps(tmp_path / 'steps.db')}")
    by_models = create_engine(f"sqlite:///{tmp_path / 'models.db'}")
    schema.metadata.create_all(by_models)
    with by_steps.connect() as steps, by_models.connect() as models:
        assert created(steps) == created(models)
    by_steps.dispose()
    by_models.dispose()


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_earlier_schema_is_brought_up_to_date_at_opening(revision: str, tmp_path: Path) -> None:
    path = tmp_path / "fairpool.db"
    at_revision(f"sqlite:///{path}", revision)
    opening.open_store(f"sqlite:///{path}").close()
    report = maintenance.check(f"sqlite:///{path}")
    assert (report.revision, report.problems) == (migrating.HEAD, ())


def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'fairpool.db'}"
    assert opening.migrate(url) == opening.Migrated(before=None, after=migrating.HEAD)
    contents = (tmp_path / "fairpool.db").read_bytes()
    assert opening.migrate(url) == opening.Migrated(before=migrating.HEAD, after=migrating.HEAD)
    assert (tmp_path / "fairpool.db").read_bytes() == contents


def test_a_step_that_fails_leaves_the_database_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fairpool.db"
    real = migrating.upgrade

    def fails_at_the_end(connection: Connection) -> None:
        real(connection)
        raise RuntimeError("the machine is on fire")

    monkeypatch.setattr(migrating, "upgrade", fails_at_the_end)
    with pytest.raises(RuntimeError):
        opening.migrate(f"sqlite:///{path}")
    monkeypatch.undo()
    engine = create_engine(f"sqlite:///{path}")
    assert inspect(engine).get_table_names() == []
    engine.dispose()
    opening.open_store(f"sqlite:///{path}").close()


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    on = trial("sqlite", tmp_path)
    on.commit(put=(pool(), policy()), inserted=(request("r1"),), changes=(change("r1"),))
    on.commit(updated=(("r1", allocated(grant((0, 1000)))),))
    on.store.close()
    path = tmp_path / "fairpool.db"
    newer = sqlite3.connect(path)
    newer.execute("UPDATE alembic_version SET version_num = '9999'")
    newer.commit()
    newer.close()
    contents = path.read_bytes()
    with pytest.raises(StoreTooNew, match="newer version of Fairpool") as refused:
        opening.open_store(f"sqlite:///{path}")
    assert (refused.value.found, refused.value.known) == ("9999", migrating.HEAD)
    with pytest.raises(StoreTooNew):
        opening.migrate(f"sqlite:///{path}")
    assert "newer version" in maintenance.check(f"sqlite:///{path}").problems[0]
    assert path.read_bytes() == contents


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE songs (title TEXT)")
    other.commit()
    other.close()
    contents = path.read_bytes()
    with pytest.raises(StoreForeign, match="songs"):
        opening.open_store(f"sqlite:///{path}")
    assert path.read_bytes() == contents
    marked = sqlite3.connect(path)
    marked.execute("PRAGMA application_id = 1196444487")  # as a GeoPackage has it
    marked.commit()
    marked.close()
    with pytest.raises(StoreForeign, match="another program"):
        opening.open_store(f"sqlite:///{path}")


def test_steps_import_no_application_code() -> None:
    """What a step did must stay what it does, however the application changes."""
    tree.none_of(
        (
            f"{tree.place(path)} imports {line}"
            for path in Path(migrating.__file__).parent.joinpath("migrations").rglob("*.py")
            for line in path.read_text("utf-8").splitlines()
            if re.match(r"\s*(from|import) fairpool", line)
        ),
        "A migration spells out what it does.",
    )


def test_time_stands_in_the_file_as_it_was_given(tmp_path: Path) -> None:
    """Microseconds since 1970, exactly: what operators and later steps read."""
    on = trial("sqlite", tmp_path)
    on.commit(inserted=(request("r1"),))
    on.store.close()
    plain = sqlite3.connect(tmp_path / "fairpool.db")
    assert plain.execute("SELECT created_at, workspace FROM requests").fetchall() == [(NOW, "default")]
    plain.close()
