from __future__ import annotations

import asyncio
from typing import Any

import pytest

from memagent.errors import ModelUnavailable
from memagent.llm.script import Answer, call, calling
from memagent.memory import Message, Source
from memagent.service.receipt import Decision

MOCHI = calling("set_memory", key="pets", value="Juno's cat is called Mochi")


async def test_a_turn_in_is_a_memory_out(open_world: Any) -> None:
    async with open_world(MOCHI) as world:
        receipt = await world.memory.observe(world.turn("Please remember my cat is called Mochi"))
        assert (receipt.decision, receipt.set, receipt.cost.calls) == (Decision.RAN, ("pets",), 1)
        (kept,) = await world.memory.list("juno")
        assert (kept.key, kept.value, kept.source) == ("pets", "Juno's cat is called Mochi", Source.AGENT)
        assert kept.evidence.quote == "Please remember my cat is called Mochi"
        assert (kept.evidence.conversation_id, kept.searched) == ("c1", True)


async def test_the_next_turn_recalls_it(open_world: Any) -> None:
    async with open_world(MOCHI) as world:
        await world.memory.observe(world.turn("Please remember my cat is called Mochi"))
        context = await world.memory.context(world.turn("How is Mochi the cat?"))
        assert "Juno's cat is called Mochi" in context.prefix
        assert context.tail == ""
        assert [match["used"] for match in context.note.matches] == [True]


async def test_a_message_is_learned_from_once(open_world: Any) -> None:
    async with open_world(MOCHI, MOCHI) as world:
        turn = world.turn("my cat is called Mochi")
        first = await world.memory.observe(turn)
        second = await world.memory.observe(turn)
        assert (first.decision, second.decision, second.reason) == (
            Decision.RAN,
            Decision.SKIPPED,
            "already_seen",
        )
        assert len(world.model.requests) == 1


async def test_a_message_handed_over_twice_at_once_is_applied_once(open_world: Any) -> None:
    async with open_world(MOCHI, MOCHI) as world:
        turn = world.turn("my cat is called Mochi")
        receipts = await asyncio.gather(*(world.memory.observe(turn) for _ in range(4)))
        assert sorted(receipt.decision for receipt in receipts).count(Decision.RAN) == 1
        assert len(await world.memory.history("juno")) == 1


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ("disabled: true", "disabled"),
        ("personalize: false", "not_personalized"),
    ],
)
async def test_a_switch_in_the_file_skips_with_its_reason(open_world: Any, extra: str, reason: str) -> None:
    async with open_world(MOCHI, extra=extra) as world:
        receipt = await world.memory.observe(world.turn("my cat is called Mochi"))
        assert (receipt.decision, receipt.reason) == (Decision.SKIPPED, reason)
        assert world.model.requests == []
        assert (await world.memory.context(world.turn("Mochi?"))).prefix == ""


async def test_an_opted_out_user_is_neither_read_nor_written(open_world: Any) -> None:
    async with open_world(MOCHI) as world:
        await world.memory.put("juno", "food", "Juno likes soup")
        await world.memory.set_personalization("juno", on=False)
        receipt = await world.memory.observe(world.turn("my cat is called Mochi"))
        assert (receipt.decision, receipt.reason) == (Decision.SKIPPED, "opted_out")
        context = await world.memory.context(world.turn("soup?"))
        assert (context.prefix, context.tail, context.note.error) == ("", "", "opted_out")
        assert [memory.key for memory in await world.memory.list("juno")] == ["food"]


async def test_consent_that_is_taken_back_while_the_model_thinks_is_honoured(open_world: Any) -> None:
    async with open_world(MOCHI) as world:
        ask = world.model.complete

        async def slow(*given: Any, **rest: Any) -> Any:
            await world.memory.set_personalization("juno", on=False)
            return await ask(*given, **rest)

        world.model.complete = slow
        receipt = await world.memory.observe(world.turn("my cat is called Mochi"))
        assert (receipt.decision, receipt.reason) == (Decision.SKIPPED, "opted_out")
        assert await world.memory.list("juno") == ()


async def test_a_model_that_is_down_is_a_receipt_that_says_so_and_may_be_tried_again(open_world: Any) -> None:
    async with open_world(MOCHI) as world:
        ask = world.model.complete

        async def down(*_: Any, **__: Any) -> Any:
            raise ModelUnavailable("the endpoint does not answer")

        world.model.complete = down
        turn = world.turn("my cat is called Mochi")
        receipt = await world.memory.observe(turn)
        assert receipt.decision is Decision.FAILED
        assert receipt.error == {
            "code": "model_unavailable",
            "message": "the endpoint does not answer",
            "retryable": True,
        }
        world.model.complete = ask
        assert (await world.memory.observe(turn)).set == ("pets",)


async def test_a_refusal_goes_back_to_the_model_and_the_receipt_keeps_it(open_world: Any) -> None:
    wrong = calling("set_memory", key="animals", value="Juno's cat is called Mochi")
    async with open_world(wrong, MOCHI, extra="validKeys: [pets]") as world:
        receipt = await world.memory.observe(world.turn("my cat is called Mochi"))
        assert (receipt.set, receipt.cost.calls) == (("pets",), 2)
        assert receipt.refused == ({"key": "animals", "why": "invalid_key"},)


async def test_several_calls_in_one_answer_run_in_order_against_the_limit(open_world: Any) -> None:
    answer = Answer(
        calls=(
            call("set_memory", key="a", value="one two three four five"),
            call("set_memory", key="b", value="six seven eight nine ten"),
            call("set_memory", key="a", value="one"),
            call("set_memory", key="b", value="six seven eight nine ten"),
        )
    )
    async with open_world(answer, Answer(text="done"), extra="tokenLimit: 7") as world:
        receipt = await world.memory.observe(world.turn("numbers"))
        assert [tool["outcome"] for tool in receipt.tools[:3]] == ["set", "would_exceed", "set"]
        assert {memory.key: memory.value for memory in await world.memory.list("juno")}["a"] == "one"
        assert (await world.memory.totals("juno")).tokens <= 7


async def test_what_only_the_assistant_said_does_not_replace_what_the_user_said(open_world: Any) -> None:
    guess = calling("set_memory", key="pets", value="Juno owns three parrots named Kiki")
    async with open_world(MOCHI, guess) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        chat = (
            Message("user", "Tell me a story"),
            Message("assistant", "Juno owns three parrots named Kiki"),
            Message("user", "nice"),
        )
        receipt = await world.memory.observe(world.turn(chat))
        assert receipt.refused == ({"key": "pets", "why": "user_said_otherwise"},)
        assert (await world.memory.get("juno", "pets")).value == "Juno's cat is called Mochi"


async def test_five_hundred_turns_with_a_parrot_copy_nothing(open_world: Any) -> None:
    """A model that stores whatever it sees, under a new key each time, beside an assistant that repeats its own recall."""

    async with open_world() as world:
        number = 0

        async def parrot(messages: Any, **_: Any) -> Any:
            nonlocal number
            number += 1
            seen = "\n".join(str(message.content) for message in messages)
            facts = [line for line in FACTS if line in seen]
            calls = tuple(
                call("set_memory", key=f"fact_{number}_{i}", value=fact) for i, fact in enumerate(facts)
            )
            from memagent.llm import ModelReply

            return ModelReply(
                "", tuple(type(each)(f"c{i}", each.name, each.arguments) for i, each in enumerate(calls))
            )

        world.model.complete = parrot
        history: list[Message] = []
        for index in range(500):
            said = (
                FACTS[index // 4]
                if index < 4 * len(FACTS) and index % 4 == 0
                else f"Tell me more, part {index}"
            )
            history.append(Message("user", said))
            turn = world.turn(tuple(history[-12:]))
            context = await world.memory.context(turn)
            await world.memory.observe(turn, recalled=context.note)
            history.append(Message("assistant", f"As I remember:\n{context.prefix}\n{context.tail}"))
            world.later(hours=3)
        values = [memory.value for memory in await world.memory.list("juno")]
        assert sorted(values) == sorted(FACTS)


FACTS = (
    "Juno's cat is called Mochi",
    "Juno dị ứng với đậu phộng",
    "Juno arbeitet in Berlin an einer Bibliothek",
    "Juno suka kopi tanpa gula",
)


async def test_exactly_one_embedding_request_searches_per_turn(open_world: Any) -> None:
    async with open_world(MOCHI, Answer(text="nothing")) as world:
        asked: list[str] = []
        embed = world.memory.ports.embedder.query

        async def counted(text: str) -> Any:
            asked.append(text)
            return await embed(text)

        world.memory.ports.embedder.query = counted
        turn = world.turn("my cat is called Mochi")
        context = await world.memory.context(turn)
        await world.memory.observe(turn, recalled=context.note)
        await world.memory.observe(world.turn("and she is six"))
        assert asked == ["my cat is called Mochi", "and she is six"]


@pytest.mark.parametrize(
    "messages",
    [
        (Message("user", None),),
        (Message("user", "   "),),
        (Message("user", ({"type": "image_url", "image_url": {"url": "data:"}},)),),
        (Message("assistant", "hello"),),
    ],
)
async def test_a_turn_without_words_of_the_user_is_skipped(open_world: Any, messages: Any) -> None:
    async with open_world(MOCHI) as world:
        receipt = await world.memory.observe(world.turn(messages))
        assert (receipt.decision, receipt.reason) == (Decision.SKIPPED, "nothing_said")


async def test_a_turn_of_ten_thousand_messages_reads_its_end(open_world: Any) -> None:
    async with open_world(MOCHI) as world:
        chat = tuple(Message("user", f"message {number}") for number in range(9_999))
        receipt = await world.memory.observe(world.turn((*chat, Message("user", "my cat is called Mochi"))))
        assert receipt.set == ("pets",)
