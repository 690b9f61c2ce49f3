"""Ranking notes: O71 to O75, O78, V40, V41, V44, on both stores alike."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.errors import EmbedderFault
from memagent.sessions.candidates import Candidate, Question
from memagent.sessions.chunks import Chunking
from memagent.sessions.diversity import tokens
from memagent.sessions.lexical import bm25, query_terms, rarest, text_score, words
from memagent.sessions.search import (
    SOURCE_NOTES,
    SearchPolicy,
    age_factor,
    calibrated,
    rank,
    search_notes,
    snippet,
)
from memagent.sessions.vectors import Frequencies, Generation, Kind, Passage
from tests.sessions.notes.note_cases import NOW, AngledEmbedder, CountingEmbedder, index_with

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memagent.sessions.files import Workspace
    from memagent.sessions.notes import NoteIndex
    from memagent.sessions.search import Answer
    from memagent.sessions.vectors import VectorStore

    Write = Callable[[str, str], Path]

LIVE = Generation("ann", Kind.NOTES, 1, "e", 3)
QUESTION = Question("words", ("words",), "e", None, 0.5)


def ranked(
    cosine: float | None, text: float = 0.0, *, path: str = "memory/a.md", exact: bool = False, **more: object
) -> Answer:
    """One note of a chosen cosine and text score."""
    raw = text / (1 - text)
    candidate = Candidate(Passage(path, 1, 2, "text", "d"), cosine, raw, exact)
    policy = replace(SearchPolicy(), **more)  # type: ignore[arg-type]
    return rank(LIVE, QUESTION, [candidate], now=NOW, policy=policy, source=SOURCE_NOTES)


def scores(answer: Answer) -> list[float]:
    return [round(hit.score, 6) for hit in answer.hits]


def test_v40_a_vector_score_of_a_half_without_a_keyword_is_kept() -> None:
    assert scores(ranked(0.50)) == [0.35]


def test_v40_a_vector_score_below_a_half_without_a_keyword_is_dropped() -> None:
    assert scores(ranked(0.49)) == []
    assert scores(ranked(0.49, min_score=0.343)) == [0.343]


def test_v40_a_weak_vector_with_a_strong_keyword_is_kept() -> None:
    assert scores(ranked(0.30, 0.8)) == [0.45]


def test_o73_a_note_with_every_word_of_the_question_passes_whatever_its_score() -> None:
    assert scores(ranked(0.0, 0.1, exact=True)) == [0.03]
    assert scores(ranked(0.0, 0.1)) == []


def test_o71_the_score_of_words_is_r_over_one_plus_r() -> None:
    assert [text_score(raw) for raw in (0, 1, 3)] == [0, 0.5, 0.75]


@pytest.mark.parametrize(
    ("vector", "text", "expected"),
    [(7, 3, (0.7, 0.3)), (0, 0, (0.7, 0.3)), (1, 0, (1, 0)), (2, 2, (0.5, 0.5))],
)
def test_o72_weights_are_normalised_and_both_zero_are_the_defaults(
    vector: float, text: float, expected: tuple[float, float]
) -> None:
    assert SearchPolicy(vector_weight=vector, text_weight=text).weights == pytest.approx(expected)


@pytest.mark.parametrize("bad", [{"limit": 0}, {"vector_weight": -1.0}, {"text_weight": -0.1}])
def test_o72_a_policy_that_cannot_rank_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="search"):
        SearchPolicy(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limit", "multiplier", "expected"), [(6, 4, 24), (6, 0, 6), (6, 99, 120), (50, 20, 200)]
)
def test_o71_candidates_are_a_clamped_multiple_of_the_limit(
    limit: int, multiplier: int, expected: int
) -> None:
    assert SearchPolicy(limit=limit, candidate_multiplier=multiplier).candidates == expected


def test_v41_a_daily_note_counts_half_after_30_days_and_a_quarter_after_60() -> None:
    def at(days: int) -> list[float]:
        return scores(ranked(1.0, path=f"memory/{NOW - timedelta(days=days):%Y-%m-%d}.md"))

    assert (at(0), at(30), at(60)) == ([0.7], [0.35], [0.175])
    assert age_factor(30, 30) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "path", ["MEMORY.md", "memory/2020-01-01-trip.md", "memory/deep/2020-01-01.md", "memory/a.md"]
)
def test_v41_everything_but_a_daily_note_is_evergreen(path: str) -> None:
    assert scores(ranked(1.0, path=path)) == [0.7]


def test_o75_a_note_of_tomorrow_counts_once_and_age_can_be_switched_off() -> None:
    assert scores(ranked(1.0, path=f"memory/{NOW + timedelta(days=9):%Y-%m-%d}.md")) == [0.7]
    assert scores(ranked(1.0, path="memory/2020-01-01.md", half_life_days=None)) == [0.7]


def test_o75_age_moves_a_note_down_and_never_out() -> None:
    old = ranked(0.5, path=f"memory/{NOW - timedelta(days=300):%Y-%m-%d}.md")

    assert len(old.hits) == 1
    assert old.hits[0].score < 0.001


@given(st.floats(-1, 1), st.floats(0.05, 0.95))
def test_o81_the_embedders_floor_is_a_half_and_cosines_keep_their_order(cosine: float, floor: float) -> None:
    score = calibrated(cosine, floor)

    assert 0 <= score <= 1
    assert (score >= 0.5) == (cosine >= floor)
    assert calibrated(cosine, 0.5) == pytest.approx(max(cosine, 0.0))
    assert calibrated(cosine + 0.01, floor) >= score


def counts(rows: int, **by_term: int) -> Frequencies:
    return Frequencies(rows, rows * 3, by_term)


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_o73_a_word_of_a_young_memory_counts(rows: int) -> None:
    assert bm25(("cat",), ("cat", "x", "y"), counts(rows, cat=1)) > 0


def test_o71_more_of_a_word_a_rarer_word_and_a_shorter_row_score_higher() -> None:
    many = counts(100, cat=50, mochi=1)

    assert bm25(("cat",), ("cat", "cat"), many) > bm25(("cat",), ("cat", "x"), many)
    assert bm25(("mochi",), ("mochi", "x"), many) > bm25(("cat",), ("cat", "x"), many)
    assert bm25(("cat",), ("cat",), many) > bm25(("cat",), ("cat", *"abcdefgh"), many)
    assert bm25(("dog",), ("cat",), many) == 0


@given(st.lists(st.sampled_from("abc"), max_size=12), st.integers(0, 50), st.integers(0, 50))
def test_o71_a_score_of_words_is_never_negative(row: list[str], total: int, holding: int) -> None:
    assert bm25(("a", "b"), row, Frequencies(total, 0, {"a": holding})) >= 0


def test_the_rarest_words_pick_the_candidates() -> None:
    frequencies = counts(5000, rare=3, some=40, common=4000, none=0)

    assert rarest(frequencies, most=100) == ("rare", "some")
    assert rarest(frequencies, most=1) == ("rare",)
    assert rarest(counts(9), most=9) == ()


async def paths(index: NoteIndex, text: str, policy: SearchPolicy | None = None) -> list[str]:
    await index.sync()
    return [hit.path for hit in (await search_notes(index, text, now=NOW, policy=policy)).hits]


@pytest.mark.parametrize(
    ("note", "question"),
    [
        ("Con mèo của Juno tên là Mochi", "meo"),
        ("Con meo ten Mochi", "mèo"),
        ("Con me\u0300o", "mèo"),
        ("Die Größe der Wohnung ist 80 m²", "groesse wohnung grösse"),
        ("Die Straße ist laut", "strasse"),
        ("ĐÀ NẴNG là nơi gia đình sống", "đà nẵng"),
        ("Ibunya tinggal di Surabaya", "surabaya"),
        ("She prefers café crème", "CAFE CREME"),
    ],
)
async def test_v44_words_are_found_with_and_without_accents(
    workspace: Workspace, vectors: VectorStore, write: Write, note: str, question: str
) -> None:
    write("memory/other.md", "something else entirely")
    write("memory/a.md", note)

    assert await paths(index_with(workspace, vectors, None), question) == ["memory/a.md"]


def test_v44_diversity_keeps_words_as_they_are_written() -> None:
    assert tokens("Mèo tên GRÖßE, mèo!") == {"mèo", "tên", "größe"}
    assert "mèo" in tokens("me\u0300o")
    assert tokens("meo").isdisjoint(tokens("mèo"))


async def test_o74_without_an_embedder_any_word_of_the_question_finds(
    workspace: Workspace, vectors: VectorStore, write: Write
) -> None:
    write("memory/a.md", "Der Nutzer mag die API mit Fehlercodes")
    write("memory/b.md", "Anh ấy thích cà phê")
    index = index_with(workspace, vectors, None)

    assert await paths(index, "Người dùng đã nói gì về tùy chọn API của họ?") == ["memory/a.md"]
    assert await paths(index, "Apa yang dikatakan tentang cà phê?") == ["memory/b.md"]
    assert await paths(index, "Wer ist das und was hat er?") == []


@pytest.mark.parametrize(
    "text", ["", "  ", "\n", "?!", "*", "@owner:{*}", "' OR 1=1 --", "\0", "\udcff", "{}|()\\"]
)
async def test_o71_a_question_without_words_finds_nothing_and_breaks_nothing(
    workspace: Workspace, vectors: VectorStore, write: Write, text: str
) -> None:
    write("memory/a.md", "something else")

    assert await paths(index_with(workspace, vectors, None), text) == []


async def test_o71_a_blank_question_costs_no_embedding_call(
    index: NoteIndex, embedder: CountingEmbedder, write: Write
) -> None:
    write("memory/a.md", "text")

    assert await paths(index, " \n ") == []
    assert embedder.queries == []


async def test_o78_an_embedder_that_is_configured_and_down_is_said(
    index: NoteIndex, embedder: CountingEmbedder, write: Write
) -> None:
    write("memory/a.md", "Mochi")
    await index.sync()
    embedder.down = True

    with pytest.raises(EmbedderFault):
        await paths(index, "Mochi")


async def test_o71_a_search_finds_by_meaning_and_by_words_and_cites_the_lines(
    workspace: Workspace, vectors: VectorStore, write: Write
) -> None:
    write("memory/near.md", "\n\nfelines are adorable\nand soft")
    write("memory/word.md", "the wordy cat")
    write("memory/far.md", "tax return")
    index = index_with(workspace, vectors, AngledEmbedder({"felines": 0.9, "wordy": 0.1}))

    answer = await search_notes(index, "cat", now=NOW)
    assert [hit.citation for hit in answer.hits] == ["memory/near.md#L1-L4", "memory/word.md#L1-L1"]
    assert answer.hits[0].to_json() == {
        "path": "memory/near.md", "startLine": 1, "endLine": 4, "score": 0.63, "snippet": "felines are adorable\nand soft",
        "source": "memory", "citation": "memory/near.md#L1-L4",
    }  # fmt: skip
    assert answer.hits[1].exact
    assert answer.hits[0].parts == pytest.approx({"vector": 0.9, "text": 0.0}, abs=1e-6)


async def test_o71_no_more_than_the_limit_comes_back_best_first(
    workspace: Workspace, vectors: VectorStore, write: Write
) -> None:
    for number in range(9):
        write(f"memory/{number}.md", f"note-{number}")
    index = index_with(
        workspace, vectors, AngledEmbedder({f"note-{number}": 0.5 + number / 20 for number in range(9)})
    )

    assert await paths(index, "anything") == [f"memory/{number}.md" for number in (8, 7, 6, 5, 4, 3)]
    assert await paths(index, "anything", SearchPolicy(limit=2)) == ["memory/8.md", "memory/7.md"]


async def test_diversity_passes_over_what_was_said_already(
    workspace: Workspace, vectors: VectorStore, write: Write
) -> None:
    write("memory/a.md", "the cat sleeps all day long first")
    write("memory/b.md", "the cat sleeps all day long second")
    write("memory/c.md", "dogs bark third")
    index = index_with(workspace, vectors, AngledEmbedder({"first": 0.9, "second": 0.89, "third": 0.8}))

    assert await paths(index, "?!", SearchPolicy(limit=2)) == ["memory/a.md", "memory/b.md"]
    assert await paths(index, "?!", SearchPolicy(limit=2, diversity=0.7)) == ["memory/a.md", "memory/c.md"]


def test_o71_a_snippet_starts_where_the_words_are() -> None:
    lines = [f"line {number} of nothing in particular" for number in range(60)]
    lines[20] = "here the cat sleeps"
    passage = Passage("a", 1, 60, "\n".join(lines), "d")

    assert snippet(passage, ("cat",)).startswith("here the cat sleeps\nline 21")
    assert snippet(replace(passage, text=passage.text + "\nand a mouse"), ("mouse",)).endswith(
        "line 59 of nothing in particular\nand a mouse"
    )
    assert snippet(passage, ("dog",)).startswith("line 0")
    assert len(snippet(passage, ("cat",))) <= 700
    assert snippet(replace(passage, text=" short \n"), ()) == "short"
    assert len(snippet(replace(passage, text="x" * 5000), ("cat",))) == 700


TEXTS = [
    "Caroline adopted a cat called Mochi in May", "The cat sleeps on the red sofa", "Mochi the cat hates the vacuum cleaner",
    "Die Katze heißt Mochi und schläft viel", "Kucing itu bernama Mochi", "Con mèo tên là Mochi thích cá ngừ",
    "Rex is a dog", "The dog Rex barks at the cat", "Taxes are due in May", "Die Steuer ist im Mai fällig",
]  # fmt: skip


async def test_both_stores_rank_alike(
    workspace: Workspace, both: tuple[VectorStore, VectorStore], write: Write
) -> None:
    for number, text in enumerate(TEXTS):
        write(f"memory/{number}.md", text)
    answers = []
    for vectors in both:
        index = index_with(workspace, vectors, CountingEmbedder(), chunking=Chunking(tokens=20, overlap=4))
        await index.sync()
        policy = SearchPolicy(limit=8, min_score=0.0)
        questions = ["What is the cat called?", "mèo Mochi", "taxes in May", "Rex", "schläft die Katze"]
        answers.append([
            [(hit.citation, round(hit.score, 5)) for hit in (await search_notes(index, text, now=NOW, policy=policy)).hits]
            for text in questions
        ])  # fmt: skip

    assert answers[0] == answers[1]
    assert all(answer for answer in answers[0])


@given(st.text(max_size=200))
def test_a_question_has_a_bounded_number_of_words_each_once(text: str) -> None:
    asked = query_terms(text)

    assert len(asked) == len(set(asked)) <= 32
    assert set(asked) <= set(words(text))
