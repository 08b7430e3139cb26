"""Who calls: from memory while it is fresh, from the database else, and a little longer while that is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fairpool.app.authz import OWNER, Principal, Role
from fairpool.app.records import Change, HistoryEntry, Kind
from fairpool.app.store_errors import StoreUnavailable
from fairpool.app.use_cases import teams, tokens, users
from fairpool.app.use_cases.teams import TeamChange
from fairpool.core.ids import Instant
from fairpool.core.policies import Subject
from fairpool.server.identities import FRESH_S, Identities, Tokens
from fairpool.server.problems import Refused
from tests.unit.app.office import Office, opened

ALICE = Subject.parse("user:alice")


class Town:
    """An office with one user, a token of hers, and a watch in the test's hand."""

    def __init__(self) -> None:
        self.office: Office = opened()
        self.office.do(users.create, "alice", role=Role.MEMBER)
        self.office.do(teams.create, "red", members=["alice"])
        self.issued = self.office.do(tokens.create, ALICE, "laptop", life_s=3600)
        self.seconds = 0.0
        self.reads = 0
        self.is_away = False
        self.used: list[tuple[str, Instant]] = []
        self.identities = Identities(
            Tokens(["the-installation-s"]),
            readers=self._reader,
            clock=self.office.clock,
            note_use=lambda token, at, shown: self.used.append((token.id, at)),
            monotonic=lambda: self.seconds,
        )

    def _reader(self, workspace: str) -> Any:
        if not workspace:
            self.reads += 1
        if self.is_away:
            raise StoreUnavailable("the database does not answer")
        return self.office.store.reader

    async def of(self, token: str | None = None) -> Principal:
        return await self.identities.of(b"Bearer " + (token or self.issued.text.reveal()).encode())

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds
        self.office.pass_time(seconds)


def told(story: Callable[[Town], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story(Town()))


async def refusal(town: Town, token: str | None = None) -> str:
    with pytest.raises(Refused) as refused:
        await town.of(token)
    assert refused.value.problem.status == 401
    return refused.value.problem.detail


def changed(kind: Kind) -> list[HistoryEntry]:
    return [HistoryEntry(seq=1, change=Change(at=Instant(0), kind=kind, object="x", what="changed"))]


def test_who_calls_again_is_known_without_a_look_at_the_database() -> None:
    async def story(town: Town) -> None:
        found = await town.of()
        assert (found.subject, found.role, found.teams) == (ALICE, Role.MEMBER, frozenset({"red"}))
        assert found.token_name == "laptop"
        for _ in range(100):
            assert await town.of() == found
        assert town.reads == 1

    told(story)


def test_many_who_come_at_once_are_looked_up_once() -> None:
    async def story(town: Town) -> None:
        await asyncio.gather(*(town.of() for _ in range(50)))
        assert town.reads == 1

    told(story)


def test_what_another_server_changed_counts_within_a_second() -> None:
    async def story(town: Town) -> None:
        await town.of()
        town.office.do(teams.update, "red", TeamChange(remove=("alice",)))
        town.office.do(tokens.revoke, "laptop")
        town.pass_time(FRESH_S + 0.01)
        assert "was revoked" in await refusal(town)
        assert FRESH_S + 0.2 <= 1.0, "what is known of teams is a little older than what is known of the token"

    told(story)


def test_what_this_server_changed_counts_at_once() -> None:
    async def story(town: Town) -> None:
        await town.of()
        town.seconds += 0.01
        town.office.do(teams.update, "red", TeamChange(remove=("alice",)))
        town.identities.forget(changed(Kind.REQUEST))
        assert (await town.of()).teams == {"red"}, "nothing of people was said to have changed"
        town.identities.forget(changed(Kind.TEAM))
        town.seconds += 0.01
        assert (await town.of()).teams == frozenset()

    told(story)


def test_who_calls_all_the_time_never_waits_for_the_database() -> None:
    async def story(town: Town) -> None:
        await town.of()
        for _ in range(20):
            town.pass_time(FRESH_S * 0.7)
            await town.of()
            await asyncio.to_thread(lambda: None)
            await asyncio.sleep(0)
        assert town.reads > 10

    told(story)


def test_while_the_database_is_away_who_was_known_is_let_in_and_nobody_else() -> None:
    async def story(town: Town) -> None:
        found = await town.of()
        town.is_away = True
        town.pass_time(30)
        assert await town.of() == found
        town.pass_time(31)
        with pytest.raises(StoreUnavailable):
            await town.of()

    told(story)


def test_an_expired_token_needs_no_look_at_the_database_to_be_refused() -> None:
    async def story(town: Town) -> None:
        await town.of()
        town.office.pass_time(3600)  # on the clock, not on the watch: what was read is fresh
        assert "'laptop' expired at" in await refusal(town)
        assert town.reads == 1

    told(story)


def test_use_is_noted_once_a_minute() -> None:
    async def story(town: Town) -> None:
        for _ in range(130):
            await town.of()
            town.pass_time(1)
        assert [token for token, _ in town.used] == [town.issued.record.id] * 3

    told(story)


def test_the_installation_s_token_and_nothing_like_it_is_the_owner() -> None:
    async def story(town: Town) -> None:
        assert await town.of("the-installation-s") == OWNER
        assert "not one of this server's" in await refusal(town, "the-installation")
        assert town.reads == 0

    told(story)


@pytest.mark.parametrize("header", [b"", b"Bearer", b"Bearer ", b"Basic abc", b"Bearer \xff\xfe"])
def test_a_header_that_is_no_token_is_refused(header: bytes) -> None:
    async def story(town: Town) -> None:
        with pytest.raises(Refused):
            await town.identities.of(header)

    told(story)


def test_the_secret_decides_and_not_the_id() -> None:
    async def story(town: Town) -> None:
        other = town.office.do(tokens.create, ALICE, "phone").text.reveal()
        mixed = "_".join([*town.issued.text.reveal().split("_")[:2], other.split("_")[2]])
        assert "not one of this server's" in await refusal(town, mixed)

    told(story)
