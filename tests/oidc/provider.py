"""An identity provider that does as it is told: every flow of a good one, and what a bad one would do.

A process of its own, on Authlib's server side: ``python -m tests.oidc.provider`` prints its address. People sign in by
saying who they are. Below ``/_test/`` a test says who there is, what is wrong from now on, and what is over.
"""

from __future__ import annotations

import base64
import json
import secrets
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import flask
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, OAuth2Error, grants
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8628 import DEVICE_CODE_GRANT_TYPE, DeviceAuthorizationEndpoint, DeviceCodeGrant
from authlib.oauth2.rfc8628.models import DeviceCredentialDict
from authlib.oidc.core.grants.util import create_half_hash
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey
from werkzeug.serving import make_server

FORM = "<form method=post><input name=user><button name=answer value=yes>Sign in</button></form>"


@dataclass
class Client(ClientMixin):  # type: ignore[misc]
    """An application that signs people in here."""

    id: str
    secret: str
    redirect_uris: list[str]

    def get_client_id(self) -> str:
        return self.id

    def get_default_redirect_uri(self) -> str:
        return self.redirect_uris[0]

    def get_allowed_scope(self, scope: str) -> str:
        return scope

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return redirect_uri in self.redirect_uris

    def check_client_secret(self, client_secret: str) -> bool:
        return secrets.compare_digest(self.secret, client_secret)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == ("client_secret_basic" if self.secret else "none")

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in ("authorization_code", DEVICE_CODE_GRANT_TYPE)


@dataclass
class Code(AuthorizationCodeMixin):  # type: ignore[misc]
    """An authorisation code."""

    code: str
    client_id: str
    redirect_uri: str
    scope: str
    user: str
    nonce: str
    code_challenge: str
    code_challenge_method: str
    expires_at: float

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope

    def is_expired(self) -> bool:
        return self.expires_at < time.time()


@dataclass
class State:
    """Everything that the provider knows. wrong: what it does wrong from now on."""

    keys: list[Any] = field(default_factory=lambda: [RSAKey.generate_key(2048, auto_kid=True)])
    users: dict[str, dict[str, Any]] = field(default_factory=dict)
    clients: dict[str, Client] = field(default_factory=dict)
    codes: dict[str, Code] = field(default_factory=dict)
    devices: dict[str, DeviceCredentialDict] = field(default_factory=dict)
    answers: dict[str, tuple[str, bool]] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)


state = State()
app = flask.Flask(__name__)
server = AuthorizationServer(app, query_client=state.clients.get, save_token=lambda token, request: None)


def issuer() -> str:
    return flask.request.host_url.rstrip("/")


def id_token(client: str, user: str, access_token: str, nonce: str | None) -> str:
    """The identity token, with all that is to be wrong with it."""
    now = int(time.time())
    wrong = state.wrong.get("id_token", {})
    claims = {"iss": issuer(), "aud": client, "iat": now, "exp": now + 300, "sub": f"id-of-{user}"}
    claims["at_hash"] = create_half_hash(access_token, "RS256").decode()
    if nonce:
        claims["nonce"] = nonce
    claims |= {name: value for name, value in state.users[user].items() if name not in state.wrong.get("only_told", [])}
    claims |= wrong
    claims["exp"] += state.wrong.get("older_s", 0)
    key = state.keys[-1]
    match state.wrong.get("signed"):
        case "not at all":
            header, body = (
                base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
                for part in ({"alg": "none"}, claims)
            )
            return f"{header}.{body}."
        case "with the secret":
            return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(state.clients[client].secret))
        case "with another key":
            if key.key_type == "RSA":
                return jwt.encode({"alg": "RS256", "kid": key.kid}, claims, RSAKey.generate_key(2048))
            return jwt.encode({"alg": "ES256", "kid": key.kid}, claims, ECKey.generate_key("P-256"))
        case _:
            alg = "ES256" if key.key_type == "EC" else "RS256"
            claims["at_hash"] = wrong.get("at_hash") or create_half_hash(access_token, alg).decode()
            return jwt.encode({"alg": alg, "kid": key.kid}, claims, key)


def with_id_token(grant: Any, response: Any, nonce: str | None) -> Any:
    _, token, _ = response
    state.tokens[token["access_token"]] = grant.request.user
    if not state.wrong.get("no_id_token"):
        token["id_token"] = id_token(grant.request.client.id, grant.request.user, token["access_token"], nonce)
    return token


class CodeGrant(grants.AuthorizationCodeGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "none")

    def save_authorization_code(self, code: str, request: Any) -> None:
        data = request.payload.data
        state.codes[code] = Code(
            code=code,
            client_id=request.client.id,
            redirect_uri=request.payload.redirect_uri,
            scope=request.payload.scope,
            user=request.user,
            nonce=data.get("nonce", ""),
            code_challenge=data.get("code_challenge", ""),
            code_challenge_method=data.get("code_challenge_method", ""),
            expires_at=time.time() + state.wrong.get("code_s", 60),
        )

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        found = state.codes.get(code)
        return found if found and found.client_id == client.id and not found.is_expired() else None

    def delete_authorization_code(self, authorization_code: Code) -> None:
        state.codes.pop(authorization_code.code, None)

    def authenticate_user(self, authorization_code: Code) -> str:
        return authorization_code.user


def code_token(grant: Any) -> None:
    def add(grant: Any, response: Any) -> Any:
        return with_id_token(grant, response, grant.request.authorization_code.nonce)

    grant.register_hook("after_create_token_response", add)


class DeviceEndpoint(DeviceAuthorizationEndpoint):  # type: ignore[misc]
    INTERVAL = 1
    EXPIRES_IN = 600

    def get_verification_uri(self) -> str:
        return issuer() + "/device"

    def save_device_credential(self, client_id: str, scope: str, data: dict[str, Any]) -> None:
        known = {**data, "client_id": client_id, "scope": scope, "expires_at": time.time() + data["expires_in"]}
        state.devices[data["device_code"]] = DeviceCredentialDict(known)


class DeviceGrant(DeviceCodeGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "none")

    def query_device_credential(self, device_code: str) -> DeviceCredentialDict | None:
        return state.devices.get(device_code)

    def query_user_grant(self, user_code: str) -> tuple[str, bool] | None:
        return state.wrong.get("entered_by") or state.answers.get(user_code)

    def should_slow_down(self, credential: DeviceCredentialDict) -> bool:
        return bool(state.wrong.pop("slow_down", False))


def device_token(grant: Any) -> None:
    def add(grant: Any, response: Any) -> Any:
        state.devices.pop(grant.request.credential["device_code"])
        return with_id_token(grant, response, None)

    grant.register_hook("after_create_token_response", add)


server.register_grant(CodeGrant, [CodeChallenge(required=True), code_token])
server.register_grant(DeviceGrant, [device_token])
server.register_endpoint(DeviceEndpoint)


@app.before_request
def look() -> Any:
    if not flask.request.path.startswith("/_test/"):
        state.calls.append(flask.request.path)
        if flask.request.path in state.wrong.get("broken", []):
            return "<h1>Bad gateway</h1>", 502
    return None


@app.get("/.well-known/openid-configuration")
def discovery() -> Any:
    here = issuer()
    return {
        "issuer": here,
        "authorization_endpoint": here + "/authorize",
        "token_endpoint": here + "/token",
        "jwks_uri": here + "/keys",
        "userinfo_endpoint": here + "/userinfo",
        "device_authorization_endpoint": here + "/device_authorization",
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256", "ES256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        **state.wrong.get("discovery", {}),
    }


@app.get("/keys")
def keys() -> Any:
    return KeySet(state.keys).as_dict(private=False)


@app.route("/authorize", methods=["GET", "POST"])
def authorize() -> Any:
    user = flask.request.form.get("user")
    try:
        grant = server.get_consent_grant(end_user=user)
    except OAuth2Error as error:
        return {"error": error.error, "description": error.description}, 400
    if flask.request.method == "GET":
        return FORM
    declined = flask.request.form.get("answer") == "no"
    answer = server.create_authorization_response(grant=grant, grant_user=None if declined else user)
    named = state.wrong.get("iss", issuer())
    if named:
        answer.headers["Location"] += f"&iss={named}&session_state=some-word"
    return answer


@app.post("/token")
def token() -> Any:
    return server.create_token_response()


@app.get("/userinfo")
def userinfo() -> Any:
    user = state.tokens.get(flask.request.headers.get("Authorization", "").removeprefix("Bearer "))
    if user is None:
        return {"error": "invalid_token"}, 401
    return {"sub": f"id-of-{user}", **state.users[user], **state.wrong.get("userinfo", {})}


@app.post("/device_authorization")
def device_authorization() -> Any:
    return server.create_endpoint_response(DeviceEndpoint.ENDPOINT_NAME)


@app.route("/device", methods=["GET", "POST"])
def device() -> Any:
    if flask.request.method == "GET":
        return FORM
    state.answers[flask.request.values["user_code"]] = (
        flask.request.form["user"],
        flask.request.form.get("answer") != "no",
    )
    return "Go back to your terminal."


@app.put("/_test/users/<name>")
def set_user(name: str) -> Any:
    state.users[name] = {"preferred_username": name, **flask.request.get_json()}
    return {}


@app.put("/_test/clients/<name>")
def set_client(name: str) -> Any:
    state.clients[name] = Client(id=name, **flask.request.get_json())
    return {}


@app.put("/_test/wrong")
def set_wrong() -> Any:
    state.wrong.clear()
    state.wrong.update(flask.request.get_json())
    return {}


@app.post("/_test/rotate")
def rotate() -> Any:
    """From now on there is another key, of another type, and only that."""
    state.keys = [ECKey.generate_key("P-256", auto_kid=True)]
    return {}


@app.post("/_test/expire")
def expire() -> Any:
    """Every code and device that was given out is over."""
    for code in state.codes.values():
        code.expires_at = 0
    for credential in state.devices.values():
        credential["expires_at"] = 1
    return {}


@app.get("/_test/calls")
def calls() -> Any:
    return state.calls


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    listening = make_server("127.0.0.1", port, app, threaded=True)
    sys.stdout.write(f"http://127.0.0.1:{listening.port}\n")
    sys.stdout.flush()
    listening.serve_forever()
