"""Remembers: the SQL adapter (schema, migrations, one unit of work) and an in-memory stand-in."""
