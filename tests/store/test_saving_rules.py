"""T50 to T57, the token limit, the same words again, and who may overwrite whom."""

from __future__ import annotations

import pytest

from memagent.errors import BadRequest
from memagent.memory import MAX_QUOTE_CHARS, Evidence, Scope, ScopeKind, Source
from memagent.store import CONSENT, DeleteMemory, EditStatus, Limits, Refusal, SetMemory
from tests.store.desk import Desk, at, keys

REFUSED = EditStatus.REFUSED


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000"])
async def test_t50_blank_words_are_refused_whole(desk: Desk, blank: str) -> None:
    with pytest.raises(BadRequest, match="blank"):
        await desk.store.apply(
            desk.scope,
            [SetMemory("good", "words", 1), SetMemory("cat", blank, 0)],
            limits=Limits(),
            now=at(0),
        )
    assert await desk.keys() == set()


@pytest.mark.parametrize(
    "value",
    [
        "{user} and {bot} like {word}",
        "{{double}} } { {",
        "a\x00b",
        "line\nbreak\r\n\ttab",
        '"quotes" \\ back\\slash',
        "Mèo của Juno tên là Mochi 🐱",
        "東京に住んでいる",
        "x" * 100_000,
    ],
)
async def test_t51_words_are_kept_as_they_are_with_every_brace(desk: Desk, value: str) -> None:
    await desk.save("cat", value=value)
    assert (await desk.memory("cat")).value == value
    assert (await desk.store.history(desk.scope))[0].after == value


async def test_t52_t53_whose_memory_it_is_stands_in_the_scope_and_nowhere_in_the_words(desk: Desk) -> None:
    """Targets named in a text do not exist here: a scope is exact, and an unknown one is empty."""
    await desk.save("cat", value="for bob: Mochi")
    bob = Scope(ScopeKind.USER, "bob")
    assert await desk.store.list(bob) == ()
    assert await desk.store.get(Scope(ScopeKind.USER, "Alice"), "cat") is None


async def test_t54_deleting_is_allowed_by_hand_without_consent_and_writing_is_not(desk: Desk) -> None:
    await desk.save("cat")
    await desk.save("dog")
    await desk.store.set_preference("alice", CONSENT, False)
    refused = await desk.save("bird")
    assert (refused.opted_out, refused.outcomes) == (True, ())
    by_agent = [DeleteMemory("cat", source=Source.AGENT)]
    assert (await desk.store.apply(desk.scope, by_agent, limits=Limits(), now=at(1))).opted_out
    by_turn = await desk.store.apply(
        desk.scope, [DeleteMemory("cat", source=Source.USER)], limits=Limits(), now=at(1), message_id="m"
    )
    assert by_turn.opted_out
    by_hand = await desk.store.apply(
        desk.scope, [DeleteMemory("cat", source=Source.USER)], limits=Limits(), now=at(1)
    )
    assert by_hand.outcomes[0].status is EditStatus.DELETED
    assert await desk.keys() == {"dog"}


async def test_consent_that_comes_back_before_the_write_is_honoured_too(desk: Desk) -> None:
    await desk.store.set_preference("alice", CONSENT, False)
    assert (await desk.save("cat", message_id="m1")).opted_out
    await desk.store.set_preference("alice", CONSENT, True)
    applied = await desk.save("cat", message_id="m1")
    assert (applied.opted_out, applied.duplicate, applied.outcomes[0].status) == (
        False,
        False,
        EditStatus.SET,
    )


async def test_t55_what_belongs_to_another_scope_is_not_found(desk: Desk) -> None:
    await desk.save("cat")
    for scope in (
        Scope(ScopeKind.USER, "bob"),
        Scope(ScopeKind.GLOBAL, "alice"),
        Scope(ScopeKind.SHARED, "alice"),
        Scope(ScopeKind.USER, "alice", "agent"),
    ):
        outcome = (await desk.store.apply(scope, [DeleteMemory("cat")], limits=Limits(), now=at(0))).outcomes[
            0
        ]
        assert outcome.status is EditStatus.MISSING
        renamed = await desk.save("dog", scope=scope, rename_from="cat")
        assert renamed.outcomes[0].status is EditStatus.MISSING
    assert await desk.keys() == {"cat"}


@pytest.mark.parametrize(
    "again", ["Juno's cat is called Mochi", "JUNO'S CAT is called mochi!", "  juno's  cat is called Mochi."]
)
async def test_t56_the_same_words_again_add_nothing_under_whatever_key(desk: Desk, again: str) -> None:
    await desk.save("cat", value="Juno's cat is called Mochi")
    before = await desk.store.totals(desk.scope)
    await desk.unmatched(1, 2)
    applied = await desk.save("pet", value=again, day=3)
    assert (applied.outcomes[0].status, applied.outcomes[0].key) == (EditStatus.REFRESHED, "cat")
    memory = await desk.memory("cat")
    assert (memory.updated_at, memory.created_at, memory.unused_days) == (at(3, 10), at(0, 10), 0)
    assert memory.value == "Juno's cat is called Mochi"
    assert await desk.store.totals(desk.scope) == before


async def test_t56_a_batch_stops_at_the_limit_in_order(desk: Desk) -> None:
    edits = [SetMemory(f"k{i}", f"value {i}", 1) for i in range(5)]
    applied = await desk.store.apply(desk.scope, edits, limits=Limits(entries=3), now=at(0))
    assert [outcome.status for outcome in applied.outcomes] == [EditStatus.SET] * 3 + [REFUSED] * 2


async def test_t57_the_next_turn_sees_every_write_also_of_another_process(desk: Desk, redis_url: str) -> None:
    from memagent.store.redis import RedisStore

    other = await RedisStore.open(
        redis_url, prefix=desk.store.prefix, embedder_id="test-embedder", dimensions=16
    )
    assert keys(await desk.chat(0)) == []
    await Desk(other).save("cat")
    assert keys(await desk.chat(0)) == ["cat"]
    await other.apply(desk.scope, [DeleteMemory("cat")], limits=Limits(), now=at(0))
    assert keys(await desk.chat(0)) == []
    await other.close()


async def test_saying_the_same_under_a_key_that_holds_other_words_is_an_edit(desk: Desk) -> None:
    await desk.save("home", value="Lives in Berlin")
    await desk.save("work", value="Works in Paris")
    assert (await desk.save("work", value="Lives in Berlin", day=1)).outcomes[0].status is EditStatus.SET
    assert {memory.value for memory in await desk.store.list(desk.scope)} == {"Lives in Berlin"}


async def test_a_correction_of_case_by_hand_is_kept(desk: Desk) -> None:
    await desk.save("cat", value="mochi is a cat")
    applied = await desk.save("cat", value="Mochi is a cat.", source=Source.USER)
    assert applied.outcomes[0].status is EditStatus.SET
    assert (await desk.memory("cat")).value == "Mochi is a cat."


async def test_what_the_assistant_repeats_keeps_nothing_alive(desk: Desk) -> None:
    await desk.save("cat", value="Mochi is a cat")
    await desk.unmatched(1, 2)
    applied = await desk.save("other", value="Mochi is a cat", day=3, source=Source.ASSISTANT)
    assert applied.outcomes[0].status is EditStatus.REFRESHED
    memory = await desk.memory("cat")
    assert (memory.unused_days, memory.updated_at) == (2, at(0, 10))


# -- token limit (spec/librechat.md §4.6) ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "stored", "tokens", "refusal"),
    [
        (None, 10, 1_000_000, None),
        (0, 10, 1_000_000, None),
        (100, 0, 100, None),
        (100, 0, 101, Refusal.WOULD_EXCEED),
        (100, 90, 10, None),
        (100, 90, 11, Refusal.WOULD_EXCEED),
        (100, 100, 1, Refusal.ALREADY_EXCEEDED),
        (100, 120, 1, Refusal.ALREADY_EXCEEDED),
        (-1, 0, 1, Refusal.ALREADY_EXCEEDED),
    ],
)
async def test_the_token_limit_may_be_met_and_not_passed(
    desk: Desk, limit: int | None, stored: int, tokens: int, refusal: Refusal | None
) -> None:
    if stored:
        await desk.save("held", tokens=stored)
    outcome = (await desk.save("new", tokens=tokens, limits=Limits(tokens=limit))).outcomes[0]
    assert (outcome.refusal, outcome.tokens) == (refusal, stored + (0 if refusal else tokens))


async def test_the_old_value_of_the_same_key_does_not_count(desk: Desk) -> None:
    limits = Limits(tokens=100)
    await desk.save("cat", tokens=60)
    await desk.save("dog", tokens=40)
    assert (await desk.save("cat", value="same size", tokens=60, limits=limits)).outcomes[0].refusal is None
    outcome = (await desk.save("cat", value="larger", tokens=61, limits=limits)).outcomes[0]
    assert (outcome.refusal, outcome.before) == (Refusal.WOULD_EXCEED, "same size")
    assert (await desk.memory("cat")).value == "same size"
    renamed = await desk.save("pet", value="moved", tokens=60, limits=limits, rename_from="cat")
    assert renamed.outcomes[0].refusal is None


# -- who may overwrite whom --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("holder", [Source.USER, Source.AGENT, Source.IMPORT])
@pytest.mark.parametrize("writer", [Source.ASSISTANT, Source.TOOL])
async def test_what_the_user_said_is_not_replaced_by_what_others_said(
    desk: Desk, holder: Source, writer: Source
) -> None:
    await desk.save("cat", value="Mochi", source=holder)
    outcome = (await desk.save("cat", value="Felix", source=writer)).outcomes[0]
    assert (outcome.status, outcome.refusal) == (REFUSED, Refusal.USER_SAID_OTHERWISE)
    delete = [DeleteMemory("cat", source=writer)]
    deleted = (await desk.store.apply(desk.scope, delete, limits=Limits(), now=at(0))).outcomes[0]
    assert deleted.refusal is Refusal.USER_SAID_OTHERWISE
    assert (await desk.memory("cat")).value == "Mochi"


async def test_the_user_replaces_what_the_assistant_said(desk: Desk) -> None:
    await desk.save("cat", value="Felix", source=Source.ASSISTANT)
    await desk.save("cat", value="Felicia", source=Source.ASSISTANT)
    await desk.save("cat", value="Mochi")
    memory = await desk.memory("cat")
    assert (memory.value, memory.source) == ("Mochi", Source.AGENT)


async def test_the_user_saying_the_same_makes_a_tools_words_trusted(desk: Desk) -> None:
    await desk.save("cat", value="Mochi is a cat", source=Source.TOOL, trusted=False)
    assert not (await desk.memory("cat")).trusted
    await desk.save("cat", value="mochi is a cat")
    memory = await desk.memory("cat")
    assert (memory.trusted, memory.source) == (True, Source.AGENT)


# -- keys, renames, evidence --------------------------------------------------------------------------------------------


async def test_creating_a_taken_key_is_refused_and_shows_what_is_there(desk: Desk) -> None:
    await desk.save("cat", value="Mochi")
    outcome = (await desk.save("cat", value="Felix", create_only=True)).outcomes[0]
    assert (outcome.refusal, outcome.before) == (Refusal.EXISTS, "Mochi")
    await desk.save("dog", value="Rex")
    renamed = (await desk.save("cat", value="Rex", rename_from="dog")).outcomes[0]
    assert renamed.refusal is Refusal.EXISTS
    assert await desk.keys() == {"cat", "dog"}


async def test_edits_of_one_message_see_each_other_in_order(desk: Desk) -> None:
    edits = [
        SetMemory("a", "one", 3),
        DeleteMemory("a"),
        SetMemory("a", "two", 4),
        SetMemory("b", "three", 5, rename_from="a"),
    ]
    applied = await desk.store.apply(desk.scope, edits, limits=Limits(), now=at(0))
    assert [outcome.tokens for outcome in applied.outcomes] == [3, 0, 4, 5]
    assert (await desk.keys(), applied.totals.tokens, applied.totals.entries) == ({"b"}, 5, 1)


async def test_evidence_is_kept_and_its_quote_bounded(desk: Desk) -> None:
    await desk.save("cat", evidence=Evidence("conversation", "message", "q" * 1000))
    assert (await desk.memory("cat")).evidence == Evidence("conversation", "message", "q" * MAX_QUOTE_CHARS)
    assert (await desk.store.history(desk.scope))[0].evidence.message_id == "message"


async def test_tags_stay_when_an_edit_names_none(desk: Desk) -> None:
    await desk.save("cat", tags=("pets", "#home"))
    await desk.save("cat", value="other words", day=1)
    assert (await desk.memory("cat")).tags == ("pets", "#home")
    await desk.save("cat", value="other words", tags=("animals",), day=2)
    assert (await desk.memory("cat")).tags == ("animals",)
