"""Talking to a model with a memory: one call a turn for the caller, the tool rounds in between, the turn kept whole."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memagent.errors import BadRequest, ModelReplyInvalid
from memagent.memory import Message
from memagent.sessions.chat_memory import DEFAULT_ID
from memagent.sessions.chat_stores import slot
from memagent.sessions.locks import IdLocks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Sequence

    from memagent.llm import ChatModel, ModelReply, ToolSpec
    from memagent.sessions.chat_memory import ChatMemory
    from memagent.sessions.chat_provider import ChatMemoryProvider

MAX_TOOL_ROUNDS = 8
"""A model that still calls tools after this many rounds goes in circles."""


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model may call: `run` gets the arguments as the model wrote them and returns the result's text."""

    spec: ToolSpec
    run: Callable[[str], Awaitable[str]]


class ChatService:
    """A model with one memory for all, or with one memory per id from `provider`, or with none.

    `system` goes ahead of every turn. `augment` turns the user's text into what the model is shown (retrieved passages
    around it, say); that is also what is kept, unless `store_augmented` is off (L50). Turns of one id run one after the
    other.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        memory: ChatMemory | None = None,
        provider: ChatMemoryProvider | None = None,
        system: str = "",
        tools: Sequence[Tool] = (),
        augment: Callable[[str], Awaitable[str]] | None = None,
        store_augmented: bool = True,
    ) -> None:
        if memory is not None and provider is not None:
            raise BadRequest("give one memory for all or a provider of one per id, not both")
        self._model = model
        self._memory = memory
        self._provider = provider
        self._system = system
        self._tools = {tool.spec.name: tool for tool in tools}
        self._augment = augment
        self._store_augmented = store_augmented
        self._turns = IdLocks()

    async def chat(self, text: str, *, memory_id: Hashable = DEFAULT_ID) -> str:
        """Answer `text`.

        The turn is kept as a whole or, when the model or a tool raises, not at all, so a retry asks once (L49). The model
        sees no more than the memory's limit (L48). Raises `BadRequest` for an id without a provider, before the model is
        asked (L40), and whatever the model raises.
        """
        memory = self._memory_of(memory_id)
        async with AsyncExitStack() as stack:
            if memory is not None:
                await stack.enter_async_context(self._turns.hold(slot(memory.id)))
                if self._system:
                    await memory.add(Message("system", self._system))
            shown = Message("user", text if self._augment is None else await self._augment(text))
            turn = await self._turn(memory, shown)
            if memory is not None:
                kept = shown if self._store_augmented else Message("user", text)
                await memory.add(kept, turn[1:])
        return str(turn[-1].content)

    def memory(self, memory_id: Hashable = DEFAULT_ID) -> ChatMemory | None:
        """The memory of the id as far as it was used; makes none (L45)."""
        if self._provider is not None:
            return self._provider.get(memory_id)
        shared = self._memory is not None and slot(memory_id) in (slot(self._memory.id), slot(DEFAULT_ID))
        return self._memory if shared else None

    def evict(self, memory_id: Hashable) -> bool:
        """Let the id's memory go, not what its store holds; whether there was one. A shared memory never goes (L45)."""
        return self._provider is not None and self._provider.evict(memory_id)

    def _memory_of(self, memory_id: Hashable) -> ChatMemory | None:
        if self._provider is not None:
            return self._provider(memory_id)
        if slot(memory_id) == slot(DEFAULT_ID) or self.memory(memory_id) is not None:
            return self._memory
        raise BadRequest(f"the memory id {memory_id!r} needs a provider: ChatService(model, provider=...)")

    async def _turn(self, memory: ChatMemory | None, user: Message) -> list[Message]:
        """The user's message, the rounds of tools, the answer."""
        turn = [user]
        specs = tuple(tool.spec for tool in self._tools.values())
        for _ in range(MAX_TOOL_ROUNDS + 1):
            reply = await self._model.complete(await self._shown(memory, turn), tools=specs)
            turn.append(Message("assistant", reply.text or None, tool_calls=reply.tool_calls))
            if not reply.tool_calls:
                turn[-1] = Message("assistant", reply.text)
                return turn
            turn.extend(await self._results(reply))
        raise ModelReplyInvalid(f"the model still calls tools after {MAX_TOOL_ROUNDS} rounds")

    async def _shown(self, memory: ChatMemory | None, turn: Sequence[Message]) -> tuple[Message, ...]:
        if memory is None:
            system = (Message("system", self._system),) if self._system else ()
            return (*system, *turn)
        return memory.fit((*await memory.messages(), *turn))

    async def _results(self, reply: ModelReply) -> list[Message]:
        results = []
        for call in reply.tool_calls:
            tool = self._tools.get(call.name)
            known = ", ".join(self._tools) or "none"
            text = await tool.run(call.arguments) if tool else f"unknown tool; known tools: {known}"
            results.append(Message("tool", text, name=call.name, tool_call_id=call.id))
        return results
