"""Which turn of a conversation answers a question, from what stands around it. Pure.

A turn says little by itself: "yes, last Tuesday" answers a question of the turn before. So a turn is known by its words and
its vector, by the few turns around it, by its session, and by who speaks and when. Everything is measured against the best
of the same search, so neither the length of a conversation nor an embedder's cosines shift the scale. How the weights were
found: docs/recall.md.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING

from memagent.lexicon import content_words, fold
from memagent.sessions.dates import named_dates
from memagent.sessions.lexical import bm25, weight

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from memagent.sessions.candidates import Candidate, Question
    from memagent.sessions.vectors import Frequencies

REACH = 2
"""Turns before and after that are read with a turn: a question, its answer, and what is said to it."""

_ASKS_WHEN = re.compile(
    r"\b(when|how long|(what|which) (date|day|month|year)|wann|wie lange|seit wann|welche[nmrs]? (tag|monat|jahr)"
    r"|kapan|berapa lama|tanggal berapa|khi nao|bao gio|bao lau|hoi nao|ngay nao|thang nao|nam nao)\b"
)
_TELLS_WHEN = re.compile(
    r"\b(today|tonight|tomorrow|yesterday|ago|recently|since|last|next|weekends?|days?|weeks?|months?|years?"
    r"|(mon|tues|wednes|thurs|fri|satur|sun)day|spring|summer|autumn|winter"
    r"|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|heute|morgen|gestern|vor|seit|letzte[nrs]?|nachste[nrs]?|tage?n?|wochen?|monate?n?|jahre?n?"
    r"|(mon|diens|donners|frei|sams|sonn)tag|mittwoch|januar|februar|marz|mai|juni|juli|oktober|dezember"
    r"|hari|kemarin|besok|lusa|minggu|bulan|tahun|lalu|depan|senin|selasa|rabu|kamis|jumat|sabtu"
    r"|hom|ngay|tuan|thang|nam|truoc|sang|(19|20)\d\d)\b"
)
_ENDS_ASKING = re.compile(r"[?\uff1f\u061f]\W*$")


@dataclass(frozen=True, slots=True)
class Features:
    """What is known of one turn, each in 0..1; as weights, what each is worth."""

    words: float = 0.0
    """BM25 of the turn, of the best turn's."""
    near_words: float = 0.0
    """BM25 of the turn with those in `REACH` as one text, of the best such text's."""
    coverage: float = 0.0
    """How much of the question's weight in words stands in the turn."""
    session_words: float = 0.0
    """The best `near_words` of its session."""
    answers: float = 0.0
    """`words` of the turn before it when that one is a question."""
    vector: float = 0.0
    """Cosine between the worst and the best of the search."""
    near_vector: float = 0.0
    """The better `vector` of the two turns beside it."""
    session_vector: float = 0.0
    """The best `vector` of its session."""
    speaker: float = 0.0
    """The question names who speaks here, and nobody else who speaks."""
    asks: float = 0.0
    """The turn ends as a question."""
    time: float = 0.0
    """The question asks when, and the turn says something of time."""
    date: float = 0.0
    """The turn was said on a date that the question names."""

    def weighed(self, weights: Features) -> float:
        """Return 0..1: the weighted sum, against the sum of all that speaks for a turn."""
        rows = [(getattr(self, field.name), getattr(weights, field.name)) for field in fields(self)]
        most = sum(worth for _, worth in rows if worth > 0)
        return min(1.0, max(0.0, sum(value * worth for value, worth in rows) / most)) if most else 0.0

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


FUSED = Features(
    words=0.7, near_words=2.6, coverage=2.0, session_words=2.1, answers=1.9, vector=3.4, near_vector=2.1,
    session_vector=2.8, speaker=1.0, asks=-1.5, time=2.4, date=4.2,
)  # fmt: skip
"""For turns with vectors."""

LEXICAL = Features(
    words=1.5, near_words=3.1, coverage=2.1, session_words=2.9, answers=2.1, speaker=1.2, asks=-1.3, time=2.2, date=4.4
)  # fmt: skip
"""For words alone."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A turn and what speaks for it; `score` in 0..1 is against the best of the same search."""

    candidate: Candidate
    score: float
    features: Features


def rank(
    question: Question,
    turns: Sequence[Candidate],
    frequencies: Frequencies | None,
    *,
    now: datetime,
    weights: Features | None = None,
) -> list[Ranked]:
    """Order turns, best first; `turns` hold the candidates and what is said around them, each place at most once a piece.

    Without `weights`, `FUSED` when a turn has a cosine and `LEXICAL` otherwise.
    """
    found = features(question, turns, frequencies, now=now)
    if weights is None:
        weights = FUSED if any(turn.cosine is not None for turn in turns) else LEXICAL
    ranked = [Ranked(turn, each.weighed(weights), each) for turn, each in zip(turns, found, strict=True)]
    return sorted(ranked, key=lambda r: (-r.score, r.candidate.passage.path, r.candidate.passage.first))


def features(
    question: Question, turns: Sequence[Candidate], frequencies: Frequencies | None, *, now: datetime
) -> list[Features]:
    """Measure every turn against the question and the other turns, in order."""
    scene = _Scene(question, turns, frequencies, now)
    return [scene.features(number) for number in range(len(turns))]


class _Scene:
    """All turns of one search, measured once."""

    def __init__(
        self, question: Question, turns: Sequence[Candidate], frequencies: Frequencies | None, now: datetime
    ) -> None:
        self.turns = turns
        self.places: Mapping[tuple[str, int], list[int]] = _places(turns)
        asked = {fold(word) for word in re.findall(r"[^\W\d_]+", question.text)}
        speakers = {turn.passage.label for turn in turns}
        self.named = {label for label in speakers if asked & {fold(word) for word in label.split()}}
        # A name of who speaks is in what the other one says to them: it is about the speaker, not about the words.
        names = {term for label in self.named for term in content_words(label)}
        self.terms = tuple(term for term in question.terms if term not in names)
        self.rarity = {term: weight(term, frequencies) for term in self.terms} if frequencies else {}
        self.words = _of_best(
            [bm25(self.terms, turn.passage.terms, frequencies) if frequencies else 0.0 for turn in turns]
        )
        self.near = _of_best([self._near(turn, frequencies) for turn in turns])
        self.vectors = _between([turn.cosine for turn in turns])
        self.asks = [bool(_ENDS_ASKING.search(turn.passage.text)) for turn in turns]
        self.best_near = _best_of_sessions(turns, self.near)
        self.best_vector = _best_of_sessions(turns, self.vectors)
        self.when = bool(_ASKS_WHEN.search(_folded(question.text)))
        self.dates = named_dates(question.text, today=now.date())

    def features(self, number: int) -> Features:
        passage = self.turns[number].passage
        before, after = self._at(passage.path, passage.first - 1), self._at(passage.path, passage.last + 1)
        asked = [n for n in before if self.asks[n]]
        held = self.rarity.keys() & set(passage.terms)
        total = sum(self.rarity.values())
        return Features(
            words=self.words[number],
            near_words=self.near[number],
            coverage=sum(self.rarity[term] for term in held) / total if total else 0.0,
            session_words=self.best_near[passage.path],
            answers=_best(self.words, asked),
            vector=self.vectors[number],
            near_vector=_best(self.vectors, [*before, *after]),
            session_vector=self.best_vector[passage.path],
            speaker=float(self.named == {passage.label}),
            asks=float(self.asks[number]),
            time=float(self.when and bool(_TELLS_WHEN.search(_folded(passage.text)))),
            date=float(passage.at is not None and any(date.holds(passage.at.date()) for date in self.dates)),
        )

    def _near(self, turn: Candidate, frequencies: Frequencies | None) -> float:
        """BM25 of the turn and those around it read as one text."""
        if frequencies is None:
            return 0.0
        passage = turn.passage
        around = [
            n for step in range(-REACH, REACH + 1) for n in self._at(passage.path, passage.first + step)
        ]
        row = [term for n in around for term in self.turns[n].passage.terms]
        return bm25(self.terms, row, replace(frequencies, terms=frequencies.terms * (2 * REACH + 1)))

    def _at(self, path: str, number: int) -> Sequence[int]:
        return self.places.get((path, number), ())


def _places(turns: Sequence[Candidate]) -> dict[tuple[str, int], list[int]]:
    places: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, turn in enumerate(turns):
        places[turn.passage.path, turn.passage.first].append(number)
    return dict(places)


def _of_best(scores: Sequence[float]) -> list[float]:
    best = max(scores, default=0.0)
    return [score / best if best > 0 else 0.0 for score in scores]


def _between(cosines: Sequence[float | None]) -> list[float]:
    known = [cosine for cosine in cosines if cosine is not None]
    if not known:
        return [0.0] * len(cosines)
    worst, best = min(known), max(known)
    reach = best - worst
    return [0.0 if cosine is None else (cosine - worst) / reach if reach > 0 else 1.0 for cosine in cosines]


def _best_of_sessions(turns: Sequence[Candidate], scores: Sequence[float]) -> Mapping[str, float]:
    best: dict[str, float] = defaultdict(float)
    for turn, score in zip(turns, scores, strict=True):
        best[turn.passage.path] = max(best[turn.passage.path], score)
    return best


def _best(scores: Sequence[float], numbers: Iterable[int]) -> float:
    return max((scores[number] for number in numbers), default=0.0)


def _folded(text: str) -> str:
    return " ".join(fold(word) for word in text.split())
