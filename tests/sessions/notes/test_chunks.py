"""Cutting notes into passages (O67)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.sessions.chunks import Chunking, cut
from memagent.sessions.files import split_lines


def places(text: str, chunking: Chunking | None = None) -> list[tuple[int, int]]:
    return [(chunk.first, chunk.last) for chunk in cut(text, chunking or Chunking())]


def test_v39_fifty_lines_of_79_characters_overlap_by_four_lines() -> None:
    assert places("\n".join("x" * 79 for _ in range(50))) == [(1, 20), (17, 36), (33, 50)]


def test_v39_one_line_of_4000_characters_is_three_chunks_of_line_1() -> None:
    chunks = cut("y" * 4000, Chunking())

    assert [(chunk.first, chunk.last, len(chunk.text)) for chunk in chunks] == [
        (1, 1, 1600),
        (1, 1, 1600),
        (1, 1, 800),
    ]


def test_o67_a_chunk_holds_exactly_1600_characters_and_not_one_more() -> None:
    assert places("a" * 799 + "\n" + "b" * 799) == [(1, 2)]
    assert places("a" * 799 + "\n" + "b" * 800) == [(1, 1), (2, 2)]


def test_o67_a_chunk_is_never_smaller_than_32_characters() -> None:
    assert Chunking(tokens=1, overlap=0).max_chars == 32
    assert Chunking(tokens=9, overlap=0).max_chars == 36


def test_o67_the_overlap_is_clamped_below_the_chunk() -> None:
    assert Chunking(tokens=10, overlap=99).overlap_chars == 36


def test_o67_a_line_number_counts_line_feeds_only() -> None:
    assert places("one\u2028still one\x0cstill one\r\ntwo\n\nfour\n", Chunking(tokens=1, overlap=0)) == [
        (1, 3),
        (4, 4),
    ]


def test_o68_blank_text_has_no_chunks() -> None:
    assert places("") == []
    assert places(" \n\t\n\u3000\n") == []


def test_o67_equal_texts_have_equal_digests() -> None:
    first, second, third = cut("z" * 4000, Chunking())

    assert first.digest == second.digest != third.digest
    assert len(first.digest) == 64


@pytest.mark.parametrize(("tokens", "overlap"), [(0, 0), (10, -1)])
def test_a_chunking_without_size_is_refused(tokens: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="token"):
        Chunking(tokens=tokens, overlap=overlap)


lines = st.lists(st.text(alphabet=st.sampled_from("aèß ngữ字\r\x0b\u2028"), max_size=90), max_size=40)


@given(lines, st.integers(1, 40), st.integers(0, 60))
def test_o67_every_line_with_text_is_in_a_chunk_and_every_chunk_is_what_stands_there(
    given_lines: list[str], tokens: int, overlap: int
) -> None:
    text = "\n".join(given_lines)
    chunking = Chunking(tokens=tokens, overlap=overlap)
    chunks = cut(text, chunking)
    real = split_lines(text)

    covered = {number for chunk in chunks for number in range(chunk.first, chunk.last + 1)}
    assert {number for number, line in enumerate(real, 1) if line.strip()} <= covered
    for chunk in chunks:
        assert len(chunk.text) <= chunking.max_chars
        whole = "\n".join(real[chunk.first - 1 : chunk.last])
        assert chunk.text in whole
    for one, other in pairwise(chunks):
        assert (one.first, one.last, one.piece) < (other.first, other.last, other.piece)
