"""Glewlwyd as a process: a provider that companies run, with pages of its own for consent and for a terminal's code.

It is Debian's, set up as its administrator would, through its own calls, in a temporary folder.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from string import Template
from typing import Any

import httpx2
from joserfc.jwk import RSAKey

from tests.oidc.processes import CLIENT_ID, CLIENT_SECRET
from tests.waiting import wait_until

SHARE = Path("/usr/share")
SCHEMA = SHARE / "dbconfig-common/data/glewlwyd/install/sqlite3"
PAGES = SHARE / "glewlwyd"
ADMINISTRATOR = {"username": "admin", "password": "password"}  # of a new installation, as its handbook says
PASSWORD = "correct horse battery staple"
SCOPES = ("openid", "profile", "email")

CONFIGURATION = Template("""
port = $port
bind_address = "127.0.0.1"
external_url = "http://127.0.0.1:$port"
login_url = "login.html"
api_prefix = "api"
log_mode = "file"
log_level = "WARNING"
log_file = "$folder/log"
cookie_secure = false
session_expiration = 3600
session_key = "GLEWLWYD2_SESSION_ID"
admin_scope = "g_admin"
profile_scope = "g_profile"
user_module_path = "/usr/lib/glewlwyd/user"
client_module_path = "/usr/lib/glewlwyd/client"
user_auth_scheme_module_path = "/usr/lib/glewlwyd/scheme"
plugin_module_path = "/usr/lib/glewlwyd/plugin"
hash_algorithm = "SHA512"
static_files_path = "$folder/pages"
static_files_mime_types = (
  { extension = ".html" mime_type = "text/html" },
  { extension = ".css" mime_type = "text/css" },
  { extension = ".js" mime_type = "application/javascript" },
  { extension = ".json" mime_type = "application/json" }
)
database = { type = "sqlite3" path = "$folder/database" }
""")


class NoGlewlwyd(RuntimeError):
    """The program is not on this machine. The message says what to do."""


class Glewlwyd:
    """A running one. url: its address. issuer: how its tokens name it."""

    def __init__(self, port: int, database: Path) -> None:
        self._database = database
        self.url = f"http://127.0.0.1:{port}"
        self.issuer = f"{self.url}/api/oidc"
        self._http = httpx2.Client(base_url=f"{self.url}/api", trust_env=False)

    def answers(self) -> bool:
        """Whether it listens by now."""
        try:
            return self._http.get("/").status_code == 404
        except httpx2.TransportError:
            return False

    def set_up(self, redirect_uri: str) -> None:
        """The protocol, and the server that people want to sign in at."""
        self._post("/auth/", **ADMINISTRATOR)
        self._post("/mod/plugin/", module="oidc", name="oidc", enabled=True, parameters=_protocol(self.issuer))
        for scope in SCOPES[1:]:
            self._post("/scope/", name=scope, display_name=scope, password_required=True, scheme={})
        self._post(
            "/client/",
            client_id=CLIENT_ID,
            name="Fairpool",
            client_secret=CLIENT_SECRET,
            confidential=True,
            enabled=True,
            authorization_type=["code", "device_authorization"],
            redirect_uri=[redirect_uri],
            token_endpoint_auth_method=["client_secret_basic"],
        )

    def user(self, login: str, name: str, *groups: str) -> None:
        """Somebody who may sign in with `PASSWORD`."""
        said = {"username": login, "name": name, "email": f"{login}@example.org", "groups": list(groups)}
        self._post("/user/", password=PASSWORD, scope=list(SCOPES), enabled=True, **said)

    def expire_codes(self) -> None:
        """The time of every code that a terminal shows is over."""
        self._change("UPDATE gpo_device_authorization SET gpoda_expires_at = 1")

    def withdraw_codes(self) -> None:
        """It knows of no code any more that a terminal shows."""
        self._change("DELETE FROM gpo_device_authorization")

    def close(self) -> None:
        """Close the connections to it."""
        self._http.close()

    def _change(self, statement: str) -> None:
        with closing(sqlite3.connect(self._database)) as database, database:
            assert database.execute(statement).rowcount > 0

    def _post(self, path: str, **said: Any) -> None:
        answer = self._http.post(path, json=said)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)


@contextmanager
def glewlwyd(port: int, redirect_uri: str) -> Iterator[Glewlwyd]:
    """One on that port for the block, which knows this server by that address."""
    program = shutil.which("glewlwyd")
    if program is None:
        raise NoGlewlwyd("these tests need glewlwyd, which is not on the PATH; `make programs` installs Debian's")
    with tempfile.TemporaryDirectory(prefix="fairpool-glewlwyd-") as name:
        folder = Path(name)
        _prepare(folder, port)
        process = subprocess.Popen([program, "--config-file", str(folder / "configuration")], cwd=folder)
        found = Glewlwyd(port, folder / "database")
        try:
            wait_until(lambda: found.answers() or process.poll() is not None, what="Glewlwyd to listen")
            assert process.poll() is None, (folder / "log").read_text("utf-8")
            found.set_up(redirect_uri)
            yield found
        finally:
            found.close()
            process.kill()
            process.wait()


def _prepare(folder: Path, port: int) -> None:
    """Its database, with a list of groups for each user, its pages and its configuration."""
    groups = '{"multiple": true, "read": true, "write": true}'
    fields = "json_set(gumi_parameters, '$.data-format.groups', json(?))"
    with closing(sqlite3.connect(folder / "database")) as database, database:
        database.executescript(SCHEMA.read_text("utf-8"))
        database.execute(f"UPDATE g_user_module_instance SET gumi_parameters = {fields}", [groups])
    shutil.copytree(PAGES / "webapp", folder / "pages", ignore=shutil.ignore_patterns("config.json"))
    shutil.copy(PAGES / "templates" / "config.json", folder / "pages")
    (folder / "configuration").write_text(CONFIGURATION.substitute(port=port, folder=folder), "utf-8")


def _protocol(issuer: str) -> Mapping[str, Any]:
    key = RSAKey.generate_key(2048)
    always = {"type": "string", "mandatory": True, "on-demand": False, "scope": []}
    flows = ("client", "token", "implicit", "password", "none", "refresh", "id-token")
    return {
        "iss": issuer,
        "jwt-type": "rsa",
        "jwt-key-size": "256",
        "key": key.as_pem(private=True).decode(),
        "cert": key.as_pem(private=False).decode(),
        "code-duration": 60,
        "access-token-duration": 300,
        "refresh-token-duration": 300,
        "allow-non-oidc": False,
        **{f"auth-type-{flow}-enabled": False for flow in flows},
        "auth-type-code-enabled": True,
        "auth-type-device-enabled": True,
        "device-authorization-expiration": 600,
        "device-authorization-interval": 1,
        "pkce-allowed": True,
        "pkce-required": True,
        "pkce-method-plain-allowed": False,
        "oauth-iss-in-response": True,
        "subject-type": "public",
        "name-claim": "mandatory",
        "email-claim": "mandatory",
        "claims": [
            {"name": "preferred_username", "user-property": "username", **always},
            {"name": "groups", "user-property": "groups", **always},
        ],
    }
