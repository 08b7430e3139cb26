"""What a provider says of itself: its discovery document, and where that may point."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from fairpool.server.oidc.errors import ProviderDown

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

_PREFERRED_METHODS = ("client_secret_basic", "client_secret_post")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Where a provider takes what. device_endpoint, userinfo_endpoint: "" where it has none.

    auth_method: how a client with a secret shows it. names_itself: whether its answers carry ``iss`` (RFC 9207).
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    device_endpoint: str = ""
    userinfo_endpoint: str = ""
    auth_method: str = "client_secret_basic"
    names_itself: bool = False


def document_url(issuer: str) -> str:
    """Where the issuer's discovery document is."""
    return issuer.rstrip("/") + "/.well-known/openid-configuration"


def is_safe(url: str) -> bool:
    """Whether secrets may travel there: over TLS, or without leaving the machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    plain = bool(host) and url.isascii() and not re.search(r"[\s\x00-\x1f]", url)
    return plain and (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK))


def read(document: object, issuer: str) -> Metadata:
    """The provider's metadata. Raises ProviderDown where it is another issuer's, or points where no secret may go."""
    if not isinstance(document, Mapping):
        raise ProviderDown("its discovery document is no JSON object")
    if document.get("issuer") != issuer:
        raise ProviderDown(f"its discovery document speaks for issuer {document.get('issuer')!r}, not for {issuer!r}")
    methods = document.get("token_endpoint_auth_methods_supported")
    known = [method for method in _PREFERRED_METHODS if not isinstance(methods, list) or method in methods]
    return Metadata(
        issuer=issuer,
        authorization_endpoint=_endpoint(document, "authorization_endpoint"),
        token_endpoint=_endpoint(document, "token_endpoint"),
        jwks_uri=_endpoint(document, "jwks_uri"),
        device_endpoint=_endpoint(document, "device_authorization_endpoint", optional=True),
        userinfo_endpoint=_endpoint(document, "userinfo_endpoint", optional=True),
        auth_method=known[0] if known else _PREFERRED_METHODS[0],
        names_itself=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _endpoint(document: Mapping[str, object], name: str, *, optional: bool = False) -> str:
    url = document.get(name)
    if url is None and optional:
        return ""
    if not isinstance(url, str) or not is_safe(url):
        raise ProviderDown(f"its discovery document has no usable {name}: {url!r}; possible: an https address")
    return url
