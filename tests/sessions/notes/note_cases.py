"""An embedder that counts, one whose cosines a test can choose, and an index of the usual owner."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from memagent.errors import EmbedderFault
from memagent.llm.embedders import HashedEmbedder
from memagent.sessions.notes import NoteIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.llm import Embedder, Vector
    from memagent.sessions.files import Workspace
    from memagent.sessions.vectors import VectorStore

NOW = datetime(2026, 3, 31, 12, 0, tzinfo=UTC)


@dataclass
class CountingEmbedder:
    """Hashed words, counting the texts it is given; fails while `down`."""

    id: str = "counting"
    dimensions: int = 64
    floor: float = 0.2
    down: bool = False
    passage_texts: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)

    async def query(self, text: str) -> Vector:
        self._check()
        self.queries.append(text)
        return await HashedEmbedder(dimensions=self.dimensions).query(text)

    async def passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        self._check()
        self.passage_texts.extend(texts)
        return await HashedEmbedder(dimensions=self.dimensions).passages(texts)

    def _check(self) -> None:
        if self.down:
            raise EmbedderFault("the embedder is down")


@dataclass
class AngledEmbedder:
    """Texts at chosen cosines to every question: `cosines` maps a part of a text to its cosine; others are at 0."""

    cosines: dict[str, float]
    id: str = "angled"
    dimensions: int = 3
    floor: float = 0.5

    async def query(self, text: str) -> Vector:
        return np.array([1, 0, 0], np.float32)

    async def passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [
            self._at(next((c for part, c in self.cosines.items() if part in text), 0.0)) for text in texts
        ]

    def _at(self, cosine: float) -> Vector:
        return np.array([cosine, np.sqrt(1 - cosine**2), 0], np.float32)


def index_with(
    workspace: Workspace, vectors: VectorStore, embedder: Embedder | None, **more: Any
) -> NoteIndex:
    return NoteIndex(workspace, vectors, embedder, owner="agent-a", **more)
