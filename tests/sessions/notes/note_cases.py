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
    """Texts at chosen cosines to every question: `cosines` maps a part of a text to its cosine; others are at 0.

    What is left of each vector is on an axis of its own, so two texts are no nearer than their cosines make them.
    """

    cosines: dict[str, float]
    id: str = "angled"
    dimensions: int = 16
    floor: float = 0.5

    async def query(self, text: str) -> Vector:
        return self._at(1.0, 1)

    async def passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        places = [
            next((axis for axis, part in enumerate(self.cosines, 2) if part in text), 1) for text in texts
        ]
        cosines = [0.0, 0.0, *self.cosines.values()]
        return [self._at(cosines[axis], axis) for axis in places]

    def _at(self, cosine: float, axis: int) -> Vector:
        vector = np.zeros(self.dimensions, np.float32)
        vector[0], vector[axis] = cosine, np.sqrt(1 - cosine**2)
        return vector


def index_with(
    workspace: Workspace, vectors: VectorStore, embedder: Embedder | None, **more: Any
) -> NoteIndex:
    return NoteIndex(workspace, vectors, embedder, owner="agent-a", **more)
