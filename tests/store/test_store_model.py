"""Random histories: the clocks count as the plain rules do, and the totals are what the memories add up to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memagent.decay import Lane, is_dormant
from memagent.errors import Conflict, LimitExceeded, NotFound
from memagent.memory import Scope, ScopeKind, Source
from memagent.store import DeleteMemory, Limits, SetMemory
from tests.store.desk import Desk, at, direction, opened, used

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.store import Edit

CHECKED = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

KEYS = [f"m{axis}" for axis in range(1, 6)]
days = st.lists(st.integers(0, 12), min_size=1, max_size=30)
steps = st.lists(
    st.tuples(
        st.sampled_from(["forward", "forward", "forward", "back"]),
        st.integers(0, 2),
        st.one_of(
            st.tuples(st.just("save"), st.sampled_from(KEYS)),
            st.tuples(st.just("search"), st.sampled_from([*KEYS, "nothing", "nothing"])),
        ),
    ),
    max_size=40,
)


@CHECKED
@given(steps)
def test_the_clocks_count_as_the_plain_rules_do(
    redis_url: str, steps: Sequence[tuple[str, int, tuple[str, str]]]
) -> None:
    """Saves before, between and after the day's searches, days without any, and dates that jump back."""

    async def check() -> None:
        async with opened(redis_url, "t-clocks") as store:
            desk = Desk(store)
            await store.erase(desk.scope)
            lane, day, words = Lane(), 10, 0
            for move, distance, (step, key) in steps:
                day = day + distance if move == "forward" else max(1, day - distance)
                number = at(day).toordinal() - at(0).replace(year=1970, month=1, day=1).toordinal()
                if step == "save":
                    words += 1
                    await desk.save(key, axis=int(key[1:]), day=day, value=f"{key} in other words {words}")
                    lane.save(key, number)
                else:
                    recalled = await desk.chat(day, about=int(key[1:]) if key in KEYS else 15, terms=())
                    before = {hit.memory.key: hit.memory.unused_days for hit in recalled.hits}
                    assert before == {known: counter.unused_days for known, counter in lane.counters.items()}
                    active = {memory.key for memory in recalled.active}
                    assert active == {known for known, unused in before.items() if not is_dormant(unused)}
                    lane.search(number, used(recalled))
                held = {memory.key: memory.unused_days for memory in await store.list(desk.scope)}
                assert held == {known: counter.unused_days for known, counter in lane.counters.items()}
            await store.erase(desk.scope)

    asyncio.run(check())


values = st.sampled_from(
    ["Likes tea", "likes TEA.", "Likes coffee", "Lives in Berlin", "東京に住む", "x" * 300]
)
edits = st.one_of(
    st.builds(
        SetMemory,
        st.sampled_from(KEYS),
        values,
        st.integers(0, 60),
        source=st.sampled_from(Source),
        vector=st.one_of(st.none(), st.integers(0, 15).map(direction)),
        embedder=st.just("test-embedder"),
        tags=st.sampled_from([(), ("tea",), ("#general",)]),
        create_only=st.booleans(),
        rename_from=st.one_of(st.none(), st.none(), st.sampled_from(KEYS)),
    ),
    st.builds(DeleteMemory, st.sampled_from(KEYS), source=st.sampled_from(Source)),
)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("apply"), st.lists(edits, min_size=1, max_size=4)),
        st.tuples(st.just("undo"), st.integers(0, 12)),
        st.tuples(st.just("chat"), st.integers(0, 15)),
        st.tuples(st.just("attach"), st.just(0)),
    ),
    min_size=1,
    max_size=20,
)
limits = st.builds(
    Limits,
    tokens=st.sampled_from([None, 0, 100]),
    entries=st.sampled_from([None, 2, 4]),
    forget=st.booleans(),
    dormant_after_days=st.just(1),
)


@CHECKED
@given(actions, limits)
def test_totals_keys_and_lanes_are_what_the_memories_add_up_to(
    redis_url: str, actions: Sequence[tuple[str, Any]], limits: Limits
) -> None:
    async def check() -> None:
        async with opened(redis_url, "t-totals") as store:
            desk = Desk(store, Scope(ScopeKind.USER, "carol"))
            await store.erase(desk.scope)
            for day, (action, argument) in enumerate(actions):
                await act(desk, day, action, argument, limits)
                await agrees(desk, limits)
            await store.erase(desk.scope)
            assert [key async for key in store.client.scan_iter(match="t-totals:*carol*")] == []

    asyncio.run(check())


async def act(desk: Desk, day: int, action: str, argument: Any, limits: Limits) -> None:
    if action == "apply":
        written: list[Edit] = argument
        before = await desk.store.totals(desk.scope)
        applied = await desk.store.apply(desk.scope, written, limits=limits, now=at(day))
        assert applied.totals == await desk.store.totals(desk.scope)
        if limits.tokens:
            assert applied.totals.tokens <= max(limits.tokens, before.tokens)
        if limits.entries:
            assert applied.totals.entries <= max(limits.entries, before.entries)
        assert not any(memory.protected for memory in applied.forgotten)
    elif action == "undo":
        try:
            await desk.store.undo(desk.scope, str(argument) if argument else None, limits=limits, now=at(day))
        except (NotFound, Conflict, LimitExceeded):
            return
    elif action == "chat":
        recalled = await desk.chat(day, about=argument, context_terms=("tea",), dormant_after_days=1)
        assert recalled.searched
    else:
        for waiting in await desk.store.unsearched(desk.scope, "test-embedder"):
            await desk.store.attach_vector(
                waiting, vector=direction(1), embedder="test-embedder", terms=(), now=at(day)
            )


async def agrees(desk: Desk, limits: Limits) -> None:
    """Everything that is stored twice is the same twice."""
    store, client = desk.store, desk.store.client
    memories = await store.list(desk.scope)
    totals = await store.totals(desk.scope)
    assert (totals.tokens, totals.entries) == (sum(memory.tokens for memory in memories), len(memories))
    root = "{u:carol}u::"
    lanes = [int(lane) for lane in await client.hkeys(f"{store.prefix}:l:{root}")]
    placed = [await client.zrange(f"{store.prefix}:b:{root}{lane}", 0, -1) for lane in lanes]
    assert sorted(key.decode() for keys in placed for key in keys) == sorted(
        memory.key for memory in memories
    )
    assert all(placed)
    for memory in memories:
        row = await client.hgetall(f"{store.prefix}:m:{root}{memory.key}")
        assert int(row[b"lane"]) in lanes
        vectors = [name for name in row if name.startswith(b"v_")]
        assert vectors == ([b"v_" + row[b"emb"]] if memory.searched else [])
    prints = await client.hgetall(f"{store.prefix}:f:{root}")
    assert {key.decode() for key in prints.values()} <= {memory.key for memory in memories}
    matched = {key.decode() for key in await client.zrange(f"{store.prefix}:u:{root}", 0, -1)}
    assert matched == {memory.key for memory in memories if memory.last_matched_at}
    changes = await store.history(desk.scope, limit=500)
    now_there = {memory.key: memory.value for memory in memories}
    assert {key: newest_value(changes, key) for key in now_there} == now_there


def newest_value(changes: Sequence[Any], key: str) -> str | None:
    return next(change.after for change in changes if change.key == key)
