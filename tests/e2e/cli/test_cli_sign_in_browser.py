"""`fairpool login` with a real browser at real providers: their forms, their consent, and the pages that we show."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.browser import Browser, browser
from tests.e2e.cli.conftest import Machine
from tests.integration.serving import Caller
from tests.oidc.glewlwyd import PASSWORD, Glewlwyd, glewlwyd
from tests.oidc.installation import comes_back_to, free_port, signing_people_in
from tests.oidc.real_provider import PASSWORD as CANAILLES
from tests.oidc.real_provider import USER, canaille

GROUPS = {"teams": "ml-vision=vision", "roles": "platform=operator", "allowed_groups": "ml-vision,platform"}
"""What the administrator says of the provider's groups."""


@dataclass(frozen=True)
class Office:
    """A server, the provider that its people sign in at, and a browser."""

    owner: Caller
    provider: Glewlwyd
    browser: Browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser."""
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[Office]:
    """A server whose team vision is the provider's group ml-vision."""
    with ExitStack() as stack:
        port = free_port()
        provider = stack.enter_context(glewlwyd(free_port(), comes_back_to(port)))
        folder = tmp_path_factory.mktemp("server")
        owner = stack.enter_context(signing_people_in(folder, provider.issuer, port, **GROUPS))
        for team in ("vision", "speech"):
            owner.ok("POST", "/teams", {"name": team})
        yield Office(owner, provider, chromium)


@pytest.fixture
def laptop(tmp_path: Path, office: Office) -> Iterator[Machine]:
    """A person's machine, on which no program opens a browser by itself, and the provider knows nobody yet."""
    office.browser.forget()
    made = Machine(tmp_path)
    made.environment["FAIRPOOL_SERVER"] = office.owner.url
    yield made
    made.close()


def told(started: subprocess.Popen[str], pattern: str) -> str:
    """What a command that waits says up to a line of that pattern; the first group in it."""
    assert started.stderr is not None
    for line in started.stderr:
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError(f"{pattern} was never said")


def ended(started: subprocess.Popen[str], code: int) -> str:
    """What a command says until it ends, with that code."""
    _, said = started.communicate(timeout=90)
    assert started.returncode == code, said
    return said


def signs_in(opened: Browser, user: str) -> None:
    """What a person does at Glewlwyd: name and password, consent, and on."""
    opened.type("#username", user)
    opened.type("#password", PASSWORD)
    opened.press("#loginbut")
    opened.press("button", "Grant access")
    opened.press("button", "Continue")


def looks_well(opened: Browser) -> None:
    """The page is drawn as it is meant, in light and in dark, and the browser has nothing to complain of."""
    shades = []
    for scheme in ("light", "dark"):
        opened.prefers(scheme)
        shades.append((opened.style("main", "background-color"), opened.style("main", "color")))
    opened.prefers("light")
    assert shades[0] != shades[1]
    assert opened.style("h1", "display") == "flex", "its style is in force"
    assert opened.complaints() == []


def test_somebody_signs_in_at_the_providers_pages_and_sees_who_they_are_in_browser_and_terminal(
    office: Office, laptop: Machine
) -> None:
    office.provider.user("ada", "Ada Lovelace", "ml-vision", "staff")
    started = laptop.start("login", "--no-browser", "--name", "laptop")
    office.browser.open(told(started, r"(http://\S+)"))
    signs_in(office.browser, "ada")
    office.browser.sees("h1", "You are signed in")
    for name in (office.owner.url, "user:ada", "member", "vision", "default"):
        office.browser.sees("dd", name)
    looks_well(office.browser)
    assert "user:ada, role member, teams vision" in ended(started, 0)
    who = laptop.json("whoami")
    assert (who["subject"], who["role"], who["teams"]) == ("user:ada", "member", ["vision"])
    user = office.owner.ok("GET", "/users/ada")
    assert (user["display_name"], user["email"]) == ("Ada Lovelace", "ada@example.org")


def test_a_code_from_a_terminal_is_typed_into_the_providers_page_and_the_terminal_goes_on(
    office: Office, laptop: Machine
) -> None:
    office.provider.user("grace", "Grace Hopper", "ml-vision", "platform")
    started = laptop.start("login", "--device", "--name", "node-7")
    office.browser.open(told(started, r"open (\S+) on any device"))
    office.browser.type("input", told(started, r"^    (\S+)$"))
    office.browser.press("button", "OK")
    signs_in(office.browser, "grace")
    office.browser.sees("body", "Authorization complete")
    said = ended(started, 0)
    assert "user:grace, role operator, teams vision" in said and "token node-7" in said


def test_a_code_of_somebody_who_may_not_come_in_is_refused_in_the_terminal(office: Office, laptop: Machine) -> None:
    office.provider.user("eve", "Eve", "visitors")
    started = laptop.start("login", "--device")
    office.browser.open(told(started, r"or open (\S+)"))
    signs_in(office.browser, "eve")
    said = ended(started, 4)
    assert "only members of 'ml-vision', 'platform' may sign in here" in said and "'visitors'" in said
    assert not (laptop.folder / "config" / "fairpool" / "credentials.json").exists()


@pytest.mark.parametrize(
    ("ends", "words"), [("expire", "time to sign in is over"), ("withdraw", "declined to sign in")]
)
def test_a_code_that_the_provider_takes_back_ends_the_wait(
    office: Office, laptop: Machine, ends: str, words: str
) -> None:
    started = laptop.start("login", "--device")
    assert told(started, r"open (\S+) on any device").startswith(office.provider.issuer)
    getattr(office.provider, f"{ends}_codes")()
    said = ended(started, 4)
    assert words in said and "fairpool login begins again" in said


@pytest.mark.timeout(400)  # the provider's environment may have to be made first
def test_whoever_declines_at_the_providers_page_is_told_so_in_browser_and_terminal(
    tmp_path: Path, chromium: Browser
) -> None:
    port = free_port()
    laptop = Machine(tmp_path / "laptop")
    laptop.folder.mkdir()
    with (
        canaille(free_port(), comes_back_to(port)) as issuer,
        signing_people_in(tmp_path / "server", issuer, port, scopes="openid profile email groups") as owner,
    ):
        started = laptop.start("login", owner.url, "--no-browser")
        chromium.open(told(started, r"(http://\S+)"))
        for field, text in (("login", USER), ("password", CANAILLES)):
            chromium.type(f"input[name={field}]", text)
            chromium.press("form button[type=submit]")
        chromium.press("#deny")
        chromium.sees("h1", "You are not signed in")
        chromium.sees("p", "declined to sign in")
        chromium.sees("code", "fairpool login")
        looks_well(chromium)
        assert "declined to sign in" in ended(started, 4)
        chromium.open(f"{comes_back_to(port)}?state=of-nobody&code=x")
        chromium.sees("p", "The state of this sign-in is not one that this server gave out.")
        looks_well(chromium)
    laptop.close()
