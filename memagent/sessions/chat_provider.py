"""One memory per id: of a user, a conversation, or whatever the id names."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from memagent.errors import Conflict
from memagent.sessions.chat_stores import slot

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from memagent.sessions.chat_memory import ChatMemory


class ChatMemoryProvider:
    """Makes each id's memory at its first use, once, also when many threads ask at the same time (L43).

    `make` gets the id and passes it on to the memory. A memory with another id is refused with `Conflict`: with a shared
    store it would show one user another's words (L46).
    """

    def __init__(self, make: Callable[[Hashable], ChatMemory]) -> None:
        self._make = make
        self._memories: dict[Hashable, ChatMemory] = {}
        self._lock = threading.RLock()

    def __call__(self, memory_id: Hashable) -> ChatMemory:
        """The memory of the id; the same id gives the same memory (L42). Raises `BadRequest` for None."""
        key = slot(memory_id)
        with self._lock:
            if key not in self._memories:
                memory = self._make(memory_id)
                if slot(memory.id) != key:
                    raise Conflict(
                        f"the memory made for {memory_id!r} has the id {memory.id!r}; "
                        "pass the id on: lambda id: MessageWindowChatMemory(id=id, ...)"
                    )
                self._memories[key] = memory
            return self._memories[key]

    def get(self, memory_id: Hashable) -> ChatMemory | None:
        """The memory of the id if it was used before; makes none."""
        with self._lock:
            return self._memories.get(slot(memory_id))

    def evict(self, memory_id: Hashable) -> bool:
        """Let the memory go, not what its store holds (L44); whether there was one."""
        with self._lock:
            return self._memories.pop(slot(memory_id), None) is not None
