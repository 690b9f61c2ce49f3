"""Turns and notes beside keyed memories: kept once, recalled as data, never learned again, erased with their user."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from memagent.errors import BadRequest, EmbedderFault, StoreUnavailable
from memagent.llm import ModelReply
from memagent.llm.script import Answer, call, calling
from memagent.memory import Message, Scope, ScopeKind
from memagent.report.story import sentences
from memagent.service.recall import OVER_BUDGET
from memagent.service.receipt import RecallNote
from memagent.store.keys import scope_id
from memagent.turns.payload import Envelope

if TYPE_CHECKING:
    from pathlib import Path

    from memagent.turn import Turn

ON = {"MEMAGENT_TRANSCRIPTS": "true"}
NOTHING = [Answer(text="nothing")] * 12
OWNER = scope_id(Scope(ScopeKind.USER, "juno"))


def user(text: str, message_id: str | None = None) -> Message:
    return Message("user", text, id=message_id)


def ai(text: str, message_id: str | None = None) -> Message:
    return Message("assistant", text, id=message_id)


def in_chat(turn: Turn, conversation: str) -> Turn:
    return replace(turn, conversation_id=conversation)


async def kept(world: Any, conversation: str = "c1", owner: str = OWNER) -> list[tuple[int, str, str]]:
    """Number, speaker and text of every row of a conversation."""
    index = world.memory.ports.passages.transcripts.index
    rows = await index.rows(owner, f"sessions/{conversation}")
    return [(row.first, row.label, row.text) for row in rows]


# -- keeping -------------------------------------------------------------------------------------------------------------


async def test_a_turn_is_kept_with_its_conversation_date_and_speaker(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        index = world.memory.ports.passages.transcripts.index
        (row,) = await index.rows(OWNER, "sessions/c1")
        assert (row.first, row.label, row.text, row.at) == (1, "user", "my cat is called Mochi", world.now[0])


@pytest.mark.parametrize("ids", [True, False])
async def test_an_answer_is_kept_once_with_the_turn_that_brings_it_whatever_window_comes(
    open_world: Any, *, ids: bool
) -> None:
    def chat(*said: str) -> tuple[Message, ...]:
        return tuple((ai if text.isupper() else user)(text, text if ids else None) for text in said)

    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn(chat("one"), message_id="one"))
        asked_at = world.now[0]
        world.later(days=1)
        await world.memory.observe(world.turn(chat("one", "ANSWER ONE", "two"), message_id="two"))
        # A backend that hands over its last messages only, and one that hands over again.
        await world.memory.observe(world.turn(chat("two", "ANSWER TWO", "three"), message_id="three"))
        await world.memory.observe(world.turn(chat("one", "ANSWER ONE", "two"), message_id="two"))
        await world.memory.observe(world.turn(chat("ANSWER TWO", "three"), message_id="three"))
        expected = ["one", "ANSWER ONE", "two", "ANSWER TWO", "three"]
        found = await kept(world)
        assert found == [
            (number, "assistant" if text.isupper() else "user", text)
            for number, text in enumerate(expected, 1)
        ]
        rows = await world.memory.ports.passages.transcripts.index.rows(OWNER, "sessions/c1")
        assert rows[1].at == asked_at, "an answer is as old as its question"


async def test_the_same_words_said_again_are_another_turn(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("yes"))
        await world.memory.observe(world.turn("yes"))
        assert [number for number, _, _ in await kept(world)] == [1, 2]


async def test_an_answer_handed_over_with_its_question_is_not_kept_again_later(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn((user("one"), ai("ONE"))))
        await world.memory.observe(world.turn((user("one"), ai("ONE"), user("two"))))
        assert [text for _, _, text in await kept(world)] == ["one", "ONE", "two"]


async def test_a_row_that_a_crash_left_unwritten_is_written_under_its_number(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        transcripts = world.memory.ports.passages.transcripts
        say = transcripts.index.say

        async def down(*_: Any) -> Any:
            raise StoreUnavailable("the store is away")

        transcripts.index.say = down
        first = world.turn("one")
        with pytest.raises(StoreUnavailable):
            await world.memory.observe(first)
        transcripts.index.say = say
        await world.memory.observe(world.turn("two"))
        await world.memory.observe(first)
        assert await kept(world) == [(1, "user", "one"), (2, "user", "two")]


async def test_two_workers_with_one_turn_keep_it_once(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        turns = [world.turn(f"number {n}", message_id=f"m{n % 3}") for n in range(3)] * 3
        keep = world.memory.ports.passages.transcripts.keep
        await asyncio.gather(*(keep(turn) for turn in turns))
        rows = await kept(world)
        assert [number for number, _, _ in rows] == [1, 2, 3]
        assert {text for _, _, text in rows} == {"number 0", "number 1", "number 2"}


async def test_turns_without_a_conversation_are_kept_too(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(in_chat(world.turn("one"), ""))
        assert [text for _, _, text in await kept(world, "unnamed")] == ["one"]


async def test_an_agent_with_a_memory_of_its_own_has_turns_of_its_own(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("my cat is called Mochi", agent_id="vet"))
        assert await kept(world) == []
        assert len(await kept(world, owner=scope_id(Scope(ScopeKind.USER, "juno", "vet")))) == 1
        assert (await world.memory.recall("juno", "my cat is called Mochi")).tail == ""
        assert "Mochi" in (await world.memory.recall("juno", "my cat is called Mochi", agent="vet")).tail


@pytest.mark.parametrize("extra", ["disabled: true", "personalize: false"])
async def test_memory_that_is_off_keeps_no_turns(open_world: Any, extra: str) -> None:
    async with open_world(extra=extra, environ=ON) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        assert await kept(world) == []


async def test_turns_are_kept_where_nothing_can_be_learned(open_world: Any) -> None:
    async with open_world(environ=ON) as world:
        memory = replace(world.memory.ports.settings.memory, agent=None)
        world.memory.ports = replace(
            world.memory.ports, settings=replace(world.memory.ports.settings, memory=memory)
        )
        receipt = await world.memory.observe(world.turn("my cat is called Mochi"))
        assert receipt.reason == "agent_not_usable"
        assert len(await kept(world)) == 1


async def test_of_a_user_who_is_opted_out_nothing_is_kept_nor_the_answer_to_it_later(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        await world.memory.set_personalization("juno", on=False)
        await world.memory.observe(world.turn("a secret"))
        assert len(await kept(world)) == 1
        found = await world.memory.context(in_chat(world.turn("my cat is called Mochi"), "c2"))
        assert (found.prefix, found.tail, found.note) == ("", "", RecallNote(error="opted_out"))
        assert (await world.memory.call_tool("juno", "memory_search", '{"query": "cat"}'))["disabled"] is True
        await world.memory.set_personalization("juno", on=True)
        await world.memory.observe(world.turn((user("a secret"), ai("I keep it"), user("thanks"))))
        assert [text for _, _, text in await kept(world)] == ["my cat is called Mochi", "thanks"]


# -- recalling -----------------------------------------------------------------------------------------------------------


async def test_what_was_said_comes_back_in_another_chat_as_data_with_its_source(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        found = await world.memory.context(in_chat(world.turn("what is my cat called"), "c2"))
        assert found.tail.startswith("<relevant-memories>")
        assert "[sessions/c1#L1-L1, user, 2026-03-02] my cat is called Mochi" in found.tail
        assert found.prefix == ""
        (passage,) = found.note.passages
        assert (passage["source"], passage["citation"]) == ("turns", "sessions/c1#L1-L1")
        assert 0 < passage["score"] <= 1
        assert "Mochi" not in str(found.note)
        assert found.note.passages_error is None


async def test_the_note_of_it_waits_in_the_queue_with_its_turn_and_stands_in_the_receipt(
    open_world: Any,
) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        turn = in_chat(world.turn("what is my cat called"), "c2")
        note = (await world.memory.context(turn)).note
        envelope = Envelope(None, window=5)
        assert envelope.open(envelope.seal(turn, note)) == (turn, note)
        await world.memory.observe(turn, recalled=note)
        kept = await world.memory.why("juno", turn.message_id)
        assert kept["recall"]["passages"] == [*note.passages]
        assert RecallNote.from_json(kept["recall"]) == note
        assert any("sessions/c1#L1-L1 came into the context" in line for line in sentences(kept))


async def test_a_turn_without_a_context_notes_no_passages(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        receipt = await world.memory.observe(in_chat(world.turn("what is my cat called"), "c2"))
        assert receipt.recall.searched
        assert receipt.recall.passages == ()


async def test_it_stands_behind_the_memories_that_came_back(open_world: Any) -> None:
    cat = calling("set_memory", key="cat", value="Juno's cat Mochi")
    async with open_world(cat, *NOTHING, environ={**ON, "MEMAGENT_DORMANT_AFTER_DAYS": "1"}) as world:
        await world.memory.observe(world.turn("Juno's cat Mochi"))
        for _ in range(3):
            world.later(days=1)
            await world.memory.observe(in_chat(world.turn("quarterly taxes"), "c2"))
        found = await world.memory.context(in_chat(world.turn("Juno's cat Mochi"), "c3"))
        assert found.note.tail == ("cat",)
        assert found.tail.index("</recalled_memories>") < found.tail.index("<relevant-memories>")


async def test_of_the_chat_that_goes_on_only_what_is_out_of_sight_comes_back(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        shown = (user("my  cat is called\nMochi"), ai("Nice"), user("what is my cat called"))
        assert (await world.memory.context(world.turn(shown))).tail == ""
        assert "Mochi" in (await world.memory.context(world.turn(shown[1:]))).tail


async def test_another_user_is_told_nothing(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        other = in_chat(world.turn("my cat is called Mochi", user="kim"), "c2")
        assert (await world.memory.context(other)).tail == ""
        told = await world.memory.call_tool("kim", "memory_search", '{"query": "cat Mochi"}')
        assert told == {"results": []}


@pytest.mark.parametrize(
    ("when", "start", "later"),
    [("off", False, False), ("start", True, False), ("turn", False, True), ("both", True, True)],
)
async def test_auto_recall_comes_when_it_is_wanted(
    open_world: Any, when: str, *, start: bool, later: bool
) -> None:
    async with open_world(*NOTHING, environ={**ON, "MEMAGENT_AUTO_RECALL": when}) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        first = in_chat(world.turn("what is my cat called"), "c2")
        second = in_chat(world.turn((user("hello"), ai("Hi"), user("what is my cat called"))), "c2")
        assert bool((await world.memory.context(first)).tail) is start
        assert bool((await world.memory.context(second)).tail) is later
        asked = await world.memory.recall("juno", "what is my cat called", commit=False, sources=["turns"])
        assert "Mochi" in asked.tail, "asked for by name it comes whatever is set"


async def test_t27_a_turn_embeds_its_question_once_for_all_sources(open_world: Any, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("The cat is called Mochi\n")
    async with open_world(*NOTHING, environ={**ON, "MEMAGENT_NOTES_DIR": str(tmp_path)}) as world:
        await world.memory.ports.passages.notes.sync()
        embedder = world.memory.ports.embedder
        asked: list[str] = []
        query = embedder.query

        async def counting(text: str) -> Any:
            asked.append(text)
            return await query(text)

        embedder.query = counting
        turn = world.turn("what is my cat called")
        found = await world.memory.context(turn)
        await world.memory.observe(turn, recalled=found.note)
        assert asked == ["what is my cat called"]
        assert [each["source"] for each in found.note.passages] == ["notes"]


async def test_recall_that_is_too_slow_leaves_keyed_memories_alone(open_world: Any) -> None:
    async with open_world(environ={**ON, "MEMAGENT_RECALL_BUDGET_MS": "400"}) as world:
        await world.memory.put("juno", "cat", "Juno's cat is called Mochi")

        async def forever(*_: Any, **__: Any) -> Any:
            await asyncio.Event().wait()

        world.memory.ports.passages.transcripts.index.live = forever
        found = await world.memory.context(world.turn("what is my cat called"))
        assert "Mochi" in found.prefix
        assert (found.note.passages_error, found.note.error, found.tail) == (OVER_BUDGET, None, "")


async def test_a_passage_store_that_is_away_or_a_bug_takes_nothing_from_keyed_memories(
    open_world: Any,
) -> None:
    async with open_world(environ={**ON, "MEMAGENT_VECTORS": "redis://127.0.0.1:1/0"}) as world:
        await world.memory.put("juno", "cat", "Juno's cat is called Mochi")
        found = await world.memory.context(world.turn("what is my cat called"))
        assert "Mochi" in found.prefix
        assert found.note.error is None

        def bug(*_: Any, **__: Any) -> Any:
            raise ZeroDivisionError

        world.memory.ports.passages.transcripts.index.live = bug
        found = await world.memory.context(world.turn("what is my cat called"))
        assert "Mochi" in found.prefix
        assert found.note.passages_error == "internal_error"


async def test_an_embedder_that_is_down_gives_no_silent_second_best(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))

        class Down:
            id, dimensions, floor = world.memory.ports.embedder.id, 64, 0.5

            async def query(self, text: str) -> Any:
                raise EmbedderFault("down")

        world.memory.ports = replace(world.memory.ports, embedder=Down())
        found = await world.memory.context(in_chat(world.turn("what is my cat called"), "c2"))
        assert (found.tail, found.note.error) == ("", "embedder_fault")


async def test_sources_are_asked_by_name(open_world: Any, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("Mochi the cat sleeps\n")
    async with open_world(*NOTHING, environ={**ON, "MEMAGENT_NOTES_DIR": str(tmp_path)}) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        await world.memory.put("juno", "cat", "Juno's cat is called Mochi")

        async def asked(*sources: str) -> tuple[bool, set[str]]:
            found = await world.memory.recall("juno", "Mochi the cat", commit=False, sources=sources)
            return bool(found.prefix), {each["source"] for each in found.note.passages}

        assert await asked("memories") == (True, set())
        assert await asked("turns") == (False, {"turns"})
        assert await asked("notes") == (False, {"notes"})
        assert await asked("memories", "turns", "notes") == (True, {"turns", "notes"})
        with pytest.raises(BadRequest, match="diaries"):
            await asked("diaries")


async def test_the_tools_of_a_model_search_and_read_what_was_said(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        assert [tool.name for tool in world.memory.tools] == ["memory_search", "memory_get"]
        told = await world.memory.call_tool("juno", "memory_search", '{"query": "what is my cat called?"}')
        (hit,) = told["results"]
        assert (hit["citation"], hit["source"], hit["speaker"]) == ("sessions/c1#L1-L1", "sessions", "user")
        read = await world.memory.call_tool("juno", "memory_get", '{"path": "sessions/c1"}')
        assert read["text"] == "2026-03-02 09:00 user: my cat is called Mochi"


async def test_without_transcripts_and_notes_there_are_no_tools(open_world: Any) -> None:
    async with open_world() as world:
        assert world.memory.tools == ()
        assert "error" in await world.memory.call_tool("juno", "memory_search", '{"query": "cat"}')


# -- never learned again -------------------------------------------------------------------------------------------------


async def test_what_auto_recall_put_in_is_neither_learned_nor_kept_again(open_world: Any) -> None:
    """A backend that glues context to the message, an assistant that repeats it, a model that keeps all it sees."""
    fact = "the spare key lies under the blue flowerpot"
    async with open_world(environ=ON) as world:
        shown: list[str] = []

        async def parrot(messages: Any, **_: Any) -> ModelReply:
            shown.append("\n".join(str(message.content) for message in messages))
            found = [call("set_memory", key="key_place", value=fact)] if fact in shown[-1] else []
            return ModelReply("", tuple(replace(each, id="c1") for each in found))

        world.model.complete = parrot
        await world.memory.ports.passages.keep(in_chat(world.turn(fact), "c0"), None)
        history: list[Message] = []
        for number in range(4):
            asked = f"where does the spare key lie, time {number}"
            turn = world.turn((*history, user(asked)))
            found = await world.memory.context(turn)
            assert fact in found.tail
            glued = replace(turn, messages=(*history, user(f"{asked}\n\n{found.tail}")))
            await world.memory.observe(glued, recalled=found.note)
            line = next(line for line in found.tail.splitlines() if fact in line)
            answer = (f"As said:\n{found.tail}", f"I found\n{line}", f"{fact.capitalize()}.", "Good")[number]
            history = [*history, user(f"{asked}\n\n{found.tail}"), ai(answer)]
            world.later(hours=1)
        assert len(shown) == 4
        assert not [prompt for prompt in shown if fact in prompt.lower()]
        assert await world.memory.list("juno") == ()
        said = [text for _, speaker, text in await kept(world) if speaker == "user"]
        assert said == [f"where does the spare key lie, time {number}" for number in range(4)]
        assert not [text for _, _, text in await kept(world) if "relevant-memories" in text]


async def test_the_user_may_say_it_again_and_have_it_remembered(open_world: Any) -> None:
    fact = "The spare key lies under the blue flowerpot"
    learned = calling("set_memory", key="key_place", value=fact)
    async with open_world(learned, environ=ON) as world:
        await world.memory.ports.passages.keep(in_chat(world.turn(fact), "c0"), None)
        turn = world.turn(fact)
        found = await world.memory.context(turn)
        assert fact in found.tail
        receipt = await world.memory.observe(turn, recalled=found.note)
        assert receipt.set == ("key_place",)


# -- erasing, and another embedder ---------------------------------------------------------------------------------------


async def test_an_erased_user_leaves_no_word_in_redis(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        for name in ("juno", "kim"):
            await world.memory.observe(world.turn("the xylophone", user=name))
            await world.memory.observe(world.turn("the xylophone again", user=name, agent_id="vet"))
        report = await world.memory.erase_user("juno", preferences=True)
        assert (report.erased["conversations"], report.erased["passages"], report.keys_left) == (2, 2, 0)
        assert await kept(world) == []
        assert len(await kept(world, owner=scope_id(Scope(ScopeKind.USER, "kim")))) == 1
        again = await world.memory.erase_user("juno")
        assert "passages" not in again.erased


async def test_turns_kept_before_are_erased_where_transcripts_are_off_now(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("the xylophone"))
        index = world.memory.ports.passages.transcripts.index
        world.memory.ports = replace(world.memory.ports, passages=None)
        assert (await world.memory.erase_user("juno")).erased["passages"] == 1
        assert not await index.rows(OWNER, "sessions/c1")


async def test_a_turn_under_way_at_an_erasure_takes_its_row_back(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        transcripts = world.memory.ports.passages.transcripts
        say = transcripts.index.say

        async def erased_meanwhile(owner: str, rows: Any) -> Any:
            await world.memory.erase_user("juno")
            return await say(owner, rows)

        transcripts.index.say = erased_meanwhile
        await transcripts.keep(world.turn("the xylophone"))
        assert await kept(world) == []


async def test_a_turn_that_an_erasure_closed_is_not_kept(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        turn = world.turn("the xylophone")
        await world.memory.erase_user("juno", closed={turn.own: [turn.message_id]})
        await world.memory.observe(turn)
        assert await kept(world) == []


async def test_an_erasure_that_failed_half_way_finds_the_rest_the_next_time(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        await world.memory.observe(world.turn("the xylophone"))
        from memagent.service.transcripts import erase_turns

        numbers = world.memory.ports.passages.transcripts._numbers
        vectors = world.memory.ports.passages.transcripts.index.vectors

        class Away:
            async def erase(self, owner: str) -> int:
                raise StoreUnavailable("away")

            async def close(self) -> None: ...

        with pytest.raises(StoreUnavailable):
            await erase_turns("juno", numbers=numbers, vectors=Away)  # type: ignore[arg-type]
        assert len(await kept(world)) == 1
        assert (await world.memory.erase_user("juno")).erased["passages"] == 1
        assert await vectors.live(OWNER, "turns") is None


async def test_another_embedder_brings_every_owner_up_to_date_at_start(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        for name in ("juno", "kim"):
            await world.memory.observe(world.turn("my cat is called Mochi", user=name))
        transcripts = world.memory.ports.passages.transcripts
        assert await transcripts.catch_up() == 0
        embedder = transcripts.index.embedder

        class Other:
            id, dimensions, floor = "other", embedder.dimensions, embedder.floor

            async def query(self, text: str) -> Any:
                return await embedder.query(text)

            async def passages(self, texts: Any) -> Any:
                return await embedder.passages(texts)

        transcripts.index.embedder = Other()
        assert await transcripts.catch_up() == 2
        assert (await transcripts.index.live(OWNER)).embedder == "other"
        assert len(await kept(world)) == 1
        assert await transcripts.catch_up() == 0


async def test_rows_written_while_the_embedder_is_down_get_their_vectors_later(open_world: Any) -> None:
    async with open_world(*NOTHING, environ=ON) as world:
        transcripts = world.memory.ports.passages.transcripts
        embedder = transcripts.index.embedder

        class Down:
            id, dimensions, floor = embedder.id, embedder.dimensions, embedder.floor

            async def passages(self, texts: Any) -> Any:
                raise EmbedderFault("down")

        transcripts.index.embedder = Down()
        await transcripts.keep(world.turn("my cat is called Mochi"))
        assert await transcripts.catch_up() == 0, "still down: logged, and tried at the next start"
        transcripts.index.embedder = embedder
        await transcripts.keep(world.turn("she sleeps all day"))
        assert await transcripts.catch_up() == 1
        live = await transcripts.index.live(OWNER)
        rows = await transcripts.index.rows(OWNER, "sessions/c1")
        found = await transcripts.index.vectors.fetch(live, [row.id for row in rows])
        assert [row.vector is not None for row in found.values()] == [True, True]


# -- where nothing of it is wanted -------------------------------------------------------------------------------------------


async def test_by_default_a_context_is_one_round_trip_and_no_turn_is_numbered(open_world: Any) -> None:
    async with open_world(*NOTHING) as world:
        await world.memory.context(world.turn("warm"))
        store = world.memory.ports.store
        sent: list[str] = []
        send = store.client.execute_command

        async def counting(*args: Any, **options: Any) -> Any:
            sent.append(args[0])
            return await send(*args, **options)

        store.client.execute_command = counting
        turn = world.turn("my cat is called Mochi")
        found = await world.memory.context(turn)
        assert sent == ["EVALSHA"]
        await world.memory.observe(turn, recalled=found.note)
        store.client.execute_command = send
        names = [name async for name in store.client.scan_iter(match=f"{store.prefix}:*")]
        assert names
        assert not [
            name
            for name in names
            if name.startswith((f"{store.prefix}:n:".encode(), f"{store.prefix}:spoken".encode()))
        ]


def test_by_default_nothing_of_it_is_loaded() -> None:
    code = "import sys; import memagent.wiring, memagent.service; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(found.stdout.split())
    assert "memagent.service.recall" in loaded
    parts = (
        "service.passages",
        "service.transcripts",
        "store.numbers",
        "sessions.auto_recall",
        "sessions.vectors",
    )
    assert not loaded & {f"memagent.{part}" for part in parts}


async def test_a_notes_folder_that_is_not_there_is_told_at_once(open_world: Any, tmp_path: Path) -> None:
    from memagent.errors import ConfigUnusable

    with pytest.raises(ConfigUnusable, match="MEMAGENT_NOTES_DIR"):
        async with open_world(environ={"MEMAGENT_NOTES_DIR": str(tmp_path / "gone")}):
            pass


async def test_lancedb_keeps_turns_in_a_folder(open_world: Any, tmp_path: Path) -> None:
    async with open_world(*NOTHING, environ={**ON, "MEMAGENT_VECTORS": str(tmp_path / "vectors")}) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        assert "Mochi" in (await world.memory.context(in_chat(world.turn("my cat"), "c2"))).tail
        assert any((tmp_path / "vectors").iterdir())
        assert (await world.memory.erase_user("juno")).erased["passages"] == 1


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_windows_and_retries_come_a_conversation_is_kept_as_it_was(
    open_world: Any, seed: int
) -> None:
    """Last messages only, sometimes with ids and sometimes not, everything now and then handed over again."""
    dice = random.Random(seed)
    said = [(f"question {n}", f"answer {n}") for n in range(8)]
    async with open_world(environ=ON) as world:
        keep = world.memory.ports.passages.transcripts.keep
        history: list[Message] = []
        handed_over: list[Turn] = []
        for question, answer in said:
            history.append(user(question, dice.choice([question, None])))
            window = tuple(history[-dice.choice([3, 4, 7, 100]) :])
            handed_over.append(world.turn(window, message_id=question))
            for turn in [handed_over[-1], *dice.sample(handed_over, dice.randint(0, len(handed_over)))]:
                await keep(turn)
            history.append(ai(answer, dice.choice([answer, None])))
        whole = [text for pair in said for text in pair][:-1]
        assert [(number, text) for number, _, text in await kept(world)] == list(enumerate(whole, 1))
