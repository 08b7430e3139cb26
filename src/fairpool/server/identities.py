"""From a token to who calls: remembered for a moment, so that most calls ask no database.

A token that is revoked, and a membership that changes, count everywhere within a second, and at once on the server that
changes them. While the database is away those who were known a moment ago are still let in: nothing can be changed
for them meanwhile either.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from fairpool.app.authz import OWNER, Principal
from fairpool.app.membership import teams_of_all
from fairpool.app.ports import Clock, Reader
from fairpool.app.records import HistoryEntry, Kind, TokenRecord
from fairpool.app.store_errors import StoreUnavailable
from fairpool.app.token_text import PREFIX, TokenText, parse
from fairpool.app.use_cases.people import role_of
from fairpool.app.use_cases.tokens import USE_NOTED_S
from fairpool.core.ids import SECOND, Instant
from fairpool.core.policies import Subject, SubjectKind
from fairpool.server.problems import Refused
from fairpool.wire.problems import Slug
from fairpool.wire.reading import quoted

FRESH_S: Final = 0.8
"""How long what was read counts without a look at the database."""

_RENEWED_AFTER_S: Final = 0.4
"""From when on a call has it read again, without waiting for that: who calls all the time never waits."""

_KEPT_S: Final = 60.0
"""How long what was read counts while the database is away."""

_MOST_KNOWN: Final = 10_000

_PEOPLE: Final = frozenset({Kind.USER, Kind.TEAM, Kind.SERVICE_ACCOUNT, Kind.TOKEN, Kind.WORKSPACE})
_KINDS: Final = {SubjectKind.USER: Kind.USER, SubjectKind.SERVICE_ACCOUNT: Kind.SERVICE_ACCOUNT}
_HOW: Final = "fairpool login signs you in; programs send it as 'Authorization: Bearer TOKEN' (FAIRPOOL_TOKEN)"


class Tokens:
    """The installation's own tokens. Only their hashes are kept, and comparing takes the same time for every guess."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self._hashes = tuple(hashlib.sha256(token.encode()).digest() for token in tokens)

    def knows(self, token: bytes) -> bool:
        """Whether the token is one of them."""
        presented = hashlib.sha256(token).digest()
        found = False
        for known in self._hashes:
            found |= hmac.compare_digest(presented, known)
        return found


@dataclass(frozen=True, slots=True)
class _Known:
    """What was read of a token. principal: None where its owner is gone. read_at: when reading began, monotonic."""

    record: TokenRecord
    principal: Principal | None
    read_at: float


class Identities:
    """Who calls. For the event loop's thread, but for `forget`.

    own: the installation's own tokens. readers: by workspace. note_use: told which token was used, with the header that
    showed it, at most once a minute for each; from the event loop's thread, so it must return at once.
    """

    def __init__(
        self,
        own: Tokens,
        *,
        readers: Callable[[str], Reader] | None = None,
        clock: Clock | None = None,
        note_use: Callable[[TokenRecord, Instant, bytes], None] = lambda token, at, shown: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._own = own
        self._readers = readers
        self._clock = clock
        self._note_use = note_use
        self._monotonic = monotonic
        self._known: dict[str, _Known] = {}
        self._teams: dict[str, tuple[float, Mapping[Subject, tuple[str, ...]]]] = {}  # by workspace
        self._reading: dict[str, asyncio.Task[_Known | None]] = {}
        self._noted: dict[str, Instant] = {}
        self._changed_at = float("-inf")  # what was read before does not count any more

    def forget(self, entries: Sequence[HistoryEntry]) -> None:
        """Have everything read again if any of these changes concerns people. From any thread."""
        if any(entry.change.kind in _PEOPLE for entry in entries):
            self._changed_at = self._monotonic()

    async def of(self, authorization: bytes) -> Principal:
        """Who sends that ``Authorization`` header. Raises Refused, and StoreUnavailable where nobody can say."""
        kind, _, given = authorization.partition(b" ")
        token = given.strip()
        if kind.lower() != b"bearer" or not token:
            raise _unknown("the call carries no token" if not authorization else "the call carries no bearer token")
        if not token.startswith(PREFIX.encode() + b"_") and self._own.knows(token):
            return OWNER
        text = parse(token.decode("latin-1"))
        known = None if text is None or self._readers is None else await self._find(text)
        if text is None or known is None or not text.is_of(known.record.hash):
            if self._own.knows(token):
                return OWNER
            raise _unknown("the token is not one of this server's")
        return self._admitted(known, authorization)

    def _admitted(self, known: _Known, shown: bytes) -> Principal:
        assert self._clock is not None
        record, now = known.record, self._clock.now()
        if record.revoked_at is not None:
            raise _unknown(f"the token {record.name!r} was revoked")
        if record.expires_at is not None and record.expires_at <= now:
            day = datetime.fromtimestamp(record.expires_at // SECOND, UTC).strftime("%Y-%m-%d %H:%M UTC")
            raise _unknown(f"the token {record.name!r} expired at {day}")
        if known.principal is None:
            raise _unknown(f"{record.owner}, whose token this is, is there no more")
        last = max(record.last_used_at or 0, self._noted.get(record.id, 0))
        if now - last >= USE_NOTED_S * SECOND:
            self._noted[record.id] = now
            self._note_use(record, now, shown)
        return known.principal

    async def _find(self, text: TokenText) -> _Known | None:
        known = self._known.get(text.id)
        if known is None:
            return await self._read(text.id)
        age_s = self._monotonic() - known.read_at
        if age_s > FRESH_S or known.read_at < self._changed_at:
            try:
                read = await self._read(text.id)
                # What somebody else had begun to read before the change does not tell of it.
                return await self._read(text.id) if read and read.read_at < self._changed_at else read
            except StoreUnavailable:
                if age_s > _KEPT_S:
                    raise
                return known
        if age_s > _RENEWED_AFTER_S:
            _ = self._begin(text.id)
        return known

    async def _read(self, token_id: str) -> _Known | None:
        """Read a token again, once for all who wait for it. Somebody who gives up takes it from nobody else."""
        return await asyncio.shield(self._begin(token_id))

    def _begin(self, token_id: str) -> asyncio.Task[_Known | None]:
        task = self._reading.get(token_id)
        if task is None:
            task = self._reading[token_id] = asyncio.create_task(self._reread(token_id))
            task.add_done_callback(lambda done: self._end(token_id, done))
        return task

    def _end(self, token_id: str, done: asyncio.Task[_Known | None]) -> None:
        del self._reading[token_id]
        if not done.cancelled():
            done.exception()  # whoever waits hears of it; where nobody waits, the next call reads again

    async def _reread(self, token_id: str) -> _Known | None:
        found = await asyncio.to_thread(self._look_up, token_id)
        if found is None:
            self._known.pop(token_id, None)
        else:
            if len(self._known) >= _MOST_KNOWN:
                del self._known[next(iter(self._known))]
                self._noted.clear()
            self._known[token_id] = found
        return found

    def _look_up(self, token_id: str) -> _Known | None:
        assert self._readers is not None
        began = self._monotonic()
        record = self._readers("").tokens.get(token_id)
        if record is None:
            return None
        return _Known(record, self._principal(record, began), began)

    def _principal(self, record: TokenRecord, began: float) -> Principal | None:
        assert self._readers is not None
        owner, reader = Subject.parse(record.owner), self._readers(record.workspace)
        found = [one for one in reader.declared.match(_KINDS[owner.kind], owner.name) if one.name == owner.name]
        if not found:
            return None
        return Principal(
            subject=owner,
            role=role_of(found[0]),
            teams=frozenset(self._memberships(record.workspace, reader, began).get(owner, ())),
            workspace=record.workspace,
            token=record.id,
            token_name=record.name,
        )

    def _memberships(self, workspace: str, reader: Reader, began: float) -> Mapping[Subject, tuple[str, ...]]:
        """Who is in which teams; read once for many tokens."""
        read_at, found = self._teams.get(workspace, (float("-inf"), {}))
        if began - read_at > _RENEWED_AFTER_S / 2 or read_at < self._changed_at:
            found = teams_of_all(reader.declared.all(Kind.TEAM), reader.declared.all(Kind.SERVICE_ACCOUNT))
            self._teams[workspace] = (began, found)
        return found


def in_workspace(principal: Principal, named: str | None) -> Principal:
    """Whoever calls, in the workspace that they name; None for their own. The installation's own token is at home in
    all of them. Raises Refused for a token of another workspace."""
    if named is None or named == principal.workspace:
        return principal
    if principal.subject is None:
        return replace(principal, workspace=named)
    raise Refused(
        Slug.FORBIDDEN,
        f"the token {principal.token_name!r} is of the workspace {principal.workspace!r}, not of {quoted(named)}",
        guidance="leave it out (--workspace, FAIRPOOL_WORKSPACE, Fairpool-Workspace) or use a token of that workspace: "
        "each is of one",
    )


def _unknown(told: str) -> Refused:
    headers = {"WWW-Authenticate": 'Bearer realm="fairpool"'}
    return Refused(Slug.UNAUTHENTICATED, told, guidance=_HOW, headers=headers)
