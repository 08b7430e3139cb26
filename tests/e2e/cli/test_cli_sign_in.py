"""`fairpool login`, `logout` and `whoami` as people type them, with a browser that signs in by itself."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cli.conftest import Machine
from tests.oidc.installation import Installation, installed, said_to_server
from tests.oidc.processes import CLIENT_SECRET, ROOT, obedient_provider
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A server with a team, and a provider."""
    with obedient_provider() as provider, installed(tmp_path_factory.mktemp("server"), provider) as found:
        found.owner.ok("POST", "/teams", {"name": "vision"})
        provider.user("ada", groups=["vision"])
        yield found


@pytest.fixture
def laptop(tmp_path: Path, installation: Installation) -> Iterator[Machine]:
    """A person's machine, elsewhere."""
    installation.provider.wrong()
    made = Machine(tmp_path)
    made.environment |= {"PYTHONPATH": str(ROOT), "FAIRPOOL_SERVER": installation.owner.url}
    yield made
    made.close()


def browser(user: str, answer: str = "yes") -> dict[str, str]:
    return {"BROWSER": f"{sys.executable} -m tests.oidc.robot {user} {answer} %s"}


def credentials(machine: Machine) -> Path:
    return machine.folder / "config" / "fairpool" / "credentials.json"


def test_login_in_the_browser_then_whoami_then_logout(laptop: Machine, installation: Installation) -> None:
    assert laptop("whoami").code == 4
    done = laptop("login", "--name", "my-laptop", **browser("ada"))
    assert done.code == 0, done.err
    assert done.out == ""
    assert f"signed in at {installation.owner.url}: user:ada, role member, teams vision" in done.err
    assert stat.S_IMODE(credentials(laptop).stat().st_mode) == 0o600
    (kept,) = json.loads(credentials(laptop).read_text())["servers"][installation.owner.url].values()
    assert kept["token"] not in done.err
    who = laptop.json("whoami")
    assert (who["subject"], who["teams"], who["token_name"]) == ("user:ada", ["vision"], "my-laptop")
    assert laptop("pool", "list").code == 0
    assert re.search(rf"token +… +{credentials(laptop)}", laptop.ok("context", "list"))
    assert "signed out" in laptop("logout").err
    assert kept["token"] not in credentials(laptop).read_text()
    assert laptop("whoami").code == 4
    assert laptop("whoami", FAIRPOOL_TOKEN=kept["token"]).code == 4, "it is revoked too"
    assert "you were not signed in" in laptop("logout").err


def test_signing_in_again_revokes_the_token_before(laptop: Machine) -> None:
    tokens = []
    for _ in range(2):
        assert laptop("login", **browser("ada")).code == 0
        ((kept,),) = (server.values() for server in json.loads(credentials(laptop).read_text())["servers"].values())
        tokens.append(kept["token"])
    assert laptop("whoami", FAIRPOOL_TOKEN=tokens[0]).code == 4
    assert laptop("whoami").code == 0


def test_a_server_that_is_named_is_used_from_then_on(laptop: Machine, installation: Installation) -> None:
    url = installation.owner.url
    done = laptop("login", url + "/", **browser("ada"), FAIRPOOL_SERVER="")
    assert done.code == 0, done.err
    assert url in laptop.ok("whoami", FAIRPOOL_SERVER="")


def test_whoever_declines_in_the_browser_is_told_so(laptop: Machine) -> None:
    done = laptop("login", **browser("ada", "no"))
    assert done.code == 4
    assert "declined to sign in" in done.err
    assert "fairpool login begins again" in done.err
    assert not credentials(laptop).exists()


def test_without_a_browser_the_address_is_shown_with_another_way(laptop: Machine) -> None:
    laptop.environment = {k: v for k, v in laptop.environment.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    started = laptop.start("login", environment={"BROWSER": ""})
    assert started.stderr is not None
    lines = [started.stderr.readline() for _ in range(3)]
    assert "/api/v1/sign-in/begin?port=" in lines[1]
    assert "--device" in lines[2]


def test_login_with_a_code_from_another_device(laptop: Machine, installation: Installation) -> None:
    started = laptop.start("login", "--device", "--name", "node-7")
    shown, code = _shown(started)
    assert f"open {installation.provider.url}/device" in shown
    polled = len(_polls(installation))
    wait_until(lambda: len(_polls(installation)) > polled, what="the terminal to ask whether somebody has come")
    installation.provider.enter(code, "ada")
    _, told = started.communicate(timeout=90)
    assert started.returncode == 0, told
    assert "signed in at" in told and "token node-7" in told


def _shown(started: subprocess.Popen[str]) -> tuple[str, str]:
    """All that a terminal shows before it waits, and the code in it."""
    assert started.stderr is not None
    shown = ""
    while "never enter a code that somebody sent you" not in shown:
        line = started.stderr.readline()
        assert line, shown
        shown += line
    code = re.search(r"^    ([A-Z]{4}-[A-Z]{4})$", shown, re.MULTILINE)
    assert code is not None, shown
    return shown, code[1]


def _polls(installation: Installation) -> list[str]:
    return [path for path in installation.provider.calls() if path == "/token"]


@pytest.mark.parametrize(("wrong", "told"), [("no", "declined"), ("over", "time to sign in is over")])
def test_a_code_that_leads_nowhere_is_told_in_words(
    laptop: Machine, installation: Installation, wrong: str, told: str
) -> None:
    started = laptop.start("login", "--device")
    _, code = _shown(started)
    if wrong == "no":
        installation.provider.enter(code, "ada", answer="no")
    else:
        installation.provider.expire()
    assert told in started.communicate(timeout=90)[1]
    assert started.returncode == 4


def test_login_with_a_token_checks_it_before_it_is_kept(laptop: Machine, installation: Installation) -> None:
    wrong = laptop("login", "--token", stdin="fp_wrong\n")
    assert wrong.code == 4
    assert not credentials(laptop).exists()
    installation.owner.ok("POST", "/service-accounts", {"name": "ci"})
    made = installation.owner.ok("POST", "/tokens", {"name": "runner", "owner": "service-account:ci"})
    done = laptop("login", "--token", stdin=made["token"] + "\n")
    assert done.code == 0, done.err
    assert "service-account:ci" in done.err
    assert laptop.json("whoami")["subject"] == "service-account:ci"


def test_a_provider_that_is_down_is_named_and_nothing_is_kept(laptop: Machine, tmp_path: Path) -> None:
    with obedient_provider() as gone:
        pass
    with installed(tmp_path / "other", gone, is_up=False) as found:
        done = laptop("login", found.owner.url)
        assert done.code == 8
        assert "the identity provider cannot be used: it cannot be reached" in done.err
        assert "fairpool login --token" in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["login", "--device", "--token"], "different ways"),
        (["login", "ftp://x"], "is no address"),
        (["login", "local"], "knows you already"),
        (["login", "--token"], "found no token"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(laptop: Machine, words: list[str], told: str) -> None:
    done = laptop(*words)
    assert done.code == 2
    assert told in done.err


def test_the_local_server_needs_no_sign_in(laptop: Machine) -> None:
    done = laptop("login", FAIRPOOL_SERVER="")
    assert done.code == 2
    assert "knows you already" in done.err


def test_the_doctor_says_whether_the_provider_answers_and_what_it_has_to_know(
    laptop: Machine, installation: Installation
) -> None:
    issuer = installation.provider.url
    said = said_to_server(issuer, 8470)
    found = laptop("doctor", **said).out
    assert f"sign-in: {issuer} answers (browser and device)" in found
    assert "it has to know http://127.0.0.1:8470/login/callback" in found
    assert CLIENT_SECRET not in found
    wrong = laptop("doctor", **{**said, "FAIRPOOL_OIDC_ISSUER": issuer + "/"})
    assert wrong.code == 1
    assert "speaks for issuer" in wrong.out
    assert "FAIRPOOL_OIDC_CLIENT_ID" in laptop("doctor", FAIRPOOL_OIDC_ISSUER=issuer).out


def test_a_team_is_bound_to_a_group_and_let_go_again(laptop: Machine, installation: Installation) -> None:
    owner = {"FAIRPOOL_TOKEN": installation.owner.token}
    assert "team speech created" in laptop.ok("team", "create", "speech", "--group", "ml-speech", **owner)
    assert "ml-speech" in laptop.ok("team", "list", "-o", "wide", **owner)
    installation.provider.user("finn", groups=["ml-speech"])
    assert "teams speech" in laptop("login", **browser("finn")).err
    laptop.ok("team", "update", "speech", "--group", "", **owner)
    assert "ml-speech" not in laptop.ok("team", "list", "-o", "wide", **owner)
    both = laptop("team", "create", "x", "--group", "g", "--member", "finn", **owner)
    assert both.code == 2
    assert "beside members" in both.err
