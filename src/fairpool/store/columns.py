"""What the tables are made of: columns and constraints, each with its name."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Text,
    false,
)

metadata = MetaData()

# SQLite gives a rowid of its own only to this type; on PostgreSQL it is a plain bigint.
Sequence = BigInteger().with_variant(Integer(), "sqlite")

# Ids and names are compared and sorted letter by letter, as SQLite and Python do; PostgreSQL would go by the rules of
# whatever language its database was made for. Text is for what nobody compares.
Word = String().with_variant(String(collation="C"), "postgresql")


def key(table: str, *columns: str) -> PrimaryKeyConstraint:
    """The primary key of a table."""
    return PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def check(name: str, condition: str) -> CheckConstraint:
    """A condition that every row meets."""
    return CheckConstraint(condition, name=f"ck_{name}")


def text_column(name: str) -> Column[str]:
    """A text that is always there, if empty."""
    return Column(name, Word, nullable=False)


def number_column(name: str, *, null: bool = False) -> Column[int]:
    """A whole number: an amount, a time, a count."""
    return Column(name, BigInteger, nullable=null)


def json_column(name: str) -> Column[str]:
    """JSON as compact text; NULL stands for what is empty."""
    return Column(name, Text, nullable=True)


def added_text_column(name: str) -> Column[str]:
    """A text that came with a later schema: code of the schema before leaves it out when it writes."""
    return Column(name, Word, nullable=False, server_default="")


def added_number_column(name: str) -> Column[int]:
    """A whole number that came with a later schema; 0 in rows that code of the schema before wrote."""
    return Column(name, BigInteger, nullable=False, server_default="0")


def added_flag_column(name: str) -> Column[bool]:
    """A flag that came with a later schema: not set where older code leaves it out."""
    return Column(name, Boolean(create_constraint=False), nullable=False, server_default=false())


def declared_columns() -> list[Column[str] | Column[int]]:
    """What every declared object has."""
    return [
        text_column("workspace"),
        text_column("id"),
        text_column("name"),
        number_column("version"),
        number_column("created_at"),
        number_column("updated_at"),
        json_column("note"),
    ]
