"""History, undo, receipts, exactly once, erasure."""

from __future__ import annotations

import asyncio

import pytest

from memagent.errors import Conflict, LimitExceeded, NotFound, PersonalizationOff
from memagent.memory import Scope, ScopeKind, Source
from memagent.store import CONSENT, Change, DeleteMemory, EditStatus, Kept, Limits, SetMemory
from memagent.store.redis import RedisStore
from tests.store.desk import Desk, at, keys, opened, used


async def delete(desk: Desk, key: str, day: int = 0) -> None:
    await desk.store.apply(desk.scope, [DeleteMemory(key)], limits=Limits(), now=at(day))


async def undo(desk: Desk, change_id: str | None = None, limits: Limits | None = None) -> Change:
    return await desk.store.undo(desk.scope, change_id, limits=limits or Limits(), now=at(1))


async def values(desk: Desk) -> dict[str, str]:
    return {memory.key: memory.value for memory in await desk.store.list(desk.scope)}


async def test_history_tells_every_change_newest_first(desk: Desk) -> None:
    await desk.save("cat", value="one")
    await desk.save("cat", value="two", day=1)
    await desk.save("dog", value="three", source=Source.IMPORT, day=2)
    await delete(desk, "cat", day=3)
    lines = await desk.store.history(desk.scope)
    assert [(line.op, line.key, line.before, line.after) for line in lines] == [
        ("delete", "cat", "two", None),
        ("import", "dog", None, "three"),
        ("set", "cat", "one", "two"),
        ("set", "cat", None, "one"),
    ]
    assert [line.at for line in lines] == [at(3), at(2, 10), at(1, 10), at(0, 10)]
    assert [line.op for line in await desk.store.history(desk.scope, key="cat", limit=2)] == ["delete", "set"]


async def test_history_is_bounded_and_the_oldest_lines_go(desk: Desk) -> None:
    store = RedisStore(desk.store.client, prefix=desk.store.prefix, index=desk.store.index, history_changes=5)
    other = Desk(store)
    for i in range(8):
        await other.save("cat", value=f"value {i}")
    assert [line.after for line in await store.history(other.scope)] == [
        f"value {i}" for i in (7, 6, 5, 4, 3)
    ]
    with pytest.raises(NotFound):
        await undo(other, "2")
    await undo(other, "8")
    assert await values(other) == {"cat": "value 6"}


async def test_what_is_refused_or_refreshed_leaves_no_line(desk: Desk) -> None:
    await desk.save("cat", value="one")
    await desk.save("cat", value="One.", day=1)
    await desk.save("dog", value="two", limits=Limits(entries=1))
    assert len(await desk.store.history(desk.scope)) == 1


async def test_undo_walks_back_one_change_at_a_time(desk: Desk) -> None:
    await desk.save("cat", value="one")
    await desk.save("cat", value="two")
    await delete(desk, "cat")
    assert (await undo(desk)).after == "two"
    assert (await undo(desk)).after == "one"
    assert (await undo(desk)).after is None
    with pytest.raises(NotFound):
        await undo(desk)
    assert await values(desk) == {}
    assert [line.undoes for line in await desk.store.history(desk.scope)][:3] == ["1", "2", "3"]


async def test_undoing_an_undo_does_it_again(desk: Desk) -> None:
    await desk.save("cat", value="one")
    back = await undo(desk)
    again = await undo(desk, back.id)
    assert (again.op, again.undoes, await values(desk)) == ("undo", back.id, {"cat": "one"})
    await undo(desk, again.id)
    assert await values(desk) == {}


async def test_undo_brings_back_what_was_forgotten_with_its_protection_and_age(desk: Desk) -> None:
    await desk.save("cat", axis=1, tags=("pets",))
    await desk.chat(1, about=1, context_terms=("pet",))
    for day in range(2, 10):
        await desk.chat(day, context_terms=("pet",))
    await desk.save("new", axis=2, day=10, limits=Limits(entries=1, forget=True))
    before = await desk.store.history(desk.scope, key="cat", limit=1)
    assert before[0].op == "forget"
    with pytest.raises(LimitExceeded):
        await undo(desk, before[0].id, limits=Limits(entries=1))
    assert await desk.keys() == {"new"}
    await undo(desk, before[0].id)
    memory = await desk.memory("cat")
    assert (memory.created_at, memory.last_matched_at, memory.tags) == (at(0, 10), at(1), ("pets",))
    assert (memory.protected, memory.searched, memory.unused_days) == (False, False, 0)


async def test_a_restored_value_is_embedded_again(desk: Desk) -> None:
    await desk.save("cat", value="one", axis=1)
    await desk.save("cat", value="two", axis=2)
    await undo(desk)
    assert (await desk.chat(1, about=2)).hits == ()
    assert [
        (waiting.key, waiting.value) for waiting in await desk.store.unsearched(None, "test-embedder")
    ] == [("cat", "one")]


async def test_undo_of_a_rename_puts_both_keys_back(desk: Desk) -> None:
    await desk.save("cat", value="one")
    renamed = await desk.save("pet", value="two", rename_from="cat")
    assert renamed.outcomes[0].before == "one"
    await undo(desk)
    assert await values(desk) == {"cat": "one"}
    await undo(desk, "3")
    assert await values(desk) == {"pet": "two"}


async def test_undo_never_runs_over_a_later_change(desk: Desk) -> None:
    await desk.save("cat", value="one")
    await desk.save("cat", value="two")
    with pytest.raises(Conflict, match="cat"):
        await undo(desk, "1")
    await undo(desk, "2")
    await undo(desk, "1")
    with pytest.raises(Conflict):
        await undo(desk, "1")


@pytest.mark.parametrize("unknown", ["0", "99", "-1", "x", "", "1.5", "1e0"])
async def test_undo_of_an_unknown_change_is_not_found(desk: Desk, unknown: str) -> None:
    await desk.save("cat")
    with pytest.raises(NotFound):
        await undo(desk, unknown)


async def test_undo_respects_the_token_limit_and_never_forgets(desk: Desk) -> None:
    await desk.save("cat", value="one", tokens=60)
    await delete(desk, "cat")
    await desk.save("dog", value="two", tokens=50)
    with pytest.raises(LimitExceeded, match="token"):
        await undo(desk, "2", limits=Limits(tokens=100, forget=True))
    await undo(desk, "2", limits=Limits(tokens=110))
    assert (await desk.store.totals(desk.scope)).tokens == 110


async def test_undo_without_consent_may_take_away_and_not_bring_back(desk: Desk) -> None:
    await desk.save("cat", value="one")
    await desk.save("dog", value="two")
    await delete(desk, "cat")
    await desk.store.set_preference("alice", CONSENT, False)
    with pytest.raises(PersonalizationOff):
        await undo(desk)
    await undo(desk, "2")
    assert await values(desk) == {}


# -- exactly once ------------------------------------------------------------------------------------------------------


async def test_a_message_is_applied_once_and_repeats_its_answer(desk: Desk) -> None:
    first = await desk.save("cat", value="one", message_id="m1")
    await delete(desk, "cat")
    again = await desk.save("cat", value="other", message_id="m1")
    assert (again.duplicate, again.outcomes, again.totals) == (True, first.outcomes, first.totals)
    assert await values(desk) == {}
    assert not (await desk.save("cat", message_id="m2")).duplicate


async def test_the_same_message_of_two_scopes_is_two_messages(desk: Desk) -> None:
    await desk.save("cat", message_id="m1")
    assert not (await desk.save("cat", message_id="m1", scope=Scope(ScopeKind.USER, "bob"))).duplicate


async def test_parallel_deliveries_of_one_message_write_once(desk: Desk) -> None:
    applied = await asyncio.gather(*(desk.save(f"k{i}", message_id="m1") for i in range(12)))
    assert sorted(answer.duplicate for answer in applied) == [False] + [True] * 11
    assert len(await desk.keys()) == 1
    assert len({answer.outcomes for answer in applied}) == 1


async def test_a_lost_answer_is_asked_for_again_without_writing_twice(desk: Desk) -> None:
    """A repeat inside one call carries the same attempt, so it is the first answer and no duplicate."""
    store = RedisStore(
        desk.store.client, prefix=desk.store.prefix, index=desk.store.index, nonce=lambda: "same"
    )
    edits = [DeleteMemory("cat")]
    await desk.save("cat")
    for _ in range(2):
        applied = await store.apply(desk.scope, edits, limits=Limits(), now=at(0))
        assert (applied.outcomes[0].status, applied.duplicate) == (EditStatus.DELETED, False)
    assert len(await desk.store.history(desk.scope)) == 2


async def test_the_receipt_is_stored_with_the_writing(desk: Desk) -> None:
    receipt = {"decision": "ran", "text": "Mèo 🐱", "n": [1, {"a": None}]}
    await desk.store.apply(
        desk.scope,
        [SetMemory("a", "b", 1)],
        limits=Limits(),
        now=at(0),
        message_id="m: {1}*",
        receipt=receipt,
    )
    kept = await desk.store.receipt(desk.scope, "m: {1}*")
    assert kept is not None
    assert kept.receipt == receipt
    assert kept.applied is not None
    assert [(each.key, each.status) for each in kept.applied.outcomes] == [("a", EditStatus.SET)]
    assert await desk.store.receipt(desk.scope, "m2") is None
    assert await desk.store.receipt(Scope(ScopeKind.USER, "bob"), "m: {1}*") is None
    assert (await desk.save("cat", message_id="m: {1}*")).duplicate


async def test_a_receipt_without_edits_is_kept_as_it_is_and_the_last_one_stands(desk: Desk) -> None:
    for decision in ("failed", "skipped"):
        await desk.store.save_receipt(desk.scope, "m1", {"decision": decision})
    assert await desk.store.receipt(desk.scope, "m1") == Kept({"decision": "skipped"}, None)


async def test_receipts_and_retry_notes_expire_by_themselves(desk: Desk) -> None:
    await desk.save("a", message_id="m1")
    await desk.save("b")
    prefix = f"{desk.store.prefix}:r:"
    lives = [
        await desk.store.client.ttl(key) async for key in desk.store.client.scan_iter(match=f"{prefix}*")
    ]
    assert sorted(life > 86_400 for life in lives) == [False, True]
    assert min(lives) > 0


# -- erasure -----------------------------------------------------------------------------------------------------------


async def test_erasing_leaves_no_key_of_the_scope_but_the_wish(desk: Desk) -> None:
    bob = Scope(ScopeKind.USER, "bob")
    await desk.save("cat", axis=1, message_id="m1")
    await desk.save("dog", axis=None, tags=("pets",))
    await desk.store.save_receipt(desk.scope, "m1", {"a": 1})
    await desk.save("other", scope=bob)
    await desk.store.set_preference("alice", CONSENT, False)
    assert await desk.store.erase(desk.scope) == {"memories": 2, "vectors": 1, "changes": 2, "receipts": 1}
    left = [key.decode() async for key in desk.store.client.scan_iter(match=f"{desk.store.prefix}:*alice*")]
    assert left == [f"{desk.store.prefix}:c:{{u:alice}}"]
    assert await desk.store.preference("alice", CONSENT) is False
    assert await desk.keys(bob) == {"other"}
    assert await desk.store.erase(desk.scope) == {"memories": 0, "vectors": 0, "changes": 0, "receipts": 0}


async def test_nothing_erased_comes_back_out_of_another_process(desk: Desk, redis_url: str) -> None:
    async with opened(redis_url, desk.store.prefix) as store:
        other = Desk(store)
        await desk.save("cat", axis=1)
        assert keys(await other.chat(0, commit=False)) == keys(await other.chat(0, about=None)) == ["cat"]
        await desk.store.erase(desk.scope)
        await desk.save("dog", axis=1)
        assert keys(await other.chat(0, about=None)) == ["dog"]
        assert used(await other.chat(1, about=1)) == ["dog"]
        await desk.store.erase(desk.scope)
        again = await other.chat(1, about=1)
        assert (again.active, again.hits) == ((), ())


async def test_preferences_are_kept_per_user_and_unset_is_not_false(desk: Desk) -> None:
    assert await desk.store.preference("alice", "memories") is None
    for wish in (False, True):
        await desk.store.set_preference("alice", "memories", wish)
        assert await desk.store.preference("alice", "memories") is wish
    assert await desk.store.preference("bob", "memories") is None
    assert await desk.store.preference("alice", "other") is None
