"""What scopes hold as it was last read, so that only what changed is sent again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memagent.store.rows import memory_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memagent.memory import Memory, Scope

MAX_CONTENTS = 256
"""Scopes remembered at once: a hundred memories each take some 50 KB."""


@dataclass(frozen=True, slots=True)
class Content:
    """All memories of a scope, newest update first; `mark` is the server's name for this state."""

    mark: str
    memories: tuple[Memory, ...]


class Contents:
    """The most recently read scopes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Scope, Content] = OrderedDict()

    def known(self, scopes: Sequence[Scope]) -> list[Content | None]:
        """What the server may answer `same` to, or what changed since."""
        return [self._kept.get(scope) for scope in scopes]

    def read(
        self, scope: Scope, known: Content | None, answer: Mapping[str, Any], *, embedder: str
    ) -> tuple[Memory, ...]:
        """The memories of an answer of `lua/standing.lua`, which was asked with what is `known`."""
        if known is None or not answer.get("same"):
            found = [memory_of(row, embedder=embedder, dormant_after_days=None) for row in answer["memories"]]
            if known is not None and "gone" in answer:
                sent = {*answer["gone"], *(memory.key for memory in found)}
                found += (memory for memory in known.memories if memory.key not in sent)
            ordered = sorted(found, key=lambda memory: (-memory.updated_at.timestamp(), memory.key))
            known = Content(answer["mark"], tuple(ordered))
        self._kept[scope] = known
        self._kept.move_to_end(scope)
        while len(self._kept) > MAX_CONTENTS:
            self._kept.popitem(last=False)
        return known.memories

    def forget(self, scope: Scope) -> None:
        """Keep nothing of an erased scope."""
        self._kept.pop(scope, None)
