"""Many writers and readers of one scope at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from memagent.store import EditStatus, Limits, Refusal
from memagent.store.redis import RedisStore
from tests.store.desk import Desk, at, direction, keys, used

if TYPE_CHECKING:
    from memagent.memory import Scope


async def test_two_writers_at_the_token_limit_never_pass_it_together(desk: Desk) -> None:
    limits = Limits(tokens=100)
    await desk.save("held", tokens=60)
    applied = await asyncio.gather(*(desk.save(f"k{i}", tokens=30, limits=limits) for i in range(10)))
    refusals = [answer.outcomes[0].refusal for answer in applied]
    assert sorted(map(str, refusals)) == sorted(map(str, [None, *[Refusal.WOULD_EXCEED] * 9]))
    assert (await desk.store.totals(desk.scope)).tokens == 90


async def test_writers_that_forget_for_each_other_keep_the_list_full_and_no_fuller(desk: Desk) -> None:
    for axis in range(1, 11):
        await desk.save(f"old {axis}", axis=axis)
    await desk.unmatched(*range(1, 9))
    limits = Limits(entries=10, forget=True)
    applied = await asyncio.gather(
        *(desk.save(f"new {i}", day=9, axis=None, limits=limits) for i in range(15))
    )
    forgotten = [memory.key for answer in applied for memory in answer.forgotten]
    statuses = [answer.outcomes[0].status for answer in applied]
    assert (len(forgotten), len(set(forgotten))) == (10, 10)
    assert (statuses.count(EditStatus.SET), statuses.count(EditStatus.REFUSED)) == (10, 5)
    assert len(await desk.keys()) == 10


async def test_parallel_turns_of_one_day_count_once_and_a_match_wins(desk: Desk, team: Scope) -> None:
    await desk.save("cat", axis=1)
    await desk.save("dog", axis=2)
    await desk.save("shared", axis=3, scope=team)
    turns = (desk.chat(1, about=about, scopes=(desk.scope, team)) for about in (15, 1, 15, 15, 1, 15) * 4)
    await asyncio.gather(*turns)
    assert (await desk.unused("cat"), await desk.unused("dog"), await desk.unused("shared", team)) == (
        0,
        1,
        1,
    )


async def test_an_edit_wins_over_the_vector_of_its_old_words(desk: Desk) -> None:
    for i in range(20):
        await desk.save(f"k{i}", axis=None)
    waiting = await desk.store.unsearched(desk.scope, "test-embedder")

    async def attach(number: int) -> bool:
        return await desk.store.attach_vector(
            waiting[number], vector=direction(1), embedder="test-embedder", terms=(), now=at(0)
        )

    await asyncio.gather(
        *(attach(i) for i in range(20)),
        *(desk.save(memory.key, value=f"new words of {memory.key}", axis=2) for memory in waiting),
    )
    found = await desk.chat(1, about=1, hits=50)
    assert used(found) == []
    assert all(hit.memory.value.startswith("new words") and hit.score < 0.1 for hit in found.hits)
    assert len(found.hits) == 20


async def test_two_processes_see_one_prefix_whoever_wrote_last(desk: Desk, redis_url: str) -> None:
    other = await RedisStore.open(
        redis_url, prefix=desk.store.prefix, embedder_id="test-embedder", dimensions=16
    )
    desks = (desk, Desk(other))

    async def life(who: Desk, name: str) -> None:
        for i in range(15):
            await who.save(f"{name}{i}", axis=3)
            await who.chat(0)

    await asyncio.gather(*(life(who, name) for who, name in zip(desks, "ab", strict=True)))
    prefixes = [keys(await who.chat(0)) for who in desks]
    assert prefixes[0] == prefixes[1]
    assert set(prefixes[0]) == await desk.keys()
    assert (await desk.chat(0)).etag == (await desks[1].chat(0)).etag
    await other.close()


async def test_a_cancelled_call_leaves_the_connection_usable(desk: Desk) -> None:
    await desk.save("cat")
    for _ in range(10):
        task = asyncio.create_task(desk.store.list(desk.scope))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await desk.keys() == {"cat"}
