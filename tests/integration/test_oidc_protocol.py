"""Against a provider process: a sign-in ends with the right person, and whatever is wrong with an answer ends it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit

import pytest

from fairpool.app.errors import NotAllowed
from fairpool.app.signin import Identity, SignInRules
from fairpool.server.oidc.errors import ProviderDown, SignInFailed
from fairpool.server.oidc.flows import CODE_S, Begun, Polled, SignIns, challenge_of
from fairpool.server.oidc.provider import Provider
from fairpool.server.oidc.settings import SIGN_IN_S, OidcSettings
from tests.oidc.processes import CLIENT_ID, CLIENT_SECRET, Browser, ObedientProvider, obedient_provider

Result = TypeVar("Result")

VERIFIER = secrets.token_urlsafe(48)
CHALLENGE = challenge_of(VERIFIER)


@pytest.fixture(scope="module")
def running() -> Iterator[ObedientProvider]:
    """One process for all tests of this module."""
    with obedient_provider() as provider:
        yield provider


@pytest.fixture
def provider(running: ObedientProvider) -> ObedientProvider:
    """The provider with nothing wrong, one client and one user."""
    running.wrong()
    running.client(settings(running).redirect_uri)
    running.user("ada", name="Ada Lovelace", email="ada@example.org", groups=["ml", "staff"])
    return running


def settings(provider: ObedientProvider) -> OidcSettings:
    return OidcSettings(
        issuer=provider.url,
        client_id=CLIENT_ID,
        client_secret=CLIENT_SECRET,
        public_url="http://127.0.0.1:8470",
    )


class Clock:
    """The time of day, as far ahead as the test says."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_s


class Visit:
    """One sign-in in a browser, up to the answer that the provider sends back through it."""

    def __init__(self, begun: Begun, *, user: str = "ada", answer: str = "yes") -> None:
        self.cookies = {begun.cookie: begun.binding}
        browser = Browser()
        page = browser.open(begun.url)
        browser.http.follow_redirects = False
        self.location = browser.send(page, user=user, answer=answer).headers["location"]
        browser.close()

    def said(self, name: str) -> str:
        """A parameter of the answer."""
        return parse_qs(urlsplit(self.location).query).get(name, [""])[0]


def sign_ins(given: OidcSettings, clock: Clock | None = None) -> SignIns:
    clock = clock or Clock()
    return SignIns(given, Provider(given, clock), secret=given.client_secret or "the token", now_s=clock)


def run(coroutine: Callable[[], Awaitable[Result]]) -> Result:
    async def main() -> Result:
        return await coroutine()

    return asyncio.run(main())


async def visited(server: SignIns, *, user: str = "ada") -> Visit:
    begun = await server.begin(port=4711, state="theirs", challenge=CHALLENGE)
    return await asyncio.to_thread(Visit, begun, user=user)


async def landed(server: SignIns, visit: Visit) -> Identity:
    came = server.came(visit.said("state"), visit.cookies)
    return await server.land(came, code=visit.said("code"), issuer=visit.said("iss"))


def signed_in(given: OidcSettings) -> Identity:
    async def whole() -> Identity:
        server = sign_ins(given)
        return await landed(server, await visited(server))

    return run(whole)


# ---- what a good provider says ---------------------------------------------------------------------------------------


def test_a_browser_comes_back_as_the_person_who_signed_in(provider: ObedientProvider) -> None:
    assert signed_in(settings(provider)) == Identity(
        issuer=provider.url,
        subject="id-of-ada",
        name="ada",
        display_name="Ada Lovelace",
        email="ada@example.org",
        groups=("ml", "staff"),
    )


def test_the_browser_is_sent_with_a_challenge_a_nonce_and_no_secret(provider: ObedientProvider) -> None:
    begun = run(lambda: sign_ins(settings(provider)).begin(port=1, state="theirs", challenge=CHALLENGE))
    asked = {name: values[0] for name, values in parse_qs(urlsplit(begun.url).query).items()}
    assert asked["code_challenge_method"] == "S256"
    assert len(asked["code_challenge"]) == 43 and asked["code_challenge"] != CHALLENGE
    assert len(asked["nonce"]) >= 43
    assert asked["response_type"] == "code"
    for secret in (CLIENT_SECRET, "theirs", CHALLENGE, asked["nonce"]):
        assert secret not in asked["state"]


def test_claims_that_only_userinfo_tells_are_fetched_there(provider: ObedientProvider) -> None:
    provider.wrong(only_told=["groups", "preferred_username"])
    assert signed_in(settings(provider)).groups == ("ml", "staff")


def test_a_public_client_needs_no_secret(provider: ObedientProvider) -> None:
    provider.client(settings(provider).redirect_uri, "public", "")
    assert signed_in(replace(settings(provider), client_id="public", client_secret="")).name == "ada"


def test_after_a_rotation_the_new_key_is_fetched_and_the_old_one_no_longer_counts(provider: ObedientProvider) -> None:
    async def whole() -> tuple[Identity, int]:
        server = sign_ins(settings(provider))
        await landed(server, await visited(server))
        before = provider.calls().count("/keys")
        provider.rotate()
        found = await landed(server, await visited(server))
        await landed(server, await visited(server))
        return found, provider.calls().count("/keys") - before

    found, fetched = run(whole)
    assert found.name == "ada"
    assert fetched == 1, "keys that are known are not fetched again"


# ---- what a bad one says ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"id_token": {"nonce": "another"}}, "nonce"),
        ({"id_token": {"nonce": None}}, "nonce"),
        ({"id_token": {"aud": "another-application"}}, "aud"),
        ({"id_token": {"aud": ["another-application", "third"]}}, "aud"),
        ({"id_token": {"aud": [CLIENT_ID, "other"], "azp": "other"}}, "azp"),
        ({"id_token": {"iss": "https://elsewhere.example.org"}}, "iss"),
        ({"id_token": {"sub": ""}}, "sub"),
        ({"id_token": {"sub": 7}}, "sub"),
        ({"id_token": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}}, "at_hash"),
        ({"id_token": {"iat": 99999999999}}, "refused"),
        ({"id_token": {"nbf": 99999999999}}, "refused"),
        ({"older_s": -3600}, "expired"),
        ({"signed": "not at all"}, "none"),
        ({"signed": "with the secret"}, "HS256"),
        ({"signed": "with another key"}, "not signed with one of its keys"),
        ({"no_id_token": True}, "without an identity token"),
        ({"only_told": ["groups"], "userinfo": {"sub": "id-of-eve", "groups": ["admins"]}}, "somebody else"),
        ({"iss": "https://elsewhere.example.org"}, "another provider"),
        ({"iss": ""}, "another provider"),
    ],
)
def test_a_token_that_does_not_count_lets_nobody_in(
    provider: ObedientProvider, wrong: dict[str, object], told: str
) -> None:
    provider.wrong(**wrong)
    with pytest.raises(SignInFailed, match=told):
        signed_in(settings(provider))


def test_a_clock_that_is_a_little_behind_does_no_harm(provider: ObedientProvider) -> None:
    provider.wrong(older_s=-330)  # of the 300 s that its tokens last
    assert signed_in(settings(provider)).name == "ada"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"discovery": {"issuer": "https://elsewhere.example.org"}}, "speaks for issuer"),
        ({"discovery": {"token_endpoint": "http://elsewhere.example.org/token"}}, "token_endpoint"),
        ({"discovery": {"authorization_endpoint": "javascript:alert(1)"}}, "authorization_endpoint"),
        ({"discovery": {"jwks_uri": "file:///etc/passwd"}}, "jwks_uri"),
        ({"discovery": {"jwks_uri": None}}, "jwks_uri"),
        ({"broken": ["/.well-known/openid-configuration"]}, "502"),
    ],
)
def test_a_provider_that_points_elsewhere_is_not_used(
    provider: ObedientProvider, wrong: dict[str, object], told: str
) -> None:
    provider.wrong(**wrong)
    with pytest.raises(ProviderDown, match=told):
        run(lambda: sign_ins(settings(provider)).begin(port=1, state="theirs", challenge=CHALLENGE))


@pytest.mark.parametrize(("path", "told"), [("/token", "502"), ("/keys", "502")])
def test_a_provider_that_breaks_on_the_way_is_said_to_be_down(provider: ObedientProvider, path: str, told: str) -> None:
    async def whole() -> Identity:
        server = sign_ins(settings(provider))
        visit = await visited(server)
        provider.wrong(broken=[path])
        return await landed(server, visit)

    with pytest.raises(ProviderDown, match=told):
        run(whole)


def test_a_provider_that_is_gone_is_said_to_be_down_and_used_again_when_it_is_back() -> None:
    with obedient_provider() as first:
        port = urlsplit(first.url).port
        given = settings(first)
        server = sign_ins(given)
    assert port is not None

    async def whole() -> str:
        with pytest.raises(ProviderDown, match="cannot be reached"):
            await server.begin(port=1, state="theirs", challenge=CHALLENGE)
        with obedient_provider(port):
            return (await server.begin(port=1, state="theirs", challenge=CHALLENGE)).url

    assert run(whole).startswith(given.issuer)


def test_a_wrong_client_secret_is_the_administrators_business(provider: ObedientProvider) -> None:
    with pytest.raises(SignInFailed, match="administrator has to look"):
        signed_in(replace(settings(provider), client_secret="another"))


# ---- states and codes ------------------------------------------------------------------------------------------------


def test_a_state_that_was_not_given_out_is_refused(provider: ObedientProvider) -> None:
    server, other = sign_ins(settings(provider)), sign_ins(replace(settings(provider), client_secret="another"))
    sealed = run(lambda: visited(server)).said("state")
    for wrong in ("", "x", "gAAAAA", sealed[:-4], sealed[:-4] + "AAAA", "ß" * 100, "A" * 100_000):
        with pytest.raises(SignInFailed, match="not one that this server gave out"):
            server.came(wrong, {})
    with pytest.raises(SignInFailed, match="not one that this server gave out"):
        other.came(sealed, {})


def test_a_state_in_another_browser_is_refused(provider: ObedientProvider) -> None:
    server = sign_ins(settings(provider))
    visit, other = run(lambda: visited(server)), run(lambda: visited(server))
    for cookies in ({}, other.cookies, dict.fromkeys(visit.cookies, "guessed")):
        with pytest.raises(SignInFailed, match="another browser"):
            server.came(visit.said("state"), cookies)


def test_a_state_that_is_too_old_is_refused(provider: ObedientProvider) -> None:
    clock = Clock()
    server = sign_ins(settings(provider), clock)
    visit = run(lambda: visited(server))
    clock.ahead_s = SIGN_IN_S + 5
    with pytest.raises(SignInFailed, match="older than") as caught:
        server.came(visit.said("state"), visit.cookies)
    assert caught.value.code == "expired_token"


def test_another_server_of_the_installation_goes_on_where_the_first_one_stopped(provider: ObedientProvider) -> None:
    async def whole() -> Identity:
        first, second = sign_ins(settings(provider)), sign_ins(settings(provider))
        identity = await landed(second, await visited(first))
        return first.exchange(second.code_for(identity, CHALLENGE), VERIFIER)[0]

    assert run(whole).name == "ada"


def test_the_providers_code_counts_once(provider: ObedientProvider) -> None:
    async def whole() -> None:
        server = sign_ins(settings(provider))
        visit = await visited(server)
        await landed(server, visit)
        await landed(server, visit)

    with pytest.raises(SignInFailed, match="does not accept the code"):
        run(whole)


def test_the_providers_code_does_not_count_for_long(provider: ObedientProvider) -> None:
    async def whole() -> None:
        server = sign_ins(settings(provider))
        visit = await visited(server)
        provider.expire()
        await landed(server, visit)

    with pytest.raises(SignInFailed, match="does not accept the code"):
        run(whole)


def test_the_providers_code_counts_only_with_the_state_that_it_was_made_for(provider: ObedientProvider) -> None:
    async def whole() -> None:
        server = sign_ins(settings(provider))
        stolen, own = await visited(server), await visited(server)
        came = server.came(own.said("state"), own.cookies)
        await server.land(came, code=stolen.said("code"), issuer=own.said("iss"))

    with pytest.raises(SignInFailed, match="does not accept the code"):
        run(whole)


def test_our_code_counts_only_for_whoever_began_and_not_for_long(provider: ObedientProvider) -> None:
    clock = Clock()
    server = sign_ins(settings(provider), clock)
    identity = Identity(issuer=provider.url, subject="id-of-ada", name="ada", groups=("ml",))
    code = server.code_for(identity, CHALLENGE)
    assert server.exchange(code, VERIFIER)[0] == identity
    assert "ada" not in code
    with pytest.raises(SignInFailed, match="somebody else"):
        server.exchange(code, secrets.token_urlsafe(48))
    clock.ahead_s = CODE_S + 5
    with pytest.raises(SignInFailed, match="older than"):
        server.exchange(code, VERIFIER)


def test_what_is_sealed_for_one_purpose_counts_for_no_other(provider: ObedientProvider) -> None:
    server = sign_ins(settings(provider))
    state = run(lambda: visited(server)).said("state")
    with pytest.raises(SignInFailed, match="not one that this server gave out"):
        server.exchange(state, VERIFIER)


def test_two_codes_for_the_same_person_are_used_up_separately(provider: ObedientProvider) -> None:
    server = sign_ins(settings(provider))
    identity = Identity(issuer=provider.url, subject="id-of-ada", name="ada")
    used = {server.exchange(server.code_for(identity, CHALLENGE), VERIFIER)[1] for _ in range(3)}
    assert len(used) == 3


# ---- device flow -----------------------------------------------------------------------------------------------------


def test_a_terminal_waits_until_somebody_has_entered_its_code(provider: ObedientProvider) -> None:
    async def whole() -> None:
        server = sign_ins(settings(provider))
        begun, handle = await server.begin_device(CHALLENGE)
        assert begun.device_code not in handle
        assert await server.poll_device(handle) == Polled()
        provider.wrong(slow_down=True)
        assert await server.poll_device(handle) == Polled(slower=True)
        provider.enter(begun.user_code, "ada")
        found = await server.poll_device(handle)
        assert found.identity is not None
        assert (found.identity.name, found.identity.groups, found.challenge) == ("ada", ("ml", "staff"), CHALLENGE)
        with pytest.raises(SignInFailed):
            await server.poll_device(handle)

    run(whole)


def test_a_terminal_is_told_when_somebody_declines(provider: ObedientProvider) -> None:
    async def whole() -> None:
        server = sign_ins(settings(provider))
        begun, handle = await server.begin_device(CHALLENGE)
        provider.enter(begun.user_code, "ada", answer="no")
        await server.poll_device(handle)

    with pytest.raises(SignInFailed, match="declined") as caught:
        run(whole)
    assert caught.value.code == "access_denied"


def test_a_terminal_is_told_when_the_time_is_over(provider: ObedientProvider) -> None:
    async def whole(clock: Clock, *, asks: bool) -> None:
        server = sign_ins(settings(provider), clock)
        begun, handle = await server.begin_device(CHALLENGE)
        if asks:
            provider.expire()
        else:
            clock.ahead_s = begun.expires_in_s + 1
        await server.poll_device(handle)

    for asks in (True, False):
        with pytest.raises(SignInFailed, match="time to sign in is over") as caught:
            run(lambda asks=asks: whole(Clock(), asks=asks))  # type: ignore[misc]
        assert caught.value.code == "expired_token"


def test_a_provider_without_a_device_flow_says_so(provider: ObedientProvider) -> None:
    provider.wrong(discovery={"device_authorization_endpoint": None})
    with pytest.raises(SignInFailed, match="no device flow"):
        run(lambda: sign_ins(settings(provider)).begin_device(CHALLENGE))


# ---- who may come in -------------------------------------------------------------------------------------------------


def test_whoever_is_in_none_of_the_allowed_groups_stays_outside(provider: ObedientProvider) -> None:
    allowed = SignInRules(allowed_groups=frozenset({"platform"}))
    with pytest.raises(NotAllowed, match="'platform'"):
        signed_in(replace(settings(provider), rules=allowed))
