"""Messages, weights and doubles that the chat memory tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.llm import ModelReply
from memagent.memory import Message, ToolCall
from memagent.sessions.chat_stores import ChatMemoryStore, InMemoryChatMemoryStore

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from memagent.llm import ToolSpec


def user(text: str) -> Message:
    return Message("user", text)


def ai(text: str) -> Message:
    return Message("assistant", text)


def system(text: str = "S") -> Message:
    return Message("system", text)


def call(*ids: str) -> Message:
    return Message("assistant", tool_calls=tuple(ToolCall(each, "look_up", "{}") for each in ids))


def result(of: str, text: str = "found") -> Message:
    return Message("tool", text, tool_call_id=of)


class Weights:
    """Estimates by table: a message's first token is its weight, as in `12 words`; a request costs 3 more."""

    def __init__(self, constant: int = 3) -> None:
        self.constant = constant
        self.requests = 0

    def count_text(self, text: str, /) -> int:
        return int(text.split(maxsplit=1)[0])

    def count_message(self, message: Message, /) -> int:
        if message.tool_calls:
            return int(message.tool_calls[0].name)
        return self.count_text(str(message.content))

    def count_messages(self, messages: Iterable[Message], /) -> int:
        self.requests += 1
        return self.constant + sum(map(self.count_message, messages))


def weighed_call(weight: int, *ids: str) -> Message:
    return Message("assistant", tool_calls=tuple(ToolCall(each, str(weight), "{}") for each in ids))


class CountingStore(InMemoryChatMemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.hits = {"get": 0, "update": 0, "delete": 0}

    async def get_messages(self, memory_id: Hashable) -> tuple[Message, ...]:
        self.hits["get"] += 1
        return await super().get_messages(memory_id)

    async def update_messages(self, memory_id: Hashable, messages: Sequence[Message]) -> None:
        self.hits["update"] += 1
        await super().update_messages(memory_id, messages)

    async def delete_messages(self, memory_id: Hashable) -> None:
        self.hits["delete"] += 1
        await super().delete_messages(memory_id)


class ThreeMethodStore(ChatMemoryStore):
    """What somebody writes who follows the seed: no constructor of ours, no lock, no history."""

    def __init__(self) -> None:
        self.rows: dict[Hashable, list[Message]] = {}

    async def get_messages(self, memory_id: Hashable) -> list[Message]:
        return list(self.rows.get(memory_id, []))

    async def update_messages(self, memory_id: Hashable, messages: Sequence[Message]) -> None:
        self.rows[memory_id] = list(messages)

    async def delete_messages(self, memory_id: Hashable) -> None:
        self.rows.pop(memory_id, None)


class Answers:
    """A chat model that gives one answer after the other and keeps what it was shown; an exception is raised."""

    def __init__(self, *answers: str | ModelReply | Exception) -> None:
        self.answers = list(answers)
        self.shown: list[tuple[Message, ...]] = []

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> ModelReply:
        self.shown.append(tuple(messages))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, ModelReply) else ModelReply(answer)
