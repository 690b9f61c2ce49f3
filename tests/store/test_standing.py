"""How things stand before learning from a message: one round trip, and what is the same is not sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.memory import Scope, ScopeKind, Source
from memagent.store import CONSENT, DeleteMemory, Limits
from memagent.store.contents import MAX_CONTENTS, Content, Contents
from memagent.store.redis import RedisStore
from tests.store.desk import DIMENSIONS, EMBEDDER, Desk, at

if TYPE_CHECKING:
    from memagent.memory import Memory

GLOBAL = Scope(ScopeKind.GLOBAL, "alice")


async def held(desk: Desk, store: RedisStore | None = None) -> list[tuple[Memory, ...]]:
    standing = await (store or desk.store).standing([desk.scope, GLOBAL], "m1", switch=CONSENT)
    return list(standing.memories)


async def neighbour(desk: Desk) -> RedisStore:
    """Another process with the same Redis."""
    return await RedisStore.open(
        desk.store.url, prefix=desk.store.prefix, embedder_id=EMBEDDER, dimensions=DIMENSIONS
    )


async def test_everything_of_every_scope_stands_there_as_it_is_listed(desk: Desk) -> None:
    await desk.save("older", hour=9)
    await desk.save("newer", hour=10)
    await desk.save("everywhere", scope=GLOBAL)
    for _ in range(2):
        mine, common = await held(desk)
        assert mine == await desk.store.list(desk.scope, dormant_after_days=None)
        assert [memory.key for memory in common] == ["everywhere"]


async def test_what_did_not_change_is_not_sent_again(desk: Desk) -> None:
    await desk.save("tea")
    first, second = await held(desk), await held(desk)
    assert first[0] is second[0]


async def test_what_another_process_changed_is_seen_at_once(desk: Desk) -> None:
    await desk.save("tea", value="likes green tea")
    await held(desk)
    other = await neighbour(desk)
    await Desk(other).save("tea", value="likes black tea", hour=11)
    assert [memory.value for memory in (await held(desk))[0]] == ["likes black tea"]
    await other.apply(desk.scope, [DeleteMemory("tea", source=Source.USER)], limits=Limits(), now=at(0, 12))
    assert (await held(desk))[0] == ()
    await other.close()


async def test_what_another_process_erased_is_gone_here(desk: Desk) -> None:
    await desk.save("tea")
    await held(desk)
    other = await neighbour(desk)
    await other.erase(desk.scope)
    assert (await held(desk))[0] == ()
    await Desk(other).save("rain", day=1)
    assert [memory.key for memory in (await held(desk))[0]] == ["rain"]
    await other.close()


async def test_the_receipt_and_the_switch_are_the_messages_and_its_users(desk: Desk) -> None:
    store = desk.store
    before = await store.standing([desk.scope], "m1", switch=CONSENT)
    assert (before.receipt, before.switch) == (None, None)
    await store.save_receipt(desk.scope, "m1", {"decision": "ran"})
    await store.set_preference("alice", CONSENT, False)
    after = await store.standing([desk.scope], "m1", switch=CONSENT)
    assert (after.receipt, after.switch) == ({"decision": "ran"}, False)
    assert (await store.standing([desk.scope], "m2", switch=CONSENT)).receipt is None
    await store.set_preference("alice", CONSENT, True)
    assert (await store.standing([desk.scope], "m1", switch=CONSENT)).switch is True


def test_the_longest_unread_scope_is_forgotten_first() -> None:
    contents = Contents()
    names = [Scope(ScopeKind.USER, f"user{number}") for number in range(MAX_CONTENTS + 1)]
    for name in (*names[:-1], names[0], names[-1]):
        contents.read(name, None, {"mark": "1", "memories": []}, embedder="e")
    assert contents.known([names[0], names[1]]) == [Content("1", ()), None]
