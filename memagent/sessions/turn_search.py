"""Searching what was literally said: the turns of one owner, each with what stands around it.

A bare turn ("yes, last Tuesday") says little by itself. Every candidate is scored with its neighbours, its date, its
speaker and its session; what these are worth is `sessions.ranking`'s business.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from memagent.lexicon import fold
from memagent.sessions.candidates import ask, candidates_of, find
from memagent.sessions.dates import named_dates
from memagent.sessions.features import Features, weigh
from memagent.sessions.lexical import text_score
from memagent.sessions.notes import STALE
from memagent.sessions.search import SOURCE_TURNS, Answer, Hit, calibrated, hit_of
from memagent.sessions.vectors import passage_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from memagent.sessions.candidates import Candidate, Found, Question
    from memagent.sessions.dates import NamedDate
    from memagent.sessions.turns import TurnIndex
    from memagent.sessions.vectors import Generation

CANDIDATES = 50
"""Turns that are looked at closely, from either side; their neighbours come on top."""

Place = tuple[str, int]
"""Session path and number of a turn."""


async def search_turns(
    index: TurnIndex,
    owner: str,
    text: str,
    *,
    now: datetime,
    limit: int = 6,
    min_score: float = 0.35,
    question: Question | None = None,
) -> Answer:
    """The turns of `owner` that answer `text`, each once; none for a blank text.

    A turn with every word of the question passes whatever its score. Raises `EmbedderFault`, `StoreFault`.
    """
    live = await index.live(owner)
    if live is None or not text.strip():
        return Answer()
    question = question or await ask(text, index.embedder)
    found = await find(index.vectors, live, question, limit=CANDIDATES)
    around = await _around(index, live, question, found)
    hits = _ranked(question, found.candidates, around, now=now)
    passing = [hit for hit in hits if hit.exact or hit.score >= min_score]
    behind = "" if live.embedder == question.embedder else STALE
    return Answer(tuple(passing[:limit]), behind)


async def _around(
    index: TurnIndex, live: Generation, question: Question, found: Found
) -> Mapping[Place, Candidate]:
    """The turns before and after the candidates, by place; of a turn in pieces, its first."""
    places = {_place(candidate) for candidate in found.candidates}
    near = {(path, number + step) for path, number in places for step in (-1, 1) if number + step > 0}
    rows = await index.vectors.fetch(
        live, [passage_id(path, number, number) for path, number in sorted(near)]
    )
    return {
        _place(each): each for each in candidates_of(live, question, list(rows.values()), found.frequencies)
    }


def _ranked(
    question: Question, candidates: Sequence[Candidate], around: Mapping[Place, Candidate], *, now: datetime
) -> list[Hit]:
    dates = named_dates(question.text, today=now.date())
    asked = {fold(word) for word in question.text.replace("'", " ").split()}
    sessions: dict[str, list[float]] = defaultdict(list)
    for candidate in candidates:
        sessions[candidate.passage.path].append(text_score(candidate.words))
    best: dict[Place, Hit] = {}
    for candidate in candidates:
        features = _features(candidate, question, around, dates, asked)
        features["session"] = max(sessions[candidate.passage.path])
        score = weigh(known := Features(**features))
        hit = hit_of(candidate, question, source=SOURCE_TURNS, score=score, parts=known.to_dict())
        place = _place(candidate)
        if place not in best or hit.score > best[place].score:
            best[place] = hit
    return sorted(best.values(), key=lambda hit: (-hit.score, hit.path, hit.start_line))


def _features(
    candidate: Candidate,
    question: Question,
    around: Mapping[Place, Candidate],
    dates: Sequence[NamedDate],
    asked: set[str],
) -> dict[str, float]:
    passage = candidate.passage
    path, number = _place(candidate)
    neighbours = [around[place] for place in ((path, number - 1), (path, number + 1)) if place in around]
    speaker = {fold(word) for word in passage.label.split()}
    said_then = bool(passage.at) and any(date.holds(passage.at.date()) for date in dates if passage.at)
    return {
        "words": text_score(candidate.words),
        "vector": _vector(candidate, question),
        "near_words": max((text_score(each.words) for each in neighbours), default=0.0),
        "near_vector": max((_vector(each, question) for each in neighbours), default=0.0),
        "date": float(said_then),
        "speaker": float(bool(speaker & asked)),
    }


def _vector(candidate: Candidate, question: Question) -> float:
    return 0.0 if candidate.cosine is None else calibrated(candidate.cosine, question.floor)


def _place(candidate: Candidate) -> Place:
    return candidate.passage.path, candidate.passage.first
