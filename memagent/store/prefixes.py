"""Prefixes as they were last read, so that only what changed is sent again."""

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
class Row:
    """One active memory; `shown` is what a reader of the prefix can see of it, without counters."""

    memory: Memory
    shown: str


@dataclass(frozen=True, slots=True)
class Prefix:
    """Active memories per scope, by key, and together; `marks` are the server's names for this state.

    `etag` is equal for prefixes of equal content. `tagged`: which memories these are depends on words of the chat.
    """

    marks: tuple[str, ...]
    parts: tuple[Mapping[str, Row], ...]
    merged: tuple[Memory, ...]
    etag: str
    tagged: bool

    def active(self, scope: int, key: str) -> Memory | None:
        """One memory of the scope at this place, unless it is dormant."""
        row = self.parts[scope].get(key)
        return row.memory if row else None


class Prefixes:
    """The most recently used prefixes by the scopes that they are made of."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Scope, ...], Prefix] = OrderedDict()

    def get(self, scopes: Sequence[Scope]) -> Prefix | None:
        """What the server may answer `same` to, or what changed since."""
        return self._kept.get(tuple(scopes))

    def merged(
        self,
        scopes: Sequence[Scope],
        answers: Sequence[Mapping[str, Any]],
        known: Prefix | None,
        view: Mapping[str, Any],
        *,
        tagged: bool,
    ) -> Prefix:
        """All active memories, oldest creation first, then key. `known` is what the search was sent with."""
        marks = tuple(answer["mark"] for answer in answers)
        if known is not None and (known.marks, known.tagged) == (marks, tagged):
            fresh = known
        else:
            before = known.parts if known else ({},) * len(answers)
            parts = tuple(_part(answer, part, view) for answer, part in zip(answers, before, strict=True))
            rows = sorted(
                (row for part in parts for row in part.values()),
                key=lambda row: (row.memory.created_at, row.memory.key),
            )
            digest = hashlib.blake2b("\n".join(row.shown for row in rows).encode(), digest_size=16)
            merged = tuple(row.memory for row in rows)
            fresh = Prefix(marks, parts, merged, digest.hexdigest(), tagged)
        self._kept[tuple(scopes)] = fresh
        self._kept.move_to_end(tuple(scopes))
        while len(self._kept) > MAX_PREFIXES:
            self._kept.popitem(last=False)
        return fresh

    def forget(self, scope: Scope) -> None:
        """Keep nothing of an erased scope."""
        for name in [name for name in self._kept if scope in name]:
            del self._kept[name]


def _part(answer: Mapping[str, Any], before: Mapping[str, Row], view: Mapping[str, Any]) -> Mapping[str, Row]:
    """Active memories of one scope as `prefix_of` in `lua/see.lua` answers: the same, what changed, or all."""
    if answer.get("same"):
        return before
    sent = {row["key"]: _row(memory_of(row, **view)) for row in answer["active"]}
    if "gone" not in answer:
        return sent
    gone = {*answer["gone"]}
    return {key: row for key, row in before.items() if key not in gone} | sent


def _row(memory: Memory) -> Row:
    shown = [
        memory.key,
        memory.value,
        memory.tokens,
        memory.source,
        memory.trusted,
        memory.tags,
        memory.created_at.timestamp(),
        memory.updated_at.timestamp(),
    ]
    return Row(memory, dumps(shown))
