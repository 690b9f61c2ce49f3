"""Prefixes as they were last read, so that a search sends an unchanged one only once per process."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memagent.store.rows import dumps, memory_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memagent.memory import Memory, Scope

MAX_PREFIXES = 256
"""Remembered at once: a hundred memories each take some 50 KB."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Active memories per scope and together; `marks` are the server's names for this state."""

    marks: tuple[str, ...]
    parts: tuple[tuple[Memory, ...], ...]
    merged: tuple[Memory, ...]
    etag: str


class Prefixes:
    """The most recently used prefixes by the scopes that they are made of."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Scope, ...], Prefix] = OrderedDict()

    def get(self, scopes: Sequence[Scope]) -> Prefix | None:
        """What the server may answer `same` to."""
        return self._kept.get(tuple(scopes))

    def merged(
        self,
        scopes: Sequence[Scope],
        answers: Sequence[Mapping[str, Any]],
        known: Prefix | None,
        view: Mapping[str, Any],
    ) -> Prefix:
        """All active memories, oldest creation first, then key. `known` is what the search was sent with."""
        marks = tuple(answer["mark"] for answer in answers)
        if known is not None and known.marks == marks:
            fresh = known
        else:
            parts = tuple(
                known.parts[i]
                if known and answer.get("same")
                else tuple(memory_of(row, **view) for row in answer["active"])
                for i, answer in enumerate(answers)
            )
            merged = tuple(
                sorted(
                    (memory for part in parts for memory in part),
                    key=lambda memory: (memory.created_at, memory.key),
                )
            )
            fresh = Prefix(marks, parts, merged, etag_of(merged))
        self._kept[tuple(scopes)] = fresh
        self._kept.move_to_end(tuple(scopes))
        while len(self._kept) > MAX_PREFIXES:
            self._kept.popitem(last=False)
        return fresh

    def forget(self, scope: Scope) -> None:
        """Keep nothing of an erased scope."""
        for name in [name for name in self._kept if scope in name]:
            del self._kept[name]


def etag_of(memories: Sequence[Memory]) -> str:
    """Equal for prefixes of equal content: what a reader of the prefix can see, without counters."""
    shown = [
        [
            memory.key,
            memory.value,
            memory.tokens,
            memory.source,
            memory.trusted,
            memory.tags,
            memory.created_at.timestamp(),
            memory.updated_at.timestamp(),
        ]
        for memory in memories
    ]
    return hashlib.blake2b(dumps(shown).encode(), digest_size=16).hexdigest()
