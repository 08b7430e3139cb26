"""From whatever schema a database has to the one of this version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, inspect, text

from fairpool.app.store_errors import StoreForeign, StoreTooNew

if TYPE_CHECKING:  # it loads slowly, and is needed only where a step is missing
    from alembic.config import Config

HEAD: Final = "0002"
"""The schema of this version; a test holds that it is the last of the steps."""

_STEPS: Final = Path(__file__).parent / "migrations"
_VERSIONS: Final = "alembic_version"


def revision_of(connection: Connection, name: str) -> str | None:
    """The schema that a database has; None for an empty one. name: what to call it in messages.

    Raises StoreForeign when its tables are not Fairpool's.
    """
    tables = inspect(connection).get_table_names()
    if not tables:
        return None
    found = (
        connection.execute(text("SELECT version_num FROM alembic_version")).scalar() if _VERSIONS in tables else None
    )
    if found is None:
        raise StoreForeign(
            f"{name} holds other tables ({', '.join(tables[:3])}); it is left as it is: name another file"
        )
    return str(found)


def is_current(found: str | None, name: str) -> bool:
    """Whether the schema is this version's; False where steps are missing. Raises StoreTooNew."""
    if found == HEAD:
        return True
    if found is not None and found not in known_revisions():
        raise StoreTooNew(
            f"{name} was written by a newer version of Fairpool (schema {found}, this one knows up to {HEAD}); "
            "it is left as it is: install that version, or restore a backup of this one's",
            found=found,
            known=HEAD,
        )
    return False


def upgrade(connection: Connection) -> None:
    """Run the missing steps inside the connection's transaction: all of them or none."""
    from alembic import command

    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def known_revisions() -> tuple[str, ...]:
    """All schemas that there were, oldest first."""
    from alembic.script import ScriptDirectory

    steps = list(ScriptDirectory.from_config(_config()).walk_revisions())
    return tuple(step.revision for step in reversed(steps))


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_STEPS).replace("%", "%%"))
    return config
