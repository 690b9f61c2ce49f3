"""Where chat memories keep their windows: the port, and the stores that need no server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from memagent.errors import BadRequest, Conflict, NotFound, StoreFault
from memagent.sessions import jsonl
from memagent.sessions.locks import FileLocks, IdLocks, finished
from memagent.sessions.message_json import from_json, to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable, Iterable, Mapping, Sequence
    from pathlib import Path

    from memagent.memory import Message

MAX_NAME_CHARS = 120
"""Of a file named after an id; the file systems in use stop at 255 bytes."""
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One thing that happened to a memory: messages were added (`add`), put in place (`set`), or all let go (`clear`)."""

    op: str
    messages: tuple[Message, ...] = ()


class ChatMemoryStore(Protocol):
    """Windows under ids. `get_messages` of an unknown id is empty and leaves no trace (L35, L37).

    A store of one's own inherits from this and writes the three methods of the window; it then has a lock for the tasks
    of this process, and keeps no history. Stores shared by processes override `lock`.
    """

    async def get_messages(self, memory_id: Hashable) -> Sequence[Message]:
        """The complete current window."""
        ...

    async def update_messages(self, memory_id: Hashable, messages: Sequence[Message]) -> None:
        """Put `messages` in the place of the whole window."""
        ...

    async def delete_messages(self, memory_id: Hashable) -> None:
        """Let the window go; its history stays."""
        ...

    @asynccontextmanager
    async def lock(self, memory_id: Hashable) -> AsyncIterator[None]:
        """Hold the id: nobody else reads, changes and writes its window meanwhile (L39). Not reentrant."""
        # Born with the first use: a store of one's own need not call our constructor. `setdefault` is atomic.
        locks: IdLocks = self.__dict__.setdefault("_locks", IdLocks())
        async with locks.hold(slot(memory_id)):
            yield

    async def append_history(self, memory_id: Hashable, entry: HistoryEntry) -> None:
        """Keep what happened, for good (L34). Here: nothing."""

    async def history(self, memory_id: Hashable) -> Sequence[HistoryEntry]:  # noqa: ARG002  for those who override
        """What happened, oldest first."""
        raise NotFound(f"{type(self).__name__} keeps no history: override append_history and history")

    async def erase_history(self, memory_id: Hashable) -> None:
        """Forget what happened, when somebody asks to be forgotten."""


class InMemoryChatMemoryStore(ChatMemoryStore):
    """Windows and histories in this process, gone with it."""

    def __init__(self) -> None:
        self._windows: dict[Hashable, tuple[Message, ...]] = {}
        self._histories: dict[Hashable, list[HistoryEntry]] = {}

    async def get_messages(self, memory_id: Hashable) -> tuple[Message, ...]:
        return self._windows.get(slot(memory_id), ())

    async def update_messages(self, memory_id: Hashable, messages: Sequence[Message]) -> None:
        self._windows[slot(memory_id)] = tuple(messages)

    async def delete_messages(self, memory_id: Hashable) -> None:
        self._windows.pop(slot(memory_id), None)

    async def append_history(self, memory_id: Hashable, entry: HistoryEntry) -> None:
        self._histories.setdefault(slot(memory_id), []).append(entry)

    async def history(self, memory_id: Hashable) -> tuple[HistoryEntry, ...]:
        return tuple(self._histories.get(slot(memory_id), ()))

    async def erase_history(self, memory_id: Hashable) -> None:
        self._histories.pop(slot(memory_id), None)


class SingleSlotChatMemoryStore(InMemoryChatMemoryStore):
    """What a memory without a store gets: room for one id. Another id is a mistake and raises `Conflict` (L38)."""

    def __init__(self, memory_id: Hashable) -> None:
        super().__init__()
        self.memory_id = memory_id

    async def get_messages(self, memory_id: Hashable) -> tuple[Message, ...]:
        self._check(memory_id)
        return await super().get_messages(memory_id)

    async def update_messages(self, memory_id: Hashable, messages: Sequence[Message]) -> None:
        self._check(memory_id)
        await super().update_messages(memory_id, messages)

    async def delete_messages(self, memory_id: Hashable) -> None:
        self._check(memory_id)
        await super().delete_messages(memory_id)

    def _check(self, memory_id: Hashable) -> None:
        if slot(memory_id) != slot(self.memory_id):
            raise Conflict(
                f"this store belongs to the memory {self.memory_id!r} and was asked for {memory_id!r}; "
                "give both memories one store that knows ids"
            )


class JsonlChatMemoryStore(ChatMemoryStore):
    """Files in `folder`: `<id>.jsonl` is the window, `<id>.history.jsonl` what happened, appended only.

    Safe for several processes. With `sync` a write is on the disk when it returns. Files that cannot be read raise
    `StoreFault`, naming the line: a window is never taken for empty because it is damaged.
    """

    def __init__(self, folder: Path, *, sync: bool = True) -> None:
        self.folder = folder
        self._sync = sync
        self._files = FileLocks(folder)

    async def get_messages(self, memory_id: Hashable) -> tuple[Message, ...]:
        return await asyncio.to_thread(self._read, self._window(memory_id))

    async def update_messages(self, memory_id: Hashable, messages: Sequence[Message]) -> None:
        content = b"".join(jsonl.encode(to_json(message)) + jsonl.NEWLINE for message in messages)
        await finished(jsonl.replace, self._window(memory_id), content, sync=self._sync)

    async def delete_messages(self, memory_id: Hashable) -> None:
        await _unlink(self._window(memory_id))

    async def erase_history(self, memory_id: Hashable) -> None:
        await _unlink(self._history(memory_id))

    @asynccontextmanager
    async def lock(self, memory_id: Hashable) -> AsyncIterator[None]:
        async with self._files.hold(file_name(memory_id)):
            yield

    async def append_history(self, memory_id: Hashable, entry: HistoryEntry) -> None:
        path = self._history(memory_id)
        await asyncio.to_thread(self.folder.mkdir, parents=True, exist_ok=True)
        await finished(jsonl.append, path, [entry_to_json(entry)], sync=self._sync)

    async def history(self, memory_id: Hashable) -> tuple[HistoryEntry, ...]:
        found = await asyncio.to_thread(lambda: list(jsonl.lines(self._history(memory_id))))
        # A torn line is an append that was never acknowledged.
        return tuple(entry_from_json(line.value) for line in found if line.value is not None)

    def _window(self, memory_id: Hashable) -> Path:
        return self.folder / f"{file_name(memory_id)}.jsonl"

    def _history(self, memory_id: Hashable) -> Path:
        return self.folder / f"{file_name(memory_id)}.history.jsonl"

    def _read(self, path: Path) -> tuple[Message, ...]:
        messages = []
        for line in jsonl.lines(path):
            if line.value is None:
                raise StoreFault(f"{path}:{line.number} is no JSON object; mend or remove that line")
            try:
                messages.append(from_json(line.value))
            except BadRequest as error:
                raise StoreFault(f"{path}:{line.number}: {error}") from error
        return tuple(messages)


async def _unlink(path: Path) -> None:
    with jsonl.faults("delete", path):
        await finished(path.unlink, missing_ok=True)


def entry_to_json(entry: HistoryEntry) -> dict[str, Any]:
    return {"op": entry.op, "messages": [to_json(message) for message in entry.messages]}


def entry_from_json(value: Mapping[str, Any]) -> HistoryEntry:
    return HistoryEntry(str(value.get("op")), tuple(from_json(each) for each in value.get("messages", ())))


def replay(entries: Iterable[HistoryEntry]) -> tuple[Message, ...]:
    """Every message that was ever in the window, once, in the order of arrival.

    A `set` brings in what was not there before; of equal messages as many are kept as the larger of both has.
    """
    seen: list[Message] = []
    for entry in entries:
        if entry.op != "set":
            seen.extend(entry.messages)
            continue
        before = list(seen)
        for message in entry.messages:
            if message in before:
                before.remove(message)
            else:
                seen.append(message)
    return tuple(seen)


# -- ids ---------------------------------------------------------------------------------------------------------------


def slot(memory_id: Hashable) -> Hashable:
    """An id as a key of this process: 1, True and "1" are three ids. Raises `BadRequest` for None (L41)."""
    if memory_id is None:
        raise BadRequest("a memory needs an id; None is none (an empty text would be one)")
    try:
        hash(memory_id)
    except TypeError as error:
        raise BadRequest(f"an id must be hashable, {type(memory_id).__name__} is not") from error
    return type(memory_id), memory_id


def storage_id(memory_id: Hashable) -> str:
    """An id as text that means the same in every process; no two ids share one."""
    slot(memory_id)
    text = memory_id if type(memory_id) is str else repr(memory_id)
    if " at 0x" in text and type(memory_id) is not str:
        raise BadRequest(
            f"the id {text} has no lasting text; use a text, a number or a value with a repr of its own"
        )
    return f"{type(memory_id).__name__}:{text}"


def file_name(memory_id: Hashable) -> str:
    """An id as a file name that no file system folds onto another's; too long ones end in their digest."""
    kind, _, text = storage_id(memory_id).partition(":")
    readable = "".join(
        character
        if character in PLAIN
        else "".join(f"%{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
        for character in text
    )
    name = f"{kind.lower()}.{readable}"
    if len(name) > MAX_NAME_CHARS:
        digest = sha256(f"{kind}:{text}".encode("utf-8", "surrogatepass")).hexdigest()
        name = f"{name[: MAX_NAME_CHARS - 66]}~{digest}"
    return name
