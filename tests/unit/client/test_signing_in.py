"""The client's side of a sign-in: one answer to one listener, and polls as often as the provider wants."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
import urllib3

from fairpool.client import signing_in
from fairpool.client.api import Client
from fairpool.client.loopback import Loopback, listening
from fairpool.client.signing_in import NotSignedIn, challenge_of
from fairpool.wire.signin import DevicePolled, DeviceView, SignedIn, SignInExchange, SignInOptions

DONE = SignedIn(token="fp_new", subject="user:ada", role="member", workspace="default")
BEGUN = DeviceView(verification_uri="https://id/device", user_code="AB-CD", handle="h", expires_in_s=60, interval_s=5)


class Server:
    """The calls that a sign-in makes, answered from a list."""

    def __init__(self, *polls: str) -> None:
        self.polls = list(polls)
        self.exchanged: list[SignInExchange] = []
        self.challenge = ""

    def begin_device(self, body: Any) -> DeviceView:
        self.challenge = body.challenge
        return BEGUN

    def poll_device(self, body: Any) -> DevicePolled:
        assert body.handle == "h"
        status = self.polls.pop(0)
        return DevicePolled(status=cast("Any", status), code="c" if status == "done" else "")

    def exchange_sign_in(self, body: SignInExchange) -> SignedIn:
        self.exchanged.append(body)
        return DONE


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def on_another_device(server: Server, clock: Clock) -> SignedIn:
    return signing_in.on_another_device(
        cast("Client", server), name="laptop", show=lambda begun: None, sleep=clock.sleep, now_s=lambda: clock.now
    )


# ---- device ----------------------------------------------------------------------------------------------------------


def test_it_polls_as_often_as_it_is_told_and_less_often_when_asked() -> None:
    server, clock = Server("pending", "slower", "pending", "slower", "done"), Clock()
    assert on_another_device(server, clock) == DONE
    assert clock.slept == [5, 5, 10, 10, 15]
    (exchanged,) = server.exchanged
    assert (exchanged.code, exchanged.name) == ("c", "laptop")
    assert challenge_of(exchanged.verifier) == server.challenge


def test_it_gives_up_when_the_code_is_over() -> None:
    clock = Clock()
    with pytest.raises(NotSignedIn, match="not entered in time"):
        on_another_device(Server(*["pending"] * 100), clock)
    assert clock.now == 60


# ---- browser ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    """A listener."""
    with listening() as found:
        yield found


def calls(loopback: Loopback, *targets: str) -> list[tuple[int, str]]:
    """What the listener answers to these, one after the other."""
    answers: list[tuple[int, str]] = []

    def call() -> None:
        for target in targets:
            answer = urllib3.request("GET", f"http://127.0.0.1:{loopback.port}{target}", retries=False)
            answers.append((answer.status, answer.data.decode()))
            assert answer.headers["Cache-Control"] == "no-store"

    caller = threading.Thread(target=call)
    caller.start()
    loopback.wait(20)
    caller.join()
    return answers


def test_only_the_answer_to_its_own_sign_in_is_heard(loopback: Loopback) -> None:
    wrong = ["/favicon.ico", "/?code=stolen", "/?code=stolen&state=guessed", f"/other?code=x&state={loopback.state}"]
    answers = calls(loopback, *wrong, f"/?code=mine&state={loopback.state}")
    assert [status for status, _ in answers] == [404, 404, 404, 404, 200]
    assert loopback.answer is not None and loopback.answer.code == "mine"
    assert "mine" not in answers[-1][1]


def test_the_first_answer_counts(loopback: Loopback) -> None:
    loopback.hear(f"/?code=first&state={loopback.state}")
    loopback.hear(f"/?code=second&state={loopback.state}")
    assert loopback.answer is not None and loopback.answer.code == "first"


def test_a_refusal_is_shown_as_text_and_never_as_a_page_of_the_sender(loopback: Loopback) -> None:
    target = f"/?error=access_denied&error_description=%3Cscript%3Ealert(1)%3C/script%3E&state={loopback.state}"
    ((status, page),) = calls(loopback, target)
    assert status == 200
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_nobody_who_comes_is_not_waited_for_for_ever(loopback: Loopback) -> None:
    assert loopback.wait(0.01) is None


def test_it_listens_on_this_machine_only(loopback: Loopback) -> None:
    assert loopback._server.server_address[0] == "127.0.0.1"


def test_a_browser_that_brings_a_code_ends_in_a_token() -> None:
    server, shown = Server(), []

    def browse(url: str) -> None:
        shown.append(url)
        said = dict(part.split("=") for part in url.partition("?")[2].split("&"))
        target = f"http://127.0.0.1:{said['port']}/?code=c&state={said['state']}"
        threading.Thread(target=lambda: urllib3.request("GET", target, retries=False)).start()

    options = SignInOptions(browser_url="https://gpus/api/v1/sign-in/begin")
    done = signing_in.in_browser(cast("Client", server), options, name="laptop", show=browse)
    assert done == DONE
    assert shown[0].startswith("https://gpus/api/v1/sign-in/begin?port=")
    assert challenge_of(server.exchanged[0].verifier) in shown[0]


def test_a_browser_that_brings_a_refusal_ends_with_its_words() -> None:
    def browse(url: str) -> None:
        said = dict(part.split("=") for part in url.partition("?")[2].split("&"))
        target = f"http://127.0.0.1:{said['port']}/?error=access_denied&error_description=no+way&state={said['state']}"
        threading.Thread(target=lambda: urllib3.request("GET", target, retries=False)).start()

    with pytest.raises(NotSignedIn, match="not signed in: no way"):
        signing_in.in_browser(cast("Client", Server()), SignInOptions(browser_url="https://x"), name="", show=browse)


def test_the_name_of_a_machine_may_name_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for host, name in (("laptop", "laptop"), ("MacBook-Pro.local", "MacBook-Pro-local"), ("_ß_", "computer")):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        assert signing_in.machine_name() == name
