"""Searching what was literally said: the turns of one owner, each with what stands around it.

A bare turn ("yes, last Tuesday") says little by itself. Every turn is ranked together with its neighbours, its date, its
speaker and its session; what these are worth is `sessions.ranking`'s business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.sessions.candidates import ask, candidates_of, find
from memagent.sessions.lexical import text_score
from memagent.sessions.notes import STALE
from memagent.sessions.ranking import REACH, rank
from memagent.sessions.search import SOURCE_TURNS, Answer, SearchPolicy, calibrated, hit_of
from memagent.sessions.vectors import passage_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from memagent.sessions.candidates import Candidate, Found, Question
    from memagent.sessions.ranking import Features, Ranked
    from memagent.sessions.search import Hit
    from memagent.sessions.turns import TurnIndex
    from memagent.sessions.vectors import Generation

CANDIDATES = 50
"""Turns that are looked at closely, from either side; what is said around them comes on top."""

Place = tuple[str, int]
"""Session path and number of a turn."""


async def search_turns(
    index: TurnIndex,
    owner: str,
    text: str,
    *,
    now: datetime,
    policy: SearchPolicy | None = None,
    question: Question | None = None,
    weights: Features | None = None,
) -> Answer:
    """The turns of `owner` that answer `text`, each once, best first; none for a blank text.

    The policy's floor holds for what a turn and the turns beside it are worth on their own, as notes are scored; a turn
    with every word of the question passes it. The scores that come back keep the order of the ranking, on the scale of
    the notes'. Raises `EmbedderFault`, `StoreFault`.
    """
    live = await index.live(owner)
    if live is None or not text.strip():
        return Answer()
    policy = policy or SearchPolicy()
    question = question or await ask(text, index.embedder)
    found = await find(index.vectors, live, question, limit=max(CANDIDATES, policy.candidates))
    turns = [*found.candidates, *await _around(index, live, question, found)]
    ranked = rank(question, turns, found.frequencies, now=now, weights=weights)
    hits = _hits(ranked, question, policy)
    behind = "" if live.embedder == question.embedder else STALE
    return Answer(tuple(hits), behind)


async def _around(
    index: TurnIndex, live: Generation, question: Question, found: Found
) -> Sequence[Candidate]:
    """What is said around the candidates and is none itself; of a turn in pieces, its first."""
    places = {_place(candidate) for candidate in found.candidates}
    steps = [step for step in range(-REACH, REACH + 1) if step]
    near = {(path, number + step) for path, number in places for step in steps if number + step > 0} - places
    rows = await index.vectors.fetch(
        live, [passage_id(path, number, number) for path, number in sorted(near)]
    )
    return candidates_of(live, question, list(rows.values()), found.frequencies)


def _hits(ranked: Sequence[Ranked], question: Question, policy: SearchPolicy) -> list[Hit]:
    """The first piece of each turn that the floor lets pass, in the order of the ranking, as many as are asked for."""
    worth = _worth([each.candidate for each in ranked], question, policy)
    scale = max(worth.values(), default=0.0)
    hits: dict[Place, Hit] = {}
    for each in ranked:
        if len(hits) == policy.limit:
            break
        path, number = place = _place(each.candidate)
        support = max(worth.get((path, number + step), 0.0) for step in (-1, 0, 1))
        if place in hits or not (each.candidate.exact or support >= max(policy.min_score - 1e-6, 1e-6)):
            continue
        parts = {**each.features.to_dict(), "support": support}
        hits[place] = hit_of(
            each.candidate, question, source=SOURCE_TURNS, score=each.score * scale, parts=parts
        )
    return list(hits.values())


def _worth(turns: Sequence[Candidate], question: Question, policy: SearchPolicy) -> Mapping[Place, float]:
    """What each turn is worth by itself, scored as a note is."""
    hybrid = any(turn.cosine is not None for turn in turns)
    vector_weight, text_weight = policy.weights if hybrid else (0.0, 1.0)
    worth: dict[Place, float] = {}
    for turn in turns:
        vector = 0.0 if turn.cosine is None else calibrated(turn.cosine, question.floor)
        score = vector_weight * vector + text_weight * text_score(turn.words)
        worth[_place(turn)] = max(worth.get(_place(turn), 0.0), score)
    return worth


def _place(candidate: Candidate) -> Place:
    return candidate.passage.path, candidate.passage.first
