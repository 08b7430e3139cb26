"""`fairpool db backup` and `restore` as the how-to types them: both ways between SQLite and PostgreSQL, and refused."""

from __future__ import annotations

import re
import sqlite3

from tests.e2e.cli.conftest import Machine


def filled(machine: Machine) -> str:
    """Something of several kinds; what a copy has to show of it."""
    machine.ok("pool", "create", "gpus", "--capacity", "gpu=2")
    machine.ok("policy", "attach", "gpus", "local", "--reserved", "gpu=1")
    machine.ok("run", "--gpus", "1", "--name", "first", "--", "true")
    return shown(machine)


def shown(machine: Machine, **environment: str) -> str:
    listed = machine.ok("request", "list", "--view", "all", "-o", "json", **environment)
    return listed + machine.ok("policy", "list", "-o", "json", **environment)


def test_a_backup_of_a_running_server_is_restored_where_the_file_was(machine: Machine) -> None:
    before = filled(machine)
    told = machine.ok("db", "backup", "monday.db")
    assert re.fullmatch(rf"{re.escape(str(machine.file('monday.db')))}: [\d,]+ bytes, schema \d{{4}}, checked\n", told)
    assert (machine.file("monday.db").stat().st_mode & 0o777) == 0o600
    machine.ok("pool", "create", "later", "--capacity", "gpu=1")
    machine.ok("server", "stop")
    for path in machine.data.glob("fairpool.db*"):
        path.rename(machine.file(f"old-{path.name}"))
    restored = machine.ok("db", "restore", "monday.db")
    assert restored.startswith(f"{machine.data}/fairpool.db: restored from monday.db; ")
    assert restored.endswith("; the same on both sides\n")
    assert machine.ok("db", "check").startswith(f"{machine.data}/fairpool.db: sound, ")
    assert shown(machine) == before
    assert machine.ok("pool", "list", "-o", "name") == "gpus\n", "what came after the backup is not in it"


def test_a_server_moves_to_postgresql_and_back_again(machine: Machine, new_postgres_url: str) -> None:
    before = filled(machine)
    machine.ok("server", "stop")
    there = {"FAIRPOOL_DATABASE_URL": new_postgres_url}
    moved = machine.ok("db", "restore", str(machine.data / "fairpool.db"), **there)
    assert re.match(r"the PostgreSQL database '\w+' at 127\.0\.0\.1(:\d+)?: restored from ", moved)
    assert shown(machine, **there) == before
    machine.ok("pool", "create", "made-there", "--capacity", "gpu=1", **there)
    after = shown(machine, **there)
    machine.ok("db", "backup", "tuesday.db", **there)
    machine.ok("server", "stop", **there)
    for path in machine.data.glob("fairpool.db*"):
        path.unlink()
    machine.ok("db", "restore", "tuesday.db")
    assert shown(machine) == after
    assert machine.ok("pool", "list", "-o", "name") == "gpus\nmade-there\n"


def test_what_is_not_empty_or_in_use_is_not_restored_into(machine: Machine, new_postgres_url: str) -> None:
    filled(machine)
    machine.ok("db", "backup", "b.db")
    used = machine("db", "restore", "b.db")
    assert (used.code, used.out) == (1, "")
    assert "stop it first" in used.err
    machine.ok("server", "stop")
    full = machine("db", "restore", "b.db")
    assert (full.code, full.out) == (1, "")
    assert "is not empty: it holds 3 documents" in full.err
    there = {"FAIRPOOL_DATABASE_URL": new_postgres_url}
    machine.ok("db", "restore", "b.db", **there)
    again = machine("db", "restore", "b.db", **there)
    assert (again.code, "is not empty: it holds" in again.err) == (1, True)
    assert machine.ok("pool", "list", "-o", "name") == "gpus\n", "it is as it was"


def test_a_file_that_is_not_what_it_was_is_not_used_until_somebody_accepts_it(machine: Machine) -> None:
    before = filled(machine)
    machine.ok("server", "stop")
    file = machine.data / "fairpool.db"
    held = file.read_bytes()
    file.write_bytes(held[:-1] + bytes([held[-1] ^ 1]))
    refused = machine("pool", "list")
    assert (refused.code != 0, refused.out) == (True, "")
    assert "has lost something" in refused.err
    assert "'fairpool db restore'" in refused.err
    checked = machine("db", "check")
    assert (checked.code, checked.out) == (1, "")
    assert "a byte has flipped, or another program wrote to it" in checked.err
    accepted = machine.ok("db", "accept")
    assert "taken as it is from now on, though it is not what it was when it was closed" in accepted
    assert shown(machine) == before
    assert "nothing is missing" in machine.ok("db", "accept")


def test_what_is_no_backup_of_this_version_is_refused_and_the_target_stays_empty(machine: Machine) -> None:
    filled(machine)
    machine.ok("db", "backup", "newer.db")
    machine.ok("server", "stop")
    with sqlite3.connect(machine.file("newer.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with sqlite3.connect(machine.file("foreign.db")) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    machine.file("text.db").write_text("no database " * 50)
    for path in machine.data.glob("fairpool.db*"):
        path.unlink()
    for name, told in (
        ("newer.db", "newer.db was written by a newer version of Fairpool"),
        ("foreign.db", "foreign.db holds other tables (songs)"),
        ("text.db", "text.db is damaged"),
        ("none.db", "none.db does not exist"),
    ):
        refused = machine("db", "restore", name)
        assert (refused.code, refused.out, told in refused.err) == (1, "", True), (name, refused)
    assert machine.ok("pool", "list", "-o", "name") == "", "nothing has arrived"
