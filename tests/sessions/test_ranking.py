"""Which turn answers: its words and vector, what stands around it, who speaks and when."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.lexicon import content_words
from memagent.sessions.candidates import Candidate, Question
from memagent.sessions.lexical import query_terms
from memagent.sessions.ranking import FUSED, LEXICAL, Features, features, rank
from memagent.sessions.vectors import Frequencies, Passage

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 6, 1, tzinfo=UTC)
MAY = datetime(2026, 5, 8, tzinfo=UTC)
APRIL = datetime(2026, 4, 8, tzinfo=UTC)


def said(
    number: int,
    text: str,
    *,
    speaker: str = "Ann",
    session: str = "s1",
    at: datetime = APRIL,
    cosine: float | None = None,
    piece: int = 0,
) -> Candidate:
    passage = Passage(
        f"sessions/{session}",
        number,
        number,
        text,
        "",
        piece=piece,
        terms=tuple(content_words(text)),
        label=speaker,
        at=at,
    )
    return Candidate(passage, cosine, 0.0, exact=False)


def counts(question: str, turns: Sequence[Candidate]) -> Frequencies:
    rows = [turn.passage.terms for turn in turns]
    return Frequencies(
        len(rows),
        sum(map(len, rows)),
        {term: sum(term in row for row in rows) for term in query_terms(question)},
    )


def measured(question: str, *turns: Candidate) -> list[Features]:
    return features(Question(question, query_terms(question)), turns, counts(question, turns), now=NOW)


def order(question: str, *turns: Candidate) -> list[str]:
    ranked = rank(Question(question, query_terms(question)), turns, counts(question, turns), now=NOW)
    return [each.candidate.passage.text for each in ranked]


def test_the_turn_with_the_words_stands_first() -> None:
    turns = [
        said(1, "We talked about the weather"),
        said(9, "My cello needs new strings"),
        said(20, "Dinner was late"),
    ]
    assert order("Which strings does the cello need?", *turns)[0] == "My cello needs new strings"


def test_an_answer_is_known_by_the_question_before_it() -> None:
    asked, answer = (
        said(1, "What is your cello made of?", speaker="Ben"),
        said(2, "Maple and spruce, all of it"),
    )
    idle, other = said(8, "The cello sounds nice", speaker="Ben"), said(9, "Potatoes and beans, all of it")
    found = measured("What is the cello made of?", asked, answer, idle, other)
    assert found[1].answers == 1.0
    assert found[3].answers == 0.0
    ranked = order("What is the cello made of?", asked, answer, idle, other)
    assert ranked.index("Maple and spruce, all of it") < ranked.index("Potatoes and beans, all of it")


def test_turns_two_away_are_read_along_and_three_away_are_not() -> None:
    turns = [said(1, "the cello"), said(3, "yes indeed"), said(4, "so nice")]
    near = [each.near_words for each in measured("cello", *turns)]
    assert near[1] > 0.0
    assert near[2] == 0.0


def test_turns_of_another_session_are_not_read_along() -> None:
    found = measured("cello", said(1, "the cello"), said(2, "yes indeed", session="s2"))
    assert found[1].near_words == found[1].session_words == 0.0


def test_who_the_question_names_is_heard_rather_than_who_is_spoken_to() -> None:
    about, to = (
        said(1, "I paint at night", speaker="Caroline"),
        said(9, "Caroline, I paint at night", speaker="Mel"),
    )
    assert order("When does Caroline paint?", about, to)[0] == about.passage.text
    assert [each.speaker for each in measured("When does Caroline paint?", about, to)] == [1.0, 0.0]


def test_a_question_that_names_both_prefers_neither() -> None:
    turns = said(1, "I paint", speaker="Caroline"), said(2, "I sing", speaker="Mel")
    assert [each.speaker for each in measured("Do Caroline and Mel paint?", *turns)] == [0.0, 0.0]


@pytest.mark.parametrize(
    "question", ["When did Ann paint?", "Wann hat Ann gemalt?", "Kapan Ann melukis?", "Ann vẽ khi nào?"]
)
@pytest.mark.parametrize(
    "text", ["I did it yesterday", "Das war letzte Woche", "Minggu lalu", "Hôm qua mình vẽ"]
)
def test_a_question_for_the_time_looks_for_words_of_time(question: str, text: str) -> None:
    found = measured(question, said(1, text), said(5, "I did it with oil"))
    assert [each.time for each in found] == [1.0, 0.0]


def test_words_of_time_mean_nothing_to_another_question() -> None:
    assert measured("What did Ann paint?", said(1, "I did it yesterday"))[0].time == 0.0


def test_a_named_date_finds_what_was_said_then() -> None:
    then, else_when = said(1, "I painted a lake", at=MAY), said(9, "I painted a lake", session="s2", at=APRIL)
    assert [each.date for each in measured("What did Ann paint in May?", then, else_when)] == [1.0, 0.0]
    assert (
        rank(Question("What did Ann paint in May?", ("paint",)), [else_when, then], None, now=NOW)[
            0
        ].candidate
        is then
    )


@pytest.mark.parametrize("floor", [0.0, 0.7])
def test_cosines_count_by_their_place_between_the_worst_and_the_best(floor: float) -> None:
    cosines = (floor, floor + 0.1, floor + 0.2)
    found = measured(
        "cello", *(said(3 * n, "nothing", cosine=cosine) for n, cosine in enumerate(cosines, start=1))
    )
    assert [each.vector for each in found] == pytest.approx([0.0, 0.5, 1.0])


def test_a_turn_without_a_vector_is_ranked_by_its_words() -> None:
    found = measured("cello", said(1, "the cello"), said(9, "the piano", cosine=0.3))
    assert (found[0].words, found[0].vector, found[1].vector) == (1.0, 0.0, 1.0)


def test_pieces_of_one_turn_are_read_along_with_each_other() -> None:
    found = measured("cello", said(1, "a long story", piece=0), said(1, "about a cello", piece=1))
    assert found[0].near_words == found[1].near_words == 1.0


def test_without_candidates_there_is_nothing_to_rank() -> None:
    assert rank(Question("cello", ("cello",)), [], None, now=NOW) == []


def test_the_order_of_equals_is_their_place() -> None:
    turns = [said(n, "same words") for n in (30, 10, 20)]
    ranked = rank(Question("cello", ("cello",)), turns, None, now=NOW)
    assert [each.candidate.passage.first for each in ranked] == [10, 20, 30]


texts = st.text(st.sampled_from("ab ?'\u00e9\U0001f642\ud800\u732b. "), max_size=20)


@settings(max_examples=60)
@given(texts, st.lists(st.tuples(texts, st.none() | st.floats(-1, 1)), max_size=6))
def test_every_feature_and_score_stays_between_nothing_and_all(
    question: str, rows: list[tuple[str, float | None]]
) -> None:
    turns = [said(n, text, cosine=cosine) for n, (text, cosine) in enumerate(rows, start=1)]
    ranked = rank(Question(question, query_terms(question)), turns, counts(question, turns), now=NOW)
    assert len(ranked) == len(turns)
    for each in ranked:
        assert 0.0 <= each.score <= 1.0
        assert all(0.0 <= value <= 1.0 + 1e-9 for value in each.features.to_dict().values())


def test_weights_speak_for_a_turn_except_what_speaks_against_it() -> None:
    for weights in (FUSED, LEXICAL):
        assert {name for name, worth in weights.to_dict().items() if worth < 0} == {"asks"}
    assert not any(worth for name, worth in LEXICAL.to_dict().items() if "vector" in name)


def test_features_of_nothing_weigh_nothing_and_of_all_everything() -> None:
    everything = Features(**{name: float(worth > 0) for name, worth in FUSED.to_dict().items()})
    assert Features().weighed(FUSED) == 0.0
    assert everything.weighed(FUSED) == pytest.approx(1.0)
    assert everything.weighed(Features()) == 0.0
