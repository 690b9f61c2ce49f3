"""What a search may find: rows of one generation that share a word with the question or lie near it.

Finding only. What a row is worth is decided by `sessions.search` from these parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memagent.sessions.lexical import bm25, query_terms, rarest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.llm import Embedder, Vector
    from memagent.sessions.vectors import Frequencies, Generation, Passage, VectorStore

LEXICAL_ROWS = 2_000
"""Rows per search that are scored by words; the rarest words choose them."""


@dataclass(frozen=True, slots=True)
class Question:
    """A search text ready to ask with. `vector` is None without an embedder; `floor` is the embedder's."""

    text: str
    terms: tuple[str, ...]
    embedder: str = ""
    vector: Vector | None = None
    floor: float = 0.5


async def ask(text: str, embedder: Embedder | None) -> Question:
    """Make a question of a text; one embedding call, none for a blank text. Raises `EmbedderFault`."""
    asked = text.strip()
    question = Question(asked, query_terms(asked))
    if embedder is None or not asked:
        return question
    vector = await embedder.query(asked)
    return replace(question, embedder=embedder.id, vector=vector, floor=embedder.floor)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row with its raw parts.

    `cosine` is None where vectors cannot be compared, `words` the BM25 score, `exact` whether every word of the question
    stands in the row.
    """

    passage: Passage
    cosine: float | None
    words: float
    exact: bool


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates in no order, and the counts to score further rows with."""

    candidates: tuple[Candidate, ...]
    frequencies: Frequencies | None


async def find(vectors: VectorStore, generation: Generation, question: Question, *, limit: int) -> Found:
    """The `limit` best rows by words and the `limit` nearest, each row once and with both of its parts."""
    frequencies = await vectors.frequencies(generation, question.terms) if question.terms else None
    ids: dict[str, None] = {}
    if frequencies:
        rows = await vectors.containing(generation, rarest(frequencies, most=LEXICAL_ROWS), LEXICAL_ROWS)
        scored = sorted((-bm25(question.terms, words, frequencies), row) for row, words in rows.items())
        ids |= dict.fromkeys(row for _, row in scored[:limit])
    if question.vector is not None and comparable(generation, question):
        ids |= dict.fromkeys(row for row, _ in await vectors.nearest(generation, question.vector, limit))
    passages = await vectors.fetch(generation, list(ids))
    return Found(candidates_of(generation, question, list(passages.values()), frequencies), frequencies)


def candidates_of(
    generation: Generation, question: Question, passages: Sequence[Passage], frequencies: Frequencies | None
) -> tuple[Candidate, ...]:
    """Rows with vectors as candidates with their parts."""
    return tuple(_candidate(generation, question, passage, frequencies) for passage in passages)


def _candidate(
    generation: Generation, question: Question, passage: Passage, frequencies: Frequencies | None
) -> Candidate:
    words = bm25(question.terms, passage.terms, frequencies) if frequencies else 0.0
    exact = bool(question.terms) and set(question.terms) <= set(passage.terms)
    cosine = None
    if comparable(generation, question) and passage.vector is not None and question.vector is not None:
        cosine = float(passage.vector @ question.vector)
    return Candidate(replace(passage, vector=None), cosine, words, exact)


def comparable(generation: Generation, question: Question) -> bool:
    """Whether the vectors of the rows and of the question are of one embedder (T48)."""
    return bool(question.embedder) and generation.embedder == question.embedder
