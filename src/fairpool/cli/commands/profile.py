"""``fairpool profile``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairpool.cli import render
from fairpool.cli.historyview import changed_fields
from fairpool.cli.lazy import NounGroup
from fairpool.cli.options import Duration, body, confirm, connected, data, dry_run, note, pairs, past, printed
from fairpool.cli.render import Column, Style

if TYPE_CHECKING:
    from fairpool.client.api import Client
    from fairpool.wire.policies import ProfileDefaultsView

COLUMNS = (
    Column("NAME", lambda profile: profile.name),
    Column("DEMAND", lambda profile: profile.demand),
    Column("POOLS", lambda profile: profile.pools),
    Column("DEFAULTS", lambda profile: _defaults(profile.defaults)),
    Column("DESCRIPTION", lambda profile: profile.description, wide=True),
    Column("ID", lambda profile: profile.id, wide=True),
)


def _defaults(defaults: ProfileDefaultsView) -> str:
    told = [] if defaults.preemptible is None else ["preemptible" if defaults.preemptible else "non-preemptible"]
    if defaults.max_runtime_s is not None:
        told.append(f"max-runtime {render.duration(defaults.max_runtime_s)}")
    return ", ".join(told + [f"{key}={value}" for key, value in defaults.labels.items()])


def _described(function: click.decorators.FC) -> click.decorators.FC:
    for option in reversed(
        (
            click.option(
                "--preemptible/--non-preemptible",
                default=None,
                help="Whether requests that do not say may be interrupted.",
            ),
            click.option(
                "--max-runtime", "max_runtime_s", type=Duration(), help="How long those that do not say run at most."
            ),
            click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A label that they get."),
            click.option("--description", help="A line about it, for people."),
        )
    ):
        function = option(function)
    return function


@click.group(cls=NounGroup)
def profile() -> None:
    """Profiles: what can be asked for by name, in which pools, in which order."""


@profile.command("create")
@click.argument("name")
@click.option(
    "--demand", required=True, metavar="KEY=AMOUNT,…", help="What it asks for, such as gpu=0.5; or JSON, or YAML."
)
@click.option("--pool", "pools", multiple=True, required=True, help="Where, the preferred one first; repeatable.")
@_described
@dry_run
@printed
@connected
def create(
    client: Client,
    name: str,
    demand: str,
    pools: tuple[str, ...],
    description: str | None,
    style: Style,
    *,
    dry_run: bool,
    **said: object,
) -> None:
    """Create a profile."""
    from fairpool.wire.policies import ProfileCreate, ProfileDefaultsView

    given = body(
        ProfileCreate,
        name=name,
        demand=data(demand, option="--demand"),
        pools=list(pools),
        defaults=_said(said, ProfileDefaultsView()),
        description=description,
    )
    made = client.create_profile(given, dry_run=dry_run)
    if style.format in ("table", "wide"):
        what = "would be created" if dry_run else "created"
        click.echo(f"profile {made.name} {what}: {render.amounts(made.demand)} in {', then '.join(made.pools)}")
    else:
        render.print_one(made, [], style)


@profile.command("update")
@click.argument("profile")
@click.option("--name", "new_name", help="Its new name, which policies and queued requests follow.")
@click.option("--demand", metavar="KEY=AMOUNT,…", help="What it asks for, such as gpu=0.5; or JSON, or YAML.")
@click.option("--pool", "pools", multiple=True, help="Where, the preferred one first, instead of before; repeatable.")
@_described
@click.option("--no-labels", is_flag=True, help="Requests get no labels from it.")
@click.option("--no-defaults", is_flag=True, help="Forget the defaults that it had.")
@click.option("--if-version", type=int, help="Refuse if it has changed since that version.")
@dry_run
@printed
@connected
def update(
    client: Client,
    profile: str,
    new_name: str | None,
    demand: str | None,
    pools: tuple[str, ...],
    description: str | None,
    if_version: int | None,
    style: Style,
    *,
    no_labels: bool,
    no_defaults: bool,
    dry_run: bool,
    **said: object,
) -> None:
    """Change a profile; what is not said stays. Requests that are queued already keep what they ask for."""
    from fairpool.wire.policies import ProfileDefaultsView, ProfileUpdate

    if no_labels and said["labels"]:
        raise click.UsageError("--label and --no-labels say different things; possible: one of the two")
    found = client.profile(profile)
    defaults = ProfileDefaultsView() if no_defaults else found.defaults
    if no_labels:
        defaults = defaults.model_copy(update={"labels": {}})
    given = body(
        ProfileUpdate,
        name=new_name,
        demand=None if demand is None else data(demand, option="--demand"),
        pools=list(pools) or None,
        defaults=_said(said, defaults, forget=no_defaults or no_labels),
        description=description,
    )
    made = client.update_profile(found.id, given, version=if_version, dry_run=dry_run)
    if style.format in ("table", "wide"):
        what = "would be changed" if dry_run else "changed"
        before, after = (
            view.model_dump(mode="json", include=set(ProfileUpdate.model_fields)) for view in (found, made)
        )
        told = changed_fields(before, after)
        click.echo(f"profile {made.name} " + (f"{what}: {told}" if told else "is so already: nothing to change"))
    else:
        render.print_one(made, [], style)


def _said(said: dict[str, object], before: ProfileDefaultsView, *, forget: bool = False) -> dict[str, object] | None:
    """The defaults as a whole: those before with what the options say; None where they say nothing."""
    labels = said["labels"]
    given = {
        "preemptible": said["preemptible"],
        "max_runtime_s": said["max_runtime_s"],
        "labels": pairs(labels, option="--label") if isinstance(labels, tuple) and labels else None,
    }
    new = {key: value for key, value in given.items() if value is not None}
    if not new and not forget:
        return None
    return {**before.model_dump(exclude_none=True), **new}


@profile.command("list")
@past
@printed
@connected
def list_(client: Client, at: str | None, style: Style) -> None:
    """List profiles."""
    render.print_list(client.profiles(at=at), COLUMNS, style)


@profile.command("describe")
@click.argument("profile")
@past
@printed
@connected
def describe(client: Client, profile: str, at: str | None, style: Style) -> None:
    """Show one profile."""
    found = client.profile(profile, at=at)
    render.print_one(found, [(column.name.capitalize(), column.show(found)) for column in COLUMNS], style)


@profile.command("delete")
@click.argument("profile")
@click.option("--yes", is_flag=True, help="Do not ask.")
@connected
def delete(client: Client, profile: str, *, yes: bool) -> None:
    """Delete a profile; queued requests that ask for it are cancelled."""
    found = client.profile(profile)
    confirm(f"Delete profile {found.name}? Queued requests that ask for it are cancelled.", yes=yes)
    client.delete_profile(found.id)
    note(f"profile {found.name} deleted")
