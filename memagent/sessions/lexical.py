"""Scoring rows by words: BM25 with the counts of one owner's generation. Pure.

Redis' scorers count over every owner's rows and LanceDB's over its own index, with different formulas; the packages that
score in process want the whole corpus again after every new turn. So the stores count, exactly and per owner, and this
scores: the same ranking on either, and nobody's words weigh in another's search.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from memagent.lexicon import content_words, terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.sessions.vectors import Frequencies

SATURATION = 1.2
"""BM25's k1: how soon a further occurrence stops to count."""
LENGTH_WEIGHT = 0.75
"""BM25's b: how much a long row pays for its length."""
MAX_QUERY_TERMS = 32
"""A longer question is searched by its first words; each term costs the store a count."""


def words(text: str) -> tuple[str, ...]:
    """The folded words of a row, as often as they stand there."""
    return tuple(content_words(text))


def query_terms(text: str) -> tuple[str, ...]:
    """The folded words of a question, each once; empty for a blank one or one of small words only."""
    return terms(text)[:MAX_QUERY_TERMS]


def bm25(query: Sequence[str], row: Sequence[str], frequencies: Frequencies) -> float:
    """At least 0; more for a rarer word, a repeated one and a shorter row. One row among many or alone: never 0 for a hit."""
    counts = Counter(row)
    mean = frequencies.terms / frequencies.rows if frequencies.rows else 1.0
    length = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * len(row) / (mean or 1.0)
    return sum(
        weight(term, frequencies) * counts[term] * (SATURATION + 1) / (counts[term] + SATURATION * length)
        for term in query
        if counts[term]
    )


def weight(term: str, frequencies: Frequencies) -> float:
    """How rare a word is: positive however many rows hold it."""
    holding = frequencies.by_term.get(term, 0)
    return math.log1p((max(frequencies.rows - holding, 0) + 0.5) / (holding + 0.5))


def text_score(score: float) -> float:
    """A BM25 score in 0..1 (O71)."""
    return score / (1 + score)


def rarest(frequencies: Frequencies, *, most: int) -> tuple[str, ...]:
    """The words that pick the candidates: rarest first, as long as at most `most` rows hold them together.

    The rarest one is always among them, whatever it costs. Words in no row pick nothing.
    """
    chosen: list[str] = []
    rows = 0
    for count, term in sorted((count, term) for term, count in frequencies.by_term.items() if count):
        if chosen and rows + count > most:
            break
        chosen.append(term)
        rows += count
    return tuple(chosen)
