"""Signing in with a provider, and who one is. The one-time code that both ways end with is exchanged for a token."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from starlette.responses import RedirectResponse, Response

from fairpool.app.errors import AppError
from fairpool.app.records import Kind
from fairpool.app.signin import Identity, relevant
from fairpool.app.use_cases import signing_in, tokens
from fairpool.app.use_cases.signing_in import SIGN_IN, team_states
from fairpool.server import lookups
from fairpool.server.calls import Call, invalid
from fairpool.server.endpoints import Endpoint, present
from fairpool.server.oidc.errors import ProviderDown, SignInError, SignInFailed
from fairpool.server.oidc.settings import SIGN_IN_S
from fairpool.server.outgoing import moment
from fairpool.server.problems import Refused
from fairpool.wire import sign_in_page
from fairpool.wire.problems import Slug
from fairpool.wire.routes import ROUTES
from fairpool.wire.signin import (
    CHALLENGE,
    DeviceBegin,
    DevicePoll,
    DevicePolled,
    DeviceView,
    SignedIn,
    SignInExchange,
    SignInOptions,
    WhoAmI,
)

if TYPE_CHECKING:
    # Loaded only where a provider is set up: it takes longer than all the rest of a server that starts.
    from fairpool.server.oidc.flows import Came, SignIns

_LOW_PORT, _HIGH_PORT = 1024, 65_535
_MAX_STATE: Final = 200

_SECRETIVE: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
"""For answers that carry a code or a token: nobody keeps them, and no other site hears of them."""


def _set_up(call: Call) -> SignIns:
    found = call.services.sign_ins
    if found is None:
        raise Refused(
            Slug.NOT_FOUND,
            "this server has no provider to sign in at",
            guidance="ask an administrator for a token, then: fairpool login --token",
        )
    return found


# ---- options ---------------------------------------------------------------------------------------------------------


async def _options(call: Call) -> Response:
    sign_ins = call.services.sign_ins
    if sign_ins is None:
        return present(SignInOptions())
    settings = sign_ins.settings
    known = await sign_ins.provider.metadata()
    return present(
        SignInOptions(
            provider=settings.issuer,
            browser_url=settings.public_url + ROUTES["sign_in_begin"].template,
            device=bool(known.device_endpoint),
            workspace=settings.workspace,
        )
    )


# ---- browser ---------------------------------------------------------------------------------------------------------


async def _begin(call: Call) -> Response:
    sign_ins = _set_up(call)
    port = call.whole("port", low=_LOW_PORT, high=_HIGH_PORT)
    if port is None:
        raise invalid("port", "missing", value="", possible=f"{_LOW_PORT} to {_HIGH_PORT}")
    state, challenge = call.text("state") or "", call.text("challenge") or ""
    if not 1 <= len(state) <= _MAX_STATE:
        raise invalid("state", "missing or too long", value=state, possible=f"1 to {_MAX_STATE} characters")
    if not CHALLENGE.fullmatch(challenge):
        raise invalid("challenge", "not one", value=challenge, possible="a SHA-256 in base64url, 43 characters")
    try:
        begun = await sign_ins.begin(port=port, state=state, challenge=challenge)
    except ProviderDown as error:
        return _to_the_terminal(port, state, error=error)
    response = RedirectResponse(begun.url, status_code=302, headers=_SECRETIVE)
    response.set_cookie(
        begun.cookie,
        begun.binding,
        max_age=SIGN_IN_S,
        path=ROUTES["sign_in_callback"].template,
        secure=sign_ins.settings.public_url.startswith("https:"),
        httponly=True,
        samesite="lax",
    )
    return response


async def _callback(call: Call) -> Response:
    sign_ins = _set_up(call)
    sealed = call.text("state") or ""
    try:
        came = sign_ins.came(sealed, call.cookies)
    except SignInFailed as error:
        # Nobody knows yet who comes: there is nowhere to send them.
        return _page(error.message)
    try:
        identity = await _landed(call, sign_ins, came)
    except (SignInError, AppError) as error:
        return _to_the_terminal(came.port, came.state, error=error)
    code = sign_ins.code_for(await _narrowed(call, identity), came.challenge)
    return _to_the_terminal(came.port, came.state, code=code)


async def _landed(call: Call, sign_ins: SignIns, came: Came) -> Identity:
    if call.text("error"):
        raise sign_ins.provider.refusal(call.text("error"), call.text("error_description"))
    code = call.text("code")
    if not code:
        raise SignInFailed("the provider sent neither a code nor an error")
    return await sign_ins.land(came, code=code, issuer=call.text("iss") or "")


def _to_the_terminal(port: int, state: str, *, code: str = "", error: SignInError | AppError | None = None) -> Response:
    """The browser goes on to the program on its own machine that waits for it: nowhere else, whatever was asked."""
    said = {"state": state}
    if error is not None:
        said |= {"error": getattr(error, "code", "access_denied"), "error_description": _told(error)}
    else:
        said["code"] = code
    return RedirectResponse(f"http://127.0.0.1:{port}/?{urlencode(said)}", status_code=302, headers=_SECRETIVE)


def _told(error: SignInError | AppError) -> str:
    return f"the provider cannot be used: {error.message}" if isinstance(error, ProviderDown) else error.message


def _page(text: str) -> Response:
    page = sign_in_page.not_signed_in(text)
    return Response(page, status_code=400, headers=dict(sign_in_page.HEADERS), media_type="text/html")


# ---- device ----------------------------------------------------------------------------------------------------------


async def _begin_device(call: Call) -> Response:
    body = await call.body(DeviceBegin)
    begun, handle = await _set_up(call).begin_device(body.challenge)
    view = DeviceView(
        verification_uri=begun.verification_uri,
        verification_uri_complete=begun.verification_uri_complete,
        user_code=begun.user_code,
        handle=handle,
        expires_in_s=begun.expires_in_s,
        interval_s=begun.interval_s,
    )
    return present(view)


async def _poll_device(call: Call) -> Response:
    body, sign_ins = await call.body(DevicePoll), _set_up(call)
    polled = await sign_ins.poll_device(body.handle)
    if polled.identity is None:
        return present(DevicePolled(status="slower" if polled.slower else "pending"))
    code = sign_ins.code_for(await _narrowed(call, polled.identity), polled.challenge)
    return present(DevicePolled(status="done", code=code))


# ---- either ----------------------------------------------------------------------------------------------------------


async def _narrowed(call: Call, identity: Identity) -> Identity:
    """With the groups only that mean something here: a code travels in an address, and addresses must not be long."""
    teams = await lookups.reading(call, lambda reader: reader.declared.all(Kind.TEAM))
    rules = _set_up(call).rules
    return replace(identity, groups=relevant(identity.groups, rules, team_states(teams)))


async def _exchange(call: Call) -> Response:
    body, sign_ins = await call.body(SignInExchange), _set_up(call)
    identity, once = sign_ins.exchange(body.code, body.verifier)
    settings = sign_ins.settings
    future = call.workspace.loop.do(
        SIGN_IN,
        lambda tx: signing_in.sign_in(
            tx,
            identity,
            settings.rules,
            once=once,
            machine=body.name or SIGN_IN,
            life_s=settings.token_s,
            workspace=settings.workspace,
        ),
        call.source,
    )
    done = await lookups.answered(call, future)
    view = SignedIn(
        token=done.text,
        token_name=done.token.name,
        subject=done.token.owner,
        role=done.role.value,
        teams=list(done.teams),
        workspace=done.token.workspace,
        expires_at=None if done.token.expires_at is None else moment(done.token.expires_at),
    )
    response = present(view)
    response.headers.update(_SECRETIVE)
    return response


# ---- who one is ------------------------------------------------------------------------------------------------------


async def _whoami(call: Call) -> Response:
    who = call.principal
    token = await lookups.reading(call, lambda reader: reader.tokens.get(who.token)) if who.token else None
    expires_at = token.expires_at if token is not None else None
    view = WhoAmI(
        subject="" if who.subject is None else str(who.subject),
        role=who.role.value,
        teams=sorted(who.teams),
        workspace=who.workspace,
        token_name=who.token_name,
        expires_at=None if expires_at is None else moment(expires_at),
    )
    return present(view)


async def _sign_out(call: Call) -> Response:
    who = call.principal
    if not who.token:
        raise Refused(
            Slug.CONFLICT,
            "this is the installation's own token: it is not revoked but replaced",
            guidance="remove the file 'token' in the server's data folder and start the server again",
        )
    await lookups.acted(call, lambda tx: tokens.revoke(tx, who.token))
    return Response(status_code=204)


_REFUSED: Final = (Slug.NOT_FOUND, Slug.SIGN_IN, Slug.FORBIDDEN, Slug.PROVIDER, Slug.TOO_MANY)

ENDPOINTS = {
    "whoami": Endpoint(is_local=True, handler=_whoami, summary="Who calls, and what they may do.", answer=WhoAmI),
    "sign_out": Endpoint(handler=_sign_out, summary="Revoke the token that this call shows.", status=204),
    "sign_in_options": Endpoint(
        is_local=True,
        handler=_options,
        summary="How people sign in at this server.",
        answer=SignInOptions,
        is_open=True,
        problems=(Slug.PROVIDER, Slug.TOO_MANY),
    ),
    "sign_in_begin": Endpoint(
        is_local=True,
        handler=_begin,
        summary="Send a browser to the provider, for a program that listens on a port of the browser's machine.",
        status=302,
        is_open=True,
        problems=_REFUSED,
    ),
    "sign_in_callback": Endpoint(
        is_local=True,
        handler=_callback,
        summary="Where the provider sends browsers back to; they go on to the program that waits, with a code.",
        status=302,
        is_open=True,
        problems=_REFUSED,
        pages=(400,),
    ),
    "sign_in_device": Endpoint(
        is_local=True,
        handler=_begin_device,
        summary="Begin to sign in with a code that is entered on another device.",
        body=DeviceBegin,
        answer=DeviceView,
        is_open=True,
        problems=_REFUSED,
    ),
    "sign_in_poll": Endpoint(
        is_local=True,
        handler=_poll_device,
        summary="Whether somebody has entered the code by now.",
        body=DevicePoll,
        answer=DevicePolled,
        is_open=True,
        problems=_REFUSED,
    ),
    "sign_in_exchange": Endpoint(
        handler=_exchange,
        summary="Exchange a one-time code for a token; once, by whoever began the sign-in.",
        body=SignInExchange,
        answer=SignedIn,
        is_open=True,
        problems=_REFUSED,
    ),
}
