"""A process that read a scope before is sent what changed since, and never holds anything but what stands there."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from memagent.memory import Memory, Scope, ScopeKind, Source
from memagent.store import CONSENT, DeleteMemory, Limits, SetMemory
from tests.store.desk import DIMENSIONS, EMBEDDER, Desk, at, direction, keys, opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

KEYS = [f"key {number}" for number in range(8)]
REMEMBERED = 64
"""`RECENT` of `lua/scope.lua`."""


@pytest.fixture
async def reader(desk: Desk, redis_url: str) -> AsyncIterator[Desk]:
    """Another process with the same Redis."""
    embedder = {"embedder_id": EMBEDDER, "dimensions": DIMENSIONS}
    async with opened(redis_url, desk.store.prefix, **embedder) as store:
        yield Desk(store, desk.scope)


async def held(desk: Desk) -> tuple[Memory, ...]:
    return (await desk.store.standing([desk.scope], "m1", switch=CONSENT)).memories[0]


async def prefix(desk: Desk, day: float = 0) -> list[Memory]:
    return list((await desk.chat(int(day), about=None)).active)


async def truth(desk: Desk) -> list[Memory]:
    return said(await desk.store.list(desk.scope, dormant_after_days=None))


def said(memories: Iterable[Memory]) -> list[Memory]:
    """Without counters, which only `list` has exact."""
    return [replace(memory, unused_days=0, last_matched_at=None) for memory in memories]


async def test_only_what_changed_is_read_again(desk: Desk, reader: Desk) -> None:
    for key in KEYS:
        await desk.save(key)
    before, active = await held(reader), await prefix(reader)
    await desk.save("key 3", value="other words", hour=11)
    await desk.store.apply(
        desk.scope, [DeleteMemory("key 5", source=Source.USER)], limits=Limits(), now=at(0, 12)
    )
    after, now_active = await held(reader), await prefix(reader)
    assert said(after) == await truth(desk)
    assert {memory.key for memory in now_active} == {*KEYS} - {"key 5"}
    assert {memory.key for memory in after if memory not in before} == {"key 3"}
    kept = {id(memory) for memory in (*before, *active)}
    assert {memory.key for memory in (*after, *now_active) if id(memory) not in kept} == {"key 3"}


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_is_written_a_reader_ends_up_with_what_stands_there(
    desk: Desk, reader: Desk, seed: int
) -> None:
    dice = Random(seed)
    for step in range(60):
        await _something(desk, dice, step)
        if dice.random() < 0.4:
            assert said(await held(reader)) == await truth(desk)
            shown = await prefix(reader, step // 6)
            alone = await prefix(desk, step // 6)
            assert [(m.key, m.value, m.tags) for m in shown] == [(m.key, m.value, m.tags) for m in alone]
            assert {m.key for m in shown} == {
                m.key for m in await desk.store.list(desk.scope) if not m.dormant
            }


async def _something(desk: Desk, dice: Random, step: int) -> None:
    key, day = dice.choice(KEYS), step // 6
    hour = 10 + step / 100
    match dice.randrange(6):
        case 0 | 1 | 2:
            axis = dice.choice([None, 1, 2])
            await desk.save(key, day=day, hour=hour, value=f"{key} at {step}", axis=axis)
        case 3:
            await desk.store.apply(
                desk.scope, [DeleteMemory(key, source=Source.USER)], limits=Limits(), now=at(day, hour)
            )
        case 4:
            await desk.chat(day, about=dice.choice([1, 2]))
        case _:
            for waiting in await desk.store.unsearched(desk.scope, EMBEDDER, limit=1):
                await desk.store.attach_vector(
                    waiting, vector=direction(3), embedder=EMBEDDER, terms=(), now=at(day, hour)
                )


@pytest.mark.parametrize("changes", [REMEMBERED - 1, REMEMBERED, REMEMBERED + 1])
async def test_a_reader_who_was_away_for_long_reads_everything(
    desk: Desk, reader: Desk, changes: int
) -> None:
    await desk.save("first")
    await desk.save("second")
    await held(reader)
    await prefix(reader)
    for number in range(changes):
        await desk.save("first", value=f"words {number}", hour=11)
    assert said(await held(reader)) == await truth(desk)
    assert [memory.value for memory in await prefix(reader) if memory.key == "first"] == [
        f"words {changes - 1}"
    ]


async def test_a_change_that_was_lost_in_a_failover_is_not_held_on_to(desk: Desk, reader: Desk) -> None:
    client = desk.store.client
    await desk.save("kept")
    before = {
        name: await client.dump(name) async for name in client.scan_iter(match=f"{desk.store.prefix}:*")
    }
    await desk.save("lost")
    assert {memory.key for memory in await held(reader)} == {*keys(await reader.chat(0))} == {"kept", "lost"}
    async for name in client.scan_iter(match=f"{desk.store.prefix}:?:*"):
        await client.delete(name)
    for name, dumped in before.items():
        await client.restore(name, 0, dumped, replace=True)
    await desk.save("later", hour=11)
    assert {memory.key for memory in await held(reader)} == {*keys(await reader.chat(0))} == {"kept", "later"}


async def test_what_was_erased_and_said_anew_is_all_there_is(desk: Desk, reader: Desk) -> None:
    await desk.save("old")
    await held(reader)
    await prefix(reader)
    await desk.store.erase(desk.scope)
    await desk.save("new", hour=11)
    assert [memory.key for memory in await held(reader)] == ["new"]
    assert keys(await reader.chat(0)) == ["new"]
    assert [key async for key in desk.store.client.scan_iter(match=f"{desk.store.prefix}:d:*")] != []
    await desk.store.erase(desk.scope)
    assert await held(reader) == ()
    assert [key async for key in desk.store.client.scan_iter(match=f"{desk.store.prefix}:d:*")] == []


async def test_keys_of_any_spelling_are_told_apart(desk: Desk, reader: Desk) -> None:
    odd = ["a/b", "1/2/7", 'say "hi"', "mèo 🐱", "e\u0301", "%00", "[1]"]
    scope = Scope(ScopeKind.GLOBAL, "alice")
    for key in odd:
        await desk.save(key)
    await held(reader)
    await prefix(reader)
    await desk.store.apply(
        desk.scope,
        [SetMemory(key, f"again {key}", 3) for key in odd],
        limits=Limits(),
        now=at(0, 13),
    )
    await desk.save("elsewhere", scope=scope)
    assert {memory.key: memory.value for memory in await held(reader)} == {key: f"again {key}" for key in odd}
