"""Vectors for rows: known ones are taken over, each new text is embedded once, in bounded batches (O68)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memagent.llm import Embedder, Vector
    from memagent.sessions.vectors import Generation, Passage, VectorStore

BATCH_TEXTS = 64
BATCH_CHARS = 32_000
"""8,000 tokens at four characters (O66 ff.)."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Rows with their vectors; how many texts were sent to the embedder, and how many were known."""

    passages: tuple[Passage, ...]
    embedded: int = 0
    reused: int = 0


async def embed_passages(
    vectors: VectorStore,
    embedder: Embedder | None,
    passages: Sequence[Passage],
    *,
    sources: Sequence[Generation],
) -> Embedded:
    """Give every row its vector; without an embedder none has one.

    A text that any of `sources` holds with a vector of the same embedder is not embedded again. Raises `EmbedderFault`
    before anything is written.
    """
    if embedder is None:
        return Embedded(tuple(passages))
    texts = {passage.digest: passage.text for passage in passages}
    known: dict[str, Vector] = {}
    for source in sources:
        if source.embedder == embedder.id:
            known |= await vectors.vectors(source, texts.keys() - known.keys())
    new = [digest for digest in texts if digest not in known]
    for batch in _batches(new, texts):
        found = await embedder.passages([texts[digest] for digest in batch])
        known |= dict(zip(batch, found, strict=True))
    rows = tuple(replace(passage, vector=known[passage.digest]) for passage in passages)
    return Embedded(rows, len(new), len(texts) - len(new))


def _batches(digests: Sequence[str], texts: dict[str, str]) -> Iterator[list[str]]:
    batch: list[str] = []
    chars = 0
    for digest in digests:
        size = len(texts[digest])
        if batch and (len(batch) == BATCH_TEXTS or chars + size > BATCH_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(digest)
        chars += size
    if batch:
        yield batch
