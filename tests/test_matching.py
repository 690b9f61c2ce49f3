"""The score of a match: meaning first, words as far as a memory is long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.matching import LEXICAL_WEIGHT, LONG_MEMORY_TERMS, lexical, score

counts = st.integers(0, 200)


@given(st.floats(-1, 1), counts, counts)
def test_a_score_stays_between_nothing_and_all(cosine: float, shared: int, held: int) -> None:
    assert 0.0 <= score(cosine, shared=min(shared, held), held=held) <= 1.0


@given(st.floats(-1, 1), st.integers(0, 30), counts)
def test_one_more_shared_word_never_harms(cosine: float, shared: int, held: int) -> None:
    assert score(cosine, shared=shared + 1, held=held) >= score(cosine, shared=shared, held=held)


def test_without_shared_words_the_cosine_is_the_score() -> None:
    assert score(0.4, shared=0, held=50) == 0.4
    assert score(-0.4, shared=0, held=50) == 0.0


@pytest.mark.parametrize(
    ("shared", "held", "part"),
    [
        (1, LONG_MEMORY_TERMS, 0.5),
        (2, LONG_MEMORY_TERMS, 0.75),
        (1, LONG_MEMORY_TERMS * 3, 0.5),
        (1, LONG_MEMORY_TERMS // 2, 0.25),
    ],
)
def test_a_word_counts_as_far_as_the_memory_is_long(shared: int, held: int, part: float) -> None:
    assert lexical(shared=shared, held=held) == pytest.approx(LEXICAL_WEIGHT * part)
