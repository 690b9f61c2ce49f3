"""A cluster answers as one server does: the same histories on both, what happens between two trips, failovers, missing indexes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memagent.errors import MemagentError
from memagent.memory import Scope, ScopeKind, Source
from memagent.store import CONSENT, DeleteMemory, Limits, SetMemory
from memagent.store.numbers import Claim, TurnNumbers
from memagent.store.trips import groups
from tests.store.desk import EMBEDDER, Desk, at, direction, keys, near, opened, used

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.local_cluster import LocalCluster
    from memagent.memory import Memory
    from memagent.store import Recalled
    from memagent.store.redis import RedisStore

pytestmark = pytest.mark.xdist_group("cluster")

ALICE = Scope(ScopeKind.USER, "alice")
AGENT = Scope(ScopeKind.USER, "alice", "cook")
GLOBAL = Scope(ScopeKind.GLOBAL, "alice")
TEAM = Scope(ScopeKind.SHARED, "team")
CREW = Scope(ScopeKind.SHARED, "crew")
ALL = (ALICE, AGENT, GLOBAL, TEAM, CREW)


@pytest.fixture
def store(sharded: RedisStore) -> RedisStore:
    return sharded


# -- the same answers ----------------------------------------------------------------------------------------------------

NAMES = [f"m{number}" for number in range(1, 6)]
WORDS = ("tea", "cat", "boat", "red", "north")
saves = st.tuples(
    st.just("save"),
    st.sampled_from(ALL),
    st.sampled_from(NAMES),
    st.tuples(
        st.integers(0, 4),
        st.lists(st.sampled_from(WORDS), max_size=4, unique=True),
        st.sampled_from([(), (), ("tea",), ("#kitchen",)]),
        st.booleans(),
    ),
)
chats = st.tuples(
    st.just("chat"),
    st.lists(st.sampled_from(ALL), min_size=1, max_size=5, unique=True),
    st.tuples(
        st.sampled_from([0.2, 0.6, 0.95]),
        st.integers(1, 6),
        st.lists(st.sampled_from(WORDS), max_size=3, unique=True),
        st.sampled_from(["", "kitchen"]),
        st.integers(1, 4),
        st.booleans(),
    ),
    st.integers(0, 3),
)
others = st.tuples(
    st.sampled_from(["delete", "undo", "erase", "standing"]),
    st.sampled_from(ALL),
    st.sampled_from(NAMES),
    st.none(),
)
histories = st.lists(st.one_of(saves, saves, chats, chats, others), min_size=4, max_size=24)


def plain(memory: Memory) -> Memory:
    """A memory without what is made by chance."""
    return replace(memory, id="")


def seen(recalled: Recalled) -> Any:
    hits = [
        (hit.scope, plain(hit.memory), round(hit.score, 9), hit.used, hit.reason, dict(hit.parts).keys())
        for hit in recalled.hits
    ]
    active = [plain(memory) for memory in recalled.active]
    return active, hits, recalled.searched, recalled.etag, recalled.total_tokens


async def played(store: RedisStore, history: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Everything that a store answered to a history."""
    desk, told, day = Desk(store), [], 1
    for number, (what, where, which, how) in enumerate(history):
        try:
            if what == "save":
                axis, terms, tags, trusted = how
                edit = SetMemory(
                    which,
                    f"{which} {' '.join(terms)} {number}",
                    tokens=3,
                    source=Source.USER if trusted else Source.ASSISTANT,
                    vector=near(0.9, axis + 1),
                    embedder=EMBEDDER,
                    terms=tuple(terms),
                    tags=tags,
                    trusted=trusted,
                )
                limits = Limits(entries=3, forget=True, dormant_after_days=2)
                done = await store.apply(
                    where, [edit], limits=limits, now=at(day, 8), message_id=f"m{number}"
                )
                told.append((done.outcomes, [plain(each) for each in done.forgotten], done.totals))
            elif what == "chat":
                cosine, axis, terms, channel, most, commit = which
                day += how
                query: dict[str, Any] = {"terms": tuple(terms), "context_terms": tuple(terms), "used": most}
                query |= {"channel": channel, "commit": commit, "dormant_after_days": 2, "candidates": 2}
                found = await desk.chat(day, vector=near(cosine, axis), scopes=tuple(where), **query)
                told.append(seen(found))
            elif what == "standing":
                standing = await store.standing([where, *ALL], "m1", switch=CONSENT)
                told.append([[plain(memory) for memory in each] for each in standing.memories])
            elif what == "erase":
                told.append(dict(await store.erase(where)))
            elif what == "undo":
                undone = await store.undo(where, limits=Limits(), now=at(day, 9))
                told.append((undone.key, undone.before, undone.after))
            else:
                edits = [DeleteMemory(which, source=Source.USER)]
                told.append((await store.apply(where, edits, limits=Limits(), now=at(day, 9))).outcomes)
        except MemagentError as fault:
            told.append(fault.code)
    for scope in ALL:
        told.append([plain(memory) for memory in await store.list(scope)])
        told.append([(line.key, line.op, line.before, line.after) for line in await store.history(scope)])
    told.append(await store.scopes("alice"))
    return told


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(histories)
def test_a_cluster_answers_as_one_server_does(
    redis_url: str, cluster: LocalCluster, history: Sequence[tuple[Any, ...]]
) -> None:
    """Scopes of one slot and of three, tags, words, decay, forgetting, the used set over all scopes, undo and erasure."""

    async def check() -> None:
        answers = []
        for url in (redis_url, cluster.url):
            async with opened(url, "t-same") as store:
                for scope in ALL:
                    await store.erase(scope)
                answers.append(await played(store, history))
        one, several = answers
        assert several == one

    asyncio.run(check())


def test_scopes_of_one_user_are_one_group_and_shared_ones_stand_apart() -> None:
    assert groups(ALL) == [[0, 1, 2], [3], [4]]
    assert groups([TEAM, ALICE, CREW, GLOBAL]) == [[0], [1, 3], [2]]
    assert groups([]) == []


async def test_t06_the_used_set_is_the_best_over_all_shards(store: RedisStore) -> None:
    desk = Desk(store)
    await desk.save("mine", vector=near(0.7, 1))
    await desk.save("ours", vector=near(0.8, 1), scope=TEAM)
    await desk.save("theirs", vector=near(0.9, 1), scope=CREW)
    for day in (1, 2):
        await desk.chat(day, scopes=ALL)
    found = await desk.chat(3, vector=direction(0), scopes=ALL, used=2)
    assert used(found) == ["theirs", "ours"]
    assert [
        await desk.unused("mine"),
        await desk.unused("ours", TEAM),
        await desk.unused("theirs", CREW),
    ] == [3, 0, 0]


# -- what happens between two trips --------------------------------------------------------------------------------------


class Meddler:
    """A store's door to the scripts with something happening in front of the third trip."""

    def __init__(self, store: RedisStore, *deeds: Any) -> None:
        self.deeds = list(deeds)
        self.trips: list[str] = []
        self._run = store._run
        store._search.__self__._run = self

    async def __call__(self, name: str, *arguments: Any, **more: Any) -> Any:
        self.trips.append(name)
        if name == "recall_judge" and self.deeds:
            await self.deeds.pop(0)()
        return await self._run(name, *arguments, **more)


async def test_a_memory_deleted_meanwhile_is_neither_shown_nor_in_the_way_of_the_next(
    store: RedisStore,
) -> None:
    desk = Desk(store)
    for cosine, key in ((0.9, "best"), (0.8, "second")):
        await desk.save(key, vector=near(cosine, 1))

    async def delete() -> None:
        edits = [DeleteMemory("best", source=Source.USER)]
        await store.apply(ALICE, edits, limits=Limits(), now=at(1))

    meddler = Meddler(store, delete)
    found = await desk.chat(1, vector=direction(0), used=1)
    assert (used(found), keys(found), found.searched) == (["second"], ["second"], True)
    assert meddler.trips == ["recall_see", "recall_judge"] * 2


async def test_t20_a_memory_tagged_away_meanwhile_is_not_shown(store: RedisStore) -> None:
    desk = Desk(store)
    await desk.save("plan", vector=near(0.9, 1))

    async def hide() -> None:
        await desk.save("plan", value="another plan", vector=near(0.9, 1), tags=("#secret",), hour=11)

    Meddler(store, hide)
    found = await desk.chat(1, vector=direction(0))
    assert (found.hits, found.active) == ((), ())


async def test_t20_a_word_that_a_new_tag_waits_for_is_looked_for_although_the_search_began_without(
    store: RedisStore,
) -> None:
    desk = Desk(store)
    await desk.save("plan", vector=near(0.9, 1))

    async def tag() -> None:
        await desk.save("trip", value="to Hội An", vector=near(0.8, 2), tags=("holiday",), hour=11)

    meddler = Meddler(store, tag)
    found = await desk.chat(1, vector=direction(0), context_terms=("holida",))
    assert (used(found), keys(found)) == (["plan", "trip"], ["plan", "trip"])
    assert meddler.trips == ["recall_see", "recall_judge"] * 2


async def test_a_user_who_switches_memory_off_meanwhile_gets_nothing(store: RedisStore) -> None:
    desk = Desk(store)
    await desk.save("plan", vector=near(0.9, 1))
    Meddler(store, lambda: store.set_preference("alice", CONSENT, value=False))
    found = await desk.chat(1, vector=direction(0), scopes=(ALICE, TEAM))
    assert (found.opted_out, found.active, found.hits) == (True, (), ())


async def test_memories_that_never_come_to_rest_are_taken_as_they_stand(store: RedisStore) -> None:
    desk, words = Desk(store), iter(range(100))
    await desk.save("still", vector=near(0.8, 1))
    await desk.save("gone", vector=near(0.9, 1))

    async def write() -> None:
        number = next(words)
        await desk.save("busy", value=f"words {number}", vector=near(0.1, 2), hour=11)

    async def write_and_delete() -> None:
        await write()
        edits = [DeleteMemory("gone", source=Source.USER)]
        await store.apply(ALICE, edits, limits=Limits(), now=at(1))

    meddler = Meddler(store, write, write, write_and_delete)
    found = await desk.chat(1, vector=direction(0))
    assert used(found) == ["still"]
    assert len(meddler.trips) == 6


async def test_a_tick_of_another_search_between_the_trips_does_not_count_the_day_twice(
    store: RedisStore,
) -> None:
    desk = Desk(store)
    await desk.save("plan", vector=near(0.9, 1))
    Meddler(store, lambda: Desk(store).chat(1))
    await desk.chat(1)
    assert await desk.unused("plan") == 1


# -- trips ---------------------------------------------------------------------------------------------------------------


async def test_recall_takes_two_scripts_for_one_user_and_one_when_there_is_nothing_to_search(
    store: RedisStore,
) -> None:
    desk = Desk(store)
    await desk.save("plan", vector=near(0.9, 1), terms=("plan",))
    meddler = Meddler(store)
    await desk.chat(1, vector=direction(0), terms=("plan",), scopes=(ALICE, AGENT, GLOBAL))
    assert meddler.trips == ["recall_see", "recall_judge"]
    meddler.trips.clear()
    await desk.chat(1, about=None)
    await desk.chat(1, vector=direction(0), scopes=(AGENT,))
    assert meddler.trips == ["recall_see", "recall_see"]


async def test_the_words_of_a_chat_cost_one_trip_more_once_where_a_tag_waits_for_them(
    store: RedisStore,
) -> None:
    desk = Desk(store)
    await desk.save("plan", vector=near(0.9, 1), tags=("holiday",))
    meddler = Meddler(store)
    for _ in range(2):
        assert keys(await desk.chat(1, vector=direction(0), context_terms=("holida",))) == ["plan"]
    assert meddler.trips == ["recall_see", *["recall_see", "recall_judge"] * 2]


# -- beside memories -------------------------------------------------------------------------------------------------------


async def test_what_is_said_is_numbered_on_a_cluster(store: RedisStore) -> None:
    numbers = TurnNumbers(store.client, prefix=store.prefix)
    claims = [Claim(("question",)), Claim(("answer",), after=("question",))]

    async def claimed() -> list[tuple[int, bool]]:
        found = await numbers.claim(ALICE, "c1", claims, at=at(0), message_id="m1", shown=("cited",))
        assert found.shown == ("cited",)
        return [(each.number, each.written) for each in found.numbers if each]

    assert await claimed() == [(1, False), (2, False)]
    found = await numbers.claim(ALICE, "c1", claims, at=at(0), message_id="m1")
    assert await numbers.written(ALICE, "c1", claims, [each for each in found.numbers if each])
    assert await claimed() == [(1, True), (2, True)]
    await numbers.spoke("owner", "embedder")
    assert await numbers.behind("another") == ("owner",)
    names = await numbers.erase("alice")
    await numbers.erased("alice", names)
    assert await claimed() == [(1, False), (2, False)]


async def test_receipts_and_preferences_of_a_user_are_read_and_erased_on_a_cluster(store: RedisStore) -> None:
    await store.save_receipt(ALICE, "m1", {"number": 1})
    kept = await store.receipt(ALICE, "m1")
    assert kept is not None
    assert kept.receipt == {"number": 1}
    await store.set_preference("alice", CONSENT, value=False)
    assert await store.erase_preferences("alice") == 1
    await store.erase(ALICE)
    assert await store.keys_of("alice") == 0
