"""The client's side of a sign-in: one answer to one listener, and polls as often as the provider wants."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
import urllib3

from fairpool.client import signing_in
from fairpool.client.api import Client
from fairpool.client.errors import ClientError
from fairpool.client.loopback import Loopback, listening
from fairpool.client.signing_in import NotSignedIn, challenge_of
from fairpool.wire.signin import DevicePolled, DeviceView, SignedIn, SignInExchange, SignInOptions

DONE = SignedIn(token="fp_new", subject="user:ada", role="member", workspace="default")
BEGUN = DeviceView(verification_uri="https://id/device", user_code="AB-CD", handle="h", expires_in_s=60, interval_s=5)


class Server:
    """The calls that a sign-in makes, answered from a list."""

    url = "https://gpus"

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
    """A listener that shows which code came."""
    with listening(lambda answer: f"came: {answer.code}") as found:
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
    assert answers[-1][1] == "came: mine"


def test_the_first_answer_counts(loopback: Loopback) -> None:
    assert loopback.hear(f"/?code=first&state={loopback.state}") is not None
    assert loopback.hear(f"/?code=second&state={loopback.state}") is None
    assert loopback.answer is not None and loopback.answer.code == "first"


def test_nobody_who_comes_is_not_waited_for_for_ever(loopback: Loopback) -> None:
    assert loopback.wait(0.01) is False


def test_whoever_calls_and_goes_away_leaves_no_trace_on_the_terminal(
    loopback: Loopback, capfd: pytest.CaptureFixture[str]
) -> None:
    at_once = struct.pack("ii", 1, 0)  # a connection that is cut off, not ended

    def call() -> None:
        with socket.create_connection(("127.0.0.1", loopback.port)) as rude:
            rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            rude.sendall(b"GET / HTTP/1.1\r\n")
        urllib3.request("GET", f"http://127.0.0.1:{loopback.port}/?code=c&state={loopback.state}", retries=False)

    caller = threading.Thread(target=call)
    caller.start()
    assert loopback.wait(20)
    caller.join()
    assert capfd.readouterr() == ("", "")


def test_it_listens_on_this_machine_only(loopback: Loopback) -> None:
    assert loopback._server.server_address[0] == "127.0.0.1"


class Visit:
    """A browser that goes where it is sent, brings that to the listener, and keeps the page that it sees there."""

    def __init__(self, brings: str) -> None:
        self.begun = self.page = ""
        self._brings = brings
        self._thread = threading.Thread(target=self._go)

    def __call__(self, url: str) -> None:
        self.begun = url
        self._thread.start()

    def _go(self) -> None:
        said = dict(part.split("=") for part in self.begun.partition("?")[2].split("&"))
        target = f"http://127.0.0.1:{said['port']}/?{self._brings}&state={said['state']}"
        answer = urllib3.request("GET", target, retries=False)
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.status == 200
        self.page = answer.data.decode()

    def sees(self) -> str:
        self._thread.join()
        return self.page


def in_browser(server: Server, visit: Visit) -> SignedIn:
    options = SignInOptions(browser_url="https://gpus/api/v1/sign-in/begin")
    return signing_in.in_browser(cast("Client", server), options, name="laptop", show=visit)


def test_a_browser_that_brings_a_code_ends_in_a_token_and_sees_who_it_is_for() -> None:
    server, visit = Server(), Visit("code=c")
    assert in_browser(server, visit) == DONE
    assert visit.begun.startswith("https://gpus/api/v1/sign-in/begin?port=")
    assert challenge_of(server.exchanged[0].verifier) in visit.begun
    page = visit.sees()
    for told in ("You are signed in", "https://gpus<", "user:ada", "member", "default"):
        assert told in page
    assert DONE.token not in page


def test_a_browser_that_brings_a_refusal_ends_with_its_words() -> None:
    visit = Visit("error=access_denied&error_description=no+way")
    with pytest.raises(NotSignedIn, match="no way"):
        in_browser(Server(), visit)
    assert "You are not signed in" in visit.sees() and "<p>No way.</p>" in visit.page
    assert "<code>fairpool login</code> begins again" in visit.page


def test_a_refusal_is_shown_as_text_and_never_as_a_page_of_the_sender() -> None:
    visit = Visit("error=access_denied&error_description=%3Cscript%3Ealert(1)%3C/script%3E")
    with pytest.raises(NotSignedIn):
        in_browser(Server(), visit)
    assert "<script>" not in visit.sees() and "&lt;script&gt;" in visit.page


def test_a_browser_is_not_told_of_a_sign_in_when_the_server_then_refuses_the_code() -> None:
    class Refusing(Server):
        def exchange_sign_in(self, body: SignInExchange) -> SignedIn:
            raise ClientError("user 'ada' is somebody else", hint="ask an administrator")

    visit = Visit("code=c")
    with pytest.raises(ClientError, match="somebody else"):
        in_browser(Refusing(), visit)
    assert "You are not signed in" in visit.sees() and "<p>Ask an administrator.</p>" in visit.page
    assert "somebody else" in visit.page


def test_what_goes_wrong_here_is_not_hidden_and_the_browser_is_told_that_it_did() -> None:
    class Broken(Server):
        def exchange_sign_in(self, body: SignInExchange) -> SignedIn:
            raise ValueError("a bug")

    visit = Visit("code=c")
    with pytest.raises(ValueError, match="a bug"):
        in_browser(Broken(), visit)
    assert "The program that waited for you failed." in visit.sees() and "a bug" not in visit.page


def test_the_name_of_a_machine_may_name_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for host, name in (("laptop", "laptop"), ("MacBook-Pro.local", "MacBook-Pro-local"), ("_ß_", "computer")):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        assert signing_in.machine_name() == name
