"""Where matches of an embedder begin: its floor, found on labelled pairs.

A pair is a memory and a message that should bring it back, or a message alone that should bring back none; every other
memory is a distractor for every message. `pairs.jsonl` beside this module holds our own in English, Vietnamese,
Indonesian and German. Cosines of two models mean different things, so a floor belongs to one embedder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from memagent import matching
from memagent.errors import BadRequest
from memagent.lexicon import terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memagent.llm import Embedder

USED = 3
"""Matches that may count for one message (T05)."""

_TOLERANCE = 0.02
"""A floor is judged by its neighbourhood: a peak that moves with one pair is luck."""


@dataclass(frozen=True, slots=True)
class Pair:
    """`memory` None: the message should bring back nothing. `language` is empty when it is not known."""

    memory: str | None
    query: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One message against all memories: the scores of the best, best first, and the place of the right one.

    `place` counts from 0 and is None for a message that should bring back nothing.
    """

    best: tuple[float, ...]
    place: int | None
    language: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How well one floor separates. `right` of `wanted` memories came back, `wrong` came with them.

    `disturbed` messages that should have brought back nothing brought back something.
    """

    floor: float
    wanted: int
    right: int
    wrong: int
    disturbed: int

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.wanted + self.right + self.wrong) if self.right else 0.0


def load_pairs(lines: Iterable[str] | None = None) -> tuple[Pair, ...]:
    """Read pairs, one JSON object a line; our own without an argument. Raises `BadRequest` naming the line."""
    if lines is None:
        lines = files("memagent.llm").joinpath("pairs.jsonl").read_text("utf-8").splitlines()
    pairs = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            pair = Pair(row["memory"], row["query"], row.get("language", ""))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadRequest(
                f'line {number} is not a pair: expected {{"memory": text or null, "query": text}}'
            ) from error
        pairs.append(pair)
    return tuple(pairs)


async def outcomes(embedder: Embedder, pairs: Sequence[Pair]) -> tuple[Outcome, ...]:
    """Score every message against every memory as recall does; raises `EmbedderFault`."""
    memories = [pair.memory for pair in pairs if pair.memory is not None]
    vectors = await embedder.passages(memories)
    words = [frozenset(terms(memory)) for memory in memories]
    found, own = [], 0
    for pair in pairs:
        query, asked = await embedder.query(pair.query), frozenset(terms(pair.query))
        scores = [
            matching.score(float(query @ vector), shared=len(asked & held), held=len(held))
            for vector, held in zip(vectors, words, strict=True)
        ]
        place = None
        if pair.memory is not None:
            # Whoever scores the same stands before it.
            place = sum(score >= scores[own] for score in scores) - 1
            own += 1
        found.append(Outcome(tuple(sorted(scores, reverse=True)[:USED]), place, pair.language))
    return tuple(found)


def judge(found: Sequence[Outcome], floor: float) -> Verdict:
    """Count what comes back at `floor`: at most `USED` memories a message, each at or above it."""
    right = wrong = disturbed = 0
    for outcome in found:
        back = sum(score >= floor for score in outcome.best)
        hit = outcome.place is not None and outcome.place < back
        right += hit
        wrong += back - hit
        disturbed += outcome.place is None and back > 0
    return Verdict(floor, sum(outcome.place is not None for outcome in found), right, wrong, disturbed)


def best(found: Sequence[Outcome]) -> Verdict:
    """Pick the single floor with the highest F1, however narrow its peak."""
    return max(
        (judge(found, score) for score in {s for outcome in found for s in outcome.best}), key=lambda v: v.f1
    )


def calibrate(found: Sequence[Outcome]) -> Verdict:
    """Pick the floor, in steps of 0.01, whose neighbourhood has the highest mean F1."""

    def standing(step: int) -> float:
        near = (
            step / 100 + offset for offset in (-_TOLERANCE, -_TOLERANCE / 2, 0.0, _TOLERANCE / 2, _TOLERANCE)
        )
        return sum(judge(found, floor).f1 for floor in near)

    return judge(found, max(range(1, 100), key=standing) / 100)


def recall_at(found: Sequence[Outcome], k: int) -> float:
    """Share of the wanted memories among the best `k`, floor or no floor; 0 when none was wanted."""
    places = [outcome.place for outcome in found if outcome.place is not None]
    return sum(place < k for place in places) / len(places) if places else 0.0
