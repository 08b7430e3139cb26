"""Settings of sign-in: from the environment or the table, and refused by name where they cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairpool.app.authz import Role
from fairpool.bootstrap import oidc_settings
from fairpool.bootstrap.settings import WrongSetting
from fairpool.server.oidc.settings import ALGORITHMS, OidcSettings

NEEDED = {
    "FAIRPOOL_OIDC_ISSUER": "https://id.example.org",
    "FAIRPOOL_OIDC_CLIENT_ID": "fairpool",
    "FAIRPOOL_OIDC_PUBLIC_URL": "https://gpus.example.org/",
}


def load(tmp_path: Path, text: str = "", **said: str) -> OidcSettings | None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return oidc_settings.load({"FAIRPOOL_CONFIG": str(path), **said})


def loaded(tmp_path: Path, text: str = "", **said: str) -> OidcSettings:
    found = load(tmp_path, text, **said)
    assert found is not None
    return found


def test_without_a_word_about_it_nobody_signs_in_at_a_provider(tmp_path: Path) -> None:
    assert load(tmp_path, "[server]\nport = 1\n") is None
    assert oidc_settings.load({"FAIRPOOL_CONFIG": str(tmp_path / "missing")}) is None


def test_the_environment_alone_is_enough(tmp_path: Path) -> None:
    found = loaded(tmp_path, **NEEDED)
    assert found.issuer == "https://id.example.org"
    assert found.redirect_uri == "https://gpus.example.org/login/callback"
    assert (found.client_secret, found.workspace, found.token_s) == ("", "default", 12 * 3600)
    assert found.scopes == ("openid", "profile", "email")


def test_the_table_says_everything_and_the_environment_goes_first(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    text = f"""
[oidc]
issuer = "https://id.example.org/realms/x"
client_id = "from the file"
client_secret_file = "{tmp_path}/secret"
public_url = "https://gpus.example.org"
scopes = ["openid", "groups"]
groups_claim = "realm_access.roles"
username_claim = "email"
allowed_groups = ["staff", "ml"]
default_role = "viewer"
workspace = "research"
token_hours = 8

[oidc.teams]
"ml-vision" = "vision"

[oidc.roles]
"platform" = "operator"
"""
    found = loaded(tmp_path, text, FAIRPOOL_OIDC_CLIENT_ID="from the environment")
    assert found.client_id == "from the environment"
    assert found.client_secret == "s3cret"
    assert found.scopes == ("openid", "groups")
    assert (found.workspace, found.token_s) == ("research", 8 * 3600)
    rules = found.rules
    assert (rules.groups_claim, rules.username_claim, rules.default_role) == (
        "realm_access.roles",
        "email",
        Role.VIEWER,
    )
    assert rules.allowed_groups == {"staff", "ml"}
    assert (dict(rules.teams), dict(rules.roles)) == ({"ml-vision": "vision"}, {"platform": Role.OPERATOR})


def test_lists_and_tables_can_be_said_in_the_environment(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        **NEEDED,
        FAIRPOOL_OIDC_SCOPES="openid groups",
        FAIRPOOL_OIDC_ALLOWED_GROUPS="staff, ml",
        FAIRPOOL_OIDC_TEAMS="ml-vision=vision, /a=b=c",
        FAIRPOOL_OIDC_ROLES="platform=admin",
    )
    assert found.scopes == ("openid", "groups")
    assert found.rules.allowed_groups == {"staff", "ml"}
    assert dict(found.rules.teams) == {"ml-vision": "vision", "/a=b": "c"}
    assert dict(found.rules.roles) == {"platform": Role.ADMIN}


def test_a_secret_shows_in_no_repr(tmp_path: Path) -> None:
    assert "s3cret" not in repr(loaded(tmp_path, **NEEDED, FAIRPOOL_OIDC_CLIENT_SECRET="s3cret"))


def test_tokens_signed_with_nothing_or_with_a_shared_secret_are_not_on_the_list() -> None:
    assert "none" not in ALGORITHMS and not any(name.startswith("HS") for name in ALGORITHMS)


@pytest.mark.parametrize(
    ("text", "said", "told"),
    [
        ("[oidc]\nisuer = 'x'", {}, "unknown setting 'isuer'.*did you mean 'issuer'"),
        ("oidc = 'x'", {}, "possible: a table"),
        ("[oidc]\nclient_id = 'x'", {}, "issuer .*missing"),
        ("", {"FAIRPOOL_OIDC_ISSUER": "https://id.example.org"}, "client_id .*missing"),
        ("", {**NEEDED, "FAIRPOOL_OIDC_ISSUER": "http://id.example.org"}, "FAIRPOOL_OIDC_ISSUER.*https"),
        ("", {**NEEDED, "FAIRPOOL_OIDC_PUBLIC_URL": "gpus"}, "public_url"),
        ("", {**NEEDED, "FAIRPOOL_OIDC_SCOPES": "profile"}, "'openid'"),
        ("", {**NEEDED, "FAIRPOOL_OIDC_ROLES": "a=boss"}, "'boss' is no role; possible: admin"),
        ("", {**NEEDED, "FAIRPOOL_OIDC_ROLES": "boss"}, "roles"),
        ("", {**NEEDED, "FAIRPOOL_OIDC_DEFAULT_ROLE": "boss"}, "possible: admin"),
        ("", {**NEEDED, "FAIRPOOL_OIDC_TEAMS": "a=b c"}, "team name 'b c'"),
        ("", {**NEEDED, "FAIRPOOL_OIDC_TEAMS": "vision"}, "GROUP=VALUE"),
        ("[oidc]\nteams = 7", NEEDED, "a table is"),
        ("[oidc]\nallowed_groups = [7]", NEEDED, "a list of texts is"),
        ("[oidc]\nclient_id = 7", {"FAIRPOOL_OIDC_ISSUER": "https://id.example.org"}, "client_id"),
        ("", {**NEEDED, "FAIRPOOL_OIDC_TOKEN_HOURS": "0"}, "token_hours.*0.01 to 720"),
        ("", {**NEEDED, "FAIRPOOL_OIDC_WORKSPACE": "a b"}, "workspace"),
        ("", {**NEEDED, "FAIRPOOL_OIDC_CLIENT_SECRET_FILE": "/nowhere/at/all"}, "cannot be read"),
        (
            "",
            {**NEEDED, "FAIRPOOL_OIDC_CLIENT_SECRET_FILE": "/dev/null", "FAIRPOOL_OIDC_CLIENT_SECRET": "x"},
            "one of them",
        ),
        ("", {**NEEDED, "FAIRPOOL_OIDC_CLIENT_SECRET_FILE": "/dev/null"}, "is empty"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tmp_path: Path, text: str, said: dict[str, str], told: str) -> None:
    with pytest.raises(WrongSetting, match=told):
        load(tmp_path, text, **said)
