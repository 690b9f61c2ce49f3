"""What a model is shown of a chat: the newest messages that fit a number of messages or of tokens.

A memory is a window, not the history: every operation reads the store (L36), and what leaves the window stays in the
store's history beside it (L34).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from memagent.errors import BadRequest
from memagent.memory import Message
from memagent.sessions.chat_stores import HistoryEntry, SingleSlotChatMemoryStore, replay, slot
from memagent.sessions.estimator import O200kEstimator
from memagent.sessions.eviction import SYSTEM_ROLES, fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.sessions.chat_stores import ChatMemoryStore
    from memagent.sessions.estimator import TokenCountEstimator

DEFAULT_ID = "default"

Limit = int | Callable[[Hashable], int]
"""A number, or a function of the memory's id that is asked again on every read and write (L24, L25)."""


class ChatMemory(Protocol):
    """The messages of one chat that a model is shown."""

    @property
    def id(self) -> Hashable: ...

    async def add(self, *messages: Message | Iterable[Message] | None) -> None:
        """Add messages in order; nothing and None add nothing (L28)."""
        ...

    async def set(self, messages: Iterable[Message]) -> None:
        """Put `messages` in the place of all; raises `BadRequest` for none (L29)."""
        ...

    async def messages(self) -> tuple[Message, ...]: ...

    async def clear(self) -> None: ...

    def fit(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """What of `messages` this memory would show; stores nothing."""
        ...


class _Window(ABC):
    def __init__(
        self,
        *,
        id: Hashable,  # noqa: A002  the name of the thing itself
        store: ChatMemoryStore | None,
        system_first: bool,
        turn_aligned: bool,
    ) -> None:
        slot(id)
        self._id = id
        self._store = SingleSlotChatMemoryStore(id) if store is None else store
        self._system_first = system_first
        self._turn_aligned = turn_aligned

    @property
    def id(self) -> Hashable:
        return self._id

    @property
    def store(self) -> ChatMemoryStore:
        return self._store

    @abstractmethod
    def fit(self, messages: Sequence[Message]) -> tuple[Message, ...]: ...

    async def add(self, *messages: Message | Iterable[Message] | None) -> None:
        """Add messages in order, as one uninterrupted step: one read and one write for each (L33).

        A system message that is there already changes nothing (L07); another one takes the old one's place, at the end or
        at the head with `system_first` (L08, L09).
        """
        new = list(_flat(messages))
        if not new:
            return
        async with self._store.lock(self._id):
            for message in new:
                await self._add(message)

    async def _add(self, message: Message) -> None:
        window = list(await self._store.get_messages(self._id))
        if message.role in SYSTEM_ROLES:
            old = next((each for each in window if each.role in SYSTEM_ROLES), None)
            if old is not None and replace(old, id=None) == replace(message, id=None):
                return
            if old is not None:
                window.remove(old)
        first = self._system_first and message.role in SYSTEM_ROLES
        window.insert(0 if first else len(window), message)
        kept = self.fit(window)
        await self._store.append_history(self._id, HistoryEntry("add", (message,)))
        await self._store.update_messages(self._id, kept)

    async def set(self, messages: Iterable[Message]) -> None:
        """Put `messages` in the place of all, trimmed to the limit: no read, one write (L33).

        What is put in is taken as it is: system messages are not made one (L31), results without a call not repaired (L16).
        """
        new = tuple(messages or ())
        if not new:
            raise BadRequest("there is nothing to set; clear() empties a memory")
        kept = self.fit(new)
        async with self._store.lock(self._id):
            await self._store.append_history(self._id, HistoryEntry("set", new))
            await self._store.update_messages(self._id, kept)

    async def messages(self) -> tuple[Message, ...]:
        """The window as of now, within the limit as of now; trimming it here is not written back (L26)."""
        return self.fit(tuple(await self._store.get_messages(self._id)))

    async def clear(self) -> None:
        """Let the window go; clearing twice is clearing once (L32). The history stays."""
        async with self._store.lock(self._id):
            await self._store.append_history(self._id, HistoryEntry("clear"))
            await self._store.delete_messages(self._id)

    async def erase(self) -> None:
        """Forget the window and the history, for good."""
        async with self._store.lock(self._id):
            await self._store.delete_messages(self._id)
            await self._store.erase_history(self._id)

    async def history(self) -> tuple[Message, ...]:
        """Every message that was ever added or set, oldest first; raises `NotFound` when the store keeps none."""
        return replay(await self._store.history(self._id))


class MessageWindowChatMemory(_Window):
    """The newest `max_messages` messages. `turn_aligned` lets the window open on a user message (L15)."""

    def __init__(
        self,
        *,
        max_messages: Limit,
        id: Hashable = DEFAULT_ID,  # noqa: A002  the name of the thing itself
        store: ChatMemoryStore | None = None,
        system_first: bool = False,
        turn_aligned: bool = False,
    ) -> None:
        super().__init__(id=id, store=store, system_first=system_first, turn_aligned=turn_aligned)
        self._max_messages = max_messages
        _checked(max_messages, id, "max_messages")

    def fit(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        return fit(
            messages,
            total=len(messages),
            limit=_checked(self._max_messages, self._id, "max_messages"),
            weigh=lambda _: 1,
            turn_aligned=self._turn_aligned,
        )


class TokenWindowChatMemory(_Window):
    """The newest messages within `max_tokens`. Messages are whole or gone (L18); exactly full fits (L20)."""

    def __init__(
        self,
        *,
        max_tokens: Limit,
        estimator: TokenCountEstimator | None = None,
        id: Hashable = DEFAULT_ID,  # noqa: A002  the name of the thing itself
        store: ChatMemoryStore | None = None,
        system_first: bool = False,
        turn_aligned: bool = False,
    ) -> None:
        super().__init__(id=id, store=store, system_first=system_first, turn_aligned=turn_aligned)
        self._max_tokens = max_tokens
        self._estimator = O200kEstimator() if estimator is None else estimator
        _checked(max_tokens, id, "max_tokens")

    def fit(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        return fit(
            messages,
            total=self._estimator.count_messages(messages) if messages else 0,
            limit=_checked(self._max_tokens, self._id, "max_tokens"),
            weigh=self._estimator.count_message,
            turn_aligned=self._turn_aligned,
        )


def _checked(limit: Limit | None, memory_id: Hashable, name: str) -> int:
    """The limit as of now; raises `BadRequest` unless it is a whole number over 0 (L02, L27)."""
    value = limit(memory_id) if callable(limit) else limit
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise BadRequest(f"{name} of the memory {memory_id!r} must be a whole number over 0, found {value!r}")
    return value


def _flat(messages: Iterable[Message | Iterable[Message] | None]) -> Iterable[Message]:
    for each in messages:
        if isinstance(each, Message):
            yield each
        elif each is not None:
            yield from each
