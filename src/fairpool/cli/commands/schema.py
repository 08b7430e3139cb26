"""``fairpool schema``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fairpool.cli.options import nearest, note


@click.command("schema")
@click.argument("kind", required=False)
@click.option("--all", "every", is_flag=True, help="The schemas of all kinds, and of files that hold several kinds.")
@click.option("--to", "folder", type=click.Path(file_okay=False, path_type=Path), help="Write KIND.schema.json there.")
def schema(kind: str | None, folder: Path | None, *, every: bool) -> None:
    """Print the JSON Schema of a KIND of document, by which editors check and complete. Needs no server.

    KIND: pool, policy, … or document, for whatever kind.
    """
    from fairpool.wire.manifests import schemas

    known = list(schemas.names())
    if every == (kind is not None):
        raise click.UsageError(f"say a kind, or --all; possible: {', '.join(known)}")
    if kind is not None and kind not in known:
        raise click.UsageError(f"no kind {kind!r}{nearest(kind, known)}; possible: {', '.join(known)}")
    if every and folder is None:
        raise click.UsageError("--all writes several files: --to says in which folder")
    for name in known if every else [str(kind)]:
        text = json.dumps(schemas.named(name), indent=2) + "\n"
        if folder is None:
            click.echo(text, nl=False)
            continue
        path = folder / f"{name}.schema.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        except OSError as error:
            raise click.ClickException(f"{path} cannot be written: {(error.strerror or str(error)).lower()}") from None
        note(f"wrote {path}")
