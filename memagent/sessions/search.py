"""Searching notes and transcripts of one owner in everyday words; every hit says where it stands (O71 to O75).

Notes are scored by vector and words alone. A turn of a conversation is also known by its neighbours, its date, its
speaker and its session; `sessions.ranking` says what these are worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from memagent.lexicon import terms
from memagent.sessions.candidates import ask, comparable, find
from memagent.sessions.diversity import diverse
from memagent.sessions.files import day_of
from memagent.sessions.lexical import text_score
from memagent.sessions.notes import PATIENCE_S, STALE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from memagent.sessions.candidates import Candidate, Question
    from memagent.sessions.notes import NoteIndex
    from memagent.sessions.vectors import Generation, Passage

MAX_CANDIDATES = 200
MAX_MULTIPLIER = 20
SNIPPET_CHARS = 700
SOURCE_NOTES = "memory"
SOURCE_TURNS = "sessions"
SOURCE_FACTS = "facts"


@dataclass(frozen=True, slots=True)
class SearchPolicy:
    """How notes are ranked. Weights are normalised to a sum of 1; both zero means the defaults (O72).

    `min_score` does not hold back a note in which every word of the question stands (O73). `half_life_days` lets daily
    notes sink with age, never below the floor; None switches it off (O75). `diversity` is MMR's lambda in 0..1, None
    ranks by score alone.
    """

    limit: int = 6
    min_score: float = 0.35
    vector_weight: float = 0.7
    text_weight: float = 0.3
    candidate_multiplier: int = 4
    half_life_days: float | None = 30.0
    diversity: float | None = None

    def __post_init__(self) -> None:
        if self.limit < 1 or self.vector_weight < 0 or self.text_weight < 0:
            raise ValueError("a search needs a limit of at least 1 and weights that are not negative")

    @property
    def weights(self) -> tuple[float, float]:
        total = self.vector_weight + self.text_weight
        if not total:
            return 0.7, 0.3
        return self.vector_weight / total, self.text_weight / total

    @property
    def candidates(self) -> int:
        return min(self.limit * min(max(self.candidate_multiplier, 1), MAX_MULTIPLIER), MAX_CANDIDATES)


@dataclass(frozen=True, slots=True)
class Hit:
    """One passage that answers. `score` in 0..1 ranks; `parts` are what it is made of; `exact`: every asked word is in it."""

    source: str
    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    exact: bool = False
    label: str = ""
    at: datetime | None = None
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def citation(self) -> str:
        return f"{self.path}#L{self.start_line}-L{self.end_line}"

    def to_json(self) -> dict[str, Any]:
        """The result of `memory_search` (O76)."""
        told: dict[str, Any] = {
            "path": self.path,
            "startLine": self.start_line,
            "endLine": self.end_line,
            "score": round(self.score, 4),
            "snippet": self.snippet,
            "source": self.source,
            "citation": self.citation,
        }
        if self.label:
            told["speaker" if self.source == SOURCE_TURNS else "category"] = self.label
        if self.at:
            told["date"] = self.at.isoformat()
        return told


@dataclass(frozen=True, slots=True)
class Answer:
    """Hits, best first. `stale` is empty, or why the index may be behind: `indexing`, or the code of a fault (O70)."""

    hits: tuple[Hit, ...] = ()
    stale: str = ""


async def search_notes(
    index: NoteIndex,
    text: str,
    *,
    now: datetime,
    policy: SearchPolicy | None = None,
    question: Question | None = None,
    patience_s: float | None = PATIENCE_S,
) -> Answer:
    """The notes that answer `text`; none for a blank one.

    Waits a little for the index to catch up and says so when it has not; with a patience of None it does not look at the
    files, because a watcher does. Without an embedder, words alone decide and
    there is no floor (O74). An embedder that is configured and fails raises `EmbedderFault`: no silent second best (O78).
    """
    policy = policy or SearchPolicy()
    if not text.strip():
        return Answer()
    stale = "" if patience_s is None else await index.freshen(patience_s=patience_s)
    live = await index.live()
    if live is None:
        return Answer((), stale)
    question = question or await ask(text, index.embedder)
    found = await find(index.vectors, live, question, limit=policy.candidates)
    answer = rank(live, question, found.candidates, now=now, policy=policy, source=SOURCE_NOTES)
    return replace(answer, stale=stale or answer.stale)


def rank(
    live: Generation,
    question: Question,
    candidates: Sequence[Candidate],
    *,
    now: datetime,
    policy: SearchPolicy,
    source: str,
) -> Answer:
    """Score, floor, age, order, cut: in this order, so that age only moves a hit down and never out."""
    hybrid = comparable(live, question)
    scored = (_scored(candidate, question, policy, source=source, hybrid=hybrid) for candidate in candidates)
    hits = [_aged(hit, now, policy) for hit in scored if hit is not None]
    hits.sort(key=lambda hit: (-hit.score, hit.path, hit.start_line))
    behind = "" if live.embedder == question.embedder else STALE
    return Answer(diverse(hits, policy.diversity, limit=policy.limit), behind)


def _scored(
    candidate: Candidate, question: Question, policy: SearchPolicy, *, source: str, hybrid: bool
) -> Hit | None:
    text = text_score(candidate.words)
    vector = 0.0 if candidate.cosine is None else calibrated(candidate.cosine, question.floor)
    vector_weight, text_weight = policy.weights
    score = vector_weight * vector + text_weight * text if hybrid else text
    # Floats: .7 * .5 must meet a floor of .35.
    reached = score >= policy.min_score - 1e-6 if hybrid else candidate.words > 0
    if not reached and not candidate.exact:
        return None
    return hit_of(candidate, question, source=source, score=score, parts={"vector": vector, "text": text})


def hit_of(
    candidate: Candidate, question: Question, *, source: str, score: float, parts: Mapping[str, float]
) -> Hit:
    """A scored candidate as it is told."""
    passage = candidate.passage
    return Hit(
        source,
        passage.path,
        passage.first,
        passage.last,
        score,
        snippet(passage, question.terms),
        exact=candidate.exact,
        label=passage.label,
        at=passage.at,
        parts=parts,
    )


def _aged(hit: Hit, now: datetime, policy: SearchPolicy) -> Hit:
    day = day_of(hit.path)
    if day is None or policy.half_life_days is None:
        return hit
    return replace(hit, score=hit.score * age_factor((now.date() - day).days, policy.half_life_days))


def age_factor(days: float, half_life_days: float) -> float:
    """One today and for a day to come, a half at the half-life (O75)."""
    return math.exp(-math.log(2) * max(days, 0.0) / half_life_days)


def calibrated(cosine: float, floor: float) -> float:
    """A cosine in 0..1 with the embedder's floor at 0.5, so that one policy serves every embedder (O81).

    With a floor of 0.5 it is the cosine itself. Cosines of some models crowd at the top; there the way down to 0 is as
    short as the way up to 1.
    """
    if cosine >= floor:
        return min(0.5 + 0.5 * (cosine - floor) / max(1.0 - floor, 1e-6), 1.0)
    return max(0.5 - 0.5 * (floor - cosine) / max(min(floor, 1.0 - floor), 1e-6), 0.0)


def snippet(passage: Passage, asked: Sequence[str]) -> str:
    """The part of a passage that shows why it was found: from its first line with an asked word on (O71)."""
    text = passage.text.strip()
    if len(text) <= SNIPPET_CHARS:
        return text
    lines = text.split("\n")
    wanted = set(asked)
    start = next((at for at, line in enumerate(lines) if wanted & set(terms(line))), 0)
    while start and len("\n".join(lines[start - 1 :])) <= SNIPPET_CHARS:
        start -= 1
    return "\n".join(lines[start:])[:SNIPPET_CHARS]
