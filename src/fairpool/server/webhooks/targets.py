"""Where a webhook may call: the world outside, and nothing that only this machine or its network can reach.

Whoever declares a webhook chooses an address that the server calls. Without this, it could be made to call what trusts
it: other services on its host, the metadata of a cloud, machines behind its firewall. Names are judged by the addresses
that they resolve to, at each connection and on the very addresses that are connected to.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from typing import Final
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult

from fairpool.core.errors import InvalidInput

MAX_URL: Final = 2000

_HOST: Final = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?")
"""What may stand for a host. A wide or circled digit, say, is no digit here, and is one for whoever connects."""

_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_UNICAST: Final = ipaddress.ip_network("2000::/3")
"""All of IPv6 that was ever given to anybody; elsewhere old ways of writing IPv4 addresses lead inside."""

_LAST_32: Final = (1 << 32) - 1

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class NotAllowedThere(OSError):
    """The address is not one that webhooks may call."""


def check_url(url: str, *, allow_private: bool) -> str:
    """The address, where a webhook may call it as far as one can see without asking for its name. Raises InvalidInput.

    allow_private: whether addresses that only this machine or its network can reach are allowed too.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _wrong("it is no address") from None
    if len(url) > MAX_URL or not url.isprintable() or " " in url:
        raise _wrong("it is no address")
    if parts.scheme not in ("http", "https") or not host:
        raise _wrong("it is no address of a web server")
    if parts.username is not None or parts.password is not None:
        raise _wrong("it holds a name or password")
    if port == 0 or parts.fragment:
        raise _wrong("it is no address of a web server")
    if not _HOST.fullmatch(host):
        raise _wrong("its host is not written in the letters of host names (others as xn--…)")
    if not allow_private and (host == "localhost" or host.endswith(".localhost") or is_private(host)):
        raise _wrong("only this machine or its network can reach it")
    return url


def _wrong(message: str) -> InvalidInput:
    # The address itself is not repeated: its path may be what the receiver knows its callers by.
    return InvalidInput(
        f"a webhook cannot call that address: {message}",
        field="url",
        possible="http(s)://HOST[:PORT]/PATH of a machine that everybody can reach (FAIRPOOL_WEBHOOK_ALLOW_PRIVATE=1 "
        "on the server allows others)",
    )


def is_private(host: str) -> bool:
    """Whether the text is an address that not everybody can reach; False for a name."""
    try:
        return not _is_public(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return False


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & _LAST_32)
        if inner is not None:
            return _is_public(inner)
        if address not in _UNICAST:
            return False
    return address.is_global and not address.is_multicast


class GuardedResolver(AbstractResolver):
    """Resolves names to those of their addresses that may be called."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """See aiohttp. Raises NotAllowedThere where none is left, OSError where the name has none."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
        allowed = [
            ResolveResult(hostname=host, host=str(where[0]), port=port, family=kind, proto=proto, flags=0)
            for kind, _, proto, _, where in found
            if self._allow_private or not is_private(str(where[0]))
        ]
        if found and not allowed:
            raise NotAllowedThere(f"only this machine or its network can reach {host}")
        return allowed

    async def close(self) -> None:
        """See aiohttp."""
