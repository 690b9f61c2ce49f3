"""Does the turn that holds the answer stand among the first ten? LoCoMo's conversations, evaluation only.

    python benchmarks/recall_locomo.py [locomo10.json] [--fit]

Reads ../shared/recall/locomo10.json, which is not ours to ship (CC BY-NC 4.0). Weights are chosen on one half of the
conversations and scored on the other, both ways; `--fit` prints the weights that all of them together choose. Embeddings
are kept under build/.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memagent.lexicon import content_words
from memagent.llm.embedders import LocalEmbedder
from memagent.sessions.candidates import Candidate, Question
from memagent.sessions.lexical import bm25, query_terms
from memagent.sessions.ranking import FUSED, LEXICAL, REACH, Features, features
from memagent.sessions.vectors import Frequencies, Passage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parents[1]
CANDIDATES = 50
NAMES = [field.name for field in fields(Features)]
LEXICAL_NAMES = [name for name in NAMES if "vector" not in name]


@dataclass
class Asked:
    """One question of one conversation: the turns looked at, their features, and which of all turns hold the answer."""

    conversation: int
    looked_at: np.ndarray
    matrix: np.ndarray
    right: list[int]
    turns: int


def passages(sample: dict[str, Any]) -> tuple[list[Passage], dict[str, int]]:
    talk, rows, places = sample["conversation"], [], {}
    number = 1
    while f"session_{number}_date_time" in talk:
        at = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(
            tzinfo=UTC
        )
        for place, turn in enumerate(talk.get(f"session_{number}", []), start=1):
            picture = turn.get("blip_caption")
            text = turn["text"] + (f" [{picture}]" if picture else "")
            places[turn["dia_id"]] = len(rows)
            terms = tuple(content_words(text))
            rows.append(
                Passage(
                    f"sessions/{number}", place, place, text, "", terms=terms, label=turn["speaker"], at=at
                )
            )
        number += 1
    return rows, places


def embeddings(samples: Sequence[dict[str, Any]], *, speakers: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Vectors of the turns and of the questions of each conversation; the model keeps one core busy, so every core has one."""
    kept = ROOT / "build/locomo"
    kept.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(partial(vectors_of, kept, speakers=speakers), range(len(samples)), samples))


def vectors_of(
    kept: Path, number: int, sample: dict[str, Any], *, speakers: bool
) -> tuple[np.ndarray, np.ndarray]:
    embedder = LocalEmbedder()
    path = kept / f"{embedder.id}-{'named' if speakers else 'bare'}-{number}.npz"
    if not path.exists():
        turns, questions = asyncio.run(embedded(embedder, sample, speakers=speakers))
        np.savez(path, turns=turns, questions=questions)
    embedder.close()
    with np.load(path) as stored:
        return stored["turns"], stored["questions"]


async def embedded(
    embedder: LocalEmbedder, sample: dict[str, Any], *, speakers: bool
) -> tuple[np.ndarray, np.ndarray]:
    rows, _ = passages(sample)
    texts = [f"{row.label}: {row.text}" if speakers else row.text for row in rows]
    turns = np.array(await embedder.passages(texts))
    return turns, np.array([await embedder.query(each["question"]) for each in sample["qa"]])


def ask_all(
    number: int, sample: dict[str, Any], vectors: tuple[np.ndarray, np.ndarray], *, fused: bool
) -> list[Asked]:
    rows, places = passages(sample)
    by_place = {(row.path, row.first): n for n, row in enumerate(rows)}
    held = [frozenset(row.terms) for row in rows]
    total = sum(len(row.terms) for row in rows)
    asked = []
    for each, vector in zip(sample["qa"], vectors[1], strict=True):
        named = {place for entry in each.get("evidence", []) for place in re.split(r"[;,\s]+", entry)}
        right = sorted({places[place] for place in named if place in places})
        if not right:
            continue
        terms = query_terms(each["question"])
        known = Frequencies(len(rows), total, {term: sum(term in h for h in held) for term in terms})
        words = np.array([bm25(terms, row.terms, known) for row in rows])
        cosines = vectors[0] @ vector
        first = [n for n in np.argsort(-words, kind="stable")[:CANDIDATES] if words[n] > 0]
        if fused:
            first += list(np.argsort(-cosines)[:CANDIDATES])
        around = {
            by_place.get((rows[n].path, rows[n].first + step))
            for n in first
            for step in range(-REACH, REACH + 1)
        }
        looked_at = sorted(n for n in around if n is not None)
        turns = [
            Candidate(rows[n], float(cosines[n]) if fused else None, float(words[n]), exact=False)
            for n in looked_at
        ]
        question = Question(each["question"], terms, vector=vector if fused else None)
        found = features(question, turns, known, now=rows[-1].at or datetime.now(UTC))
        matrix = np.array([[getattr(f, name) for name in NAMES] for f in found], dtype=np.float32).reshape(
            -1, len(NAMES)
        )
        asked.append(Asked(number, np.array(looked_at, dtype=int), matrix, right, len(rows)))
    return asked


def figures(asked: Sequence[Asked], score: Callable[[Asked], np.ndarray]) -> dict[str, float]:
    """Percentages: an answer among the first 3, 5, 10; mean reciprocal rank. What was not looked at has rank infinity."""
    ranks = []
    for each in asked:
        order = each.looked_at[np.argsort(-score(each), kind="stable")].tolist()
        ranks.append(min((order.index(n) for n in each.right if n in order), default=10**9))
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


def shipped(weights: Features) -> Callable[[Asked], np.ndarray]:
    return weighed(np.array([getattr(weights, name) for name in NAMES]), NAMES)


def crossed(asked: Sequence[Asked], names: Sequence[str]) -> dict[str, float]:
    """Chosen on one half, scored on the other, both ways, each question counted once."""
    total: dict[str, float] = {}
    for half in (0, 1):
        chosen_on, scored_on = ([a for a in asked if a.conversation % 2 == side] for side in (half, 1 - half))
        result = figures(scored_on, weighed(fit(chosen_on, names), names))
        for key, value in result.items():
            total[key] = total.get(key, 0.0) + value * len(scored_on) / len(asked)
    return total


FIGURES: dict[str, dict[str, float]] = {}


def show(name: str, result: dict[str, float]) -> None:
    FIGURES[name] = {key: round(value, 1) for key, value in result.items()}
    print(f"{name:44}" + "".join(f"{key:>8} {value:5.1f}" for key, value in result.items()), flush=True)


def main() -> None:
    arguments = [word for word in sys.argv[1:] if not word.startswith("--")]
    path = Path(arguments[0]) if arguments else ROOT.parent / "shared/recall/locomo10.json"
    if not path.exists():
        print(f"skipped: {path} is not here")
        return
    samples = json.loads(path.read_text("utf-8"))
    for speakers in (False, True) if "--named" in sys.argv else (False,):
        vectors = embeddings(samples, speakers=speakers)
        every = [a for n, s in enumerate(samples) for a in ask_all(n, s, vectors[n], fused=True)]
        print(
            f"\n{len(every)} questions; turns embedded {'with' if speakers else 'without'} the speaker's name"
        )
        show("vector alone", figures(every, lambda a: a.matrix[:, NAMES.index("vector")]))
        show("fused, halves crossed", crossed(every, NAMES))
        show("fused, as shipped", figures(every, shipped(FUSED)))
        if "--fit" in sys.argv:
            print({name: round(float(w), 2) for name, w in zip(NAMES, fit(every, NAMES), strict=True)})
    words = [a for n, s in enumerate(samples) for a in ask_all(n, s, vectors[n], fused=False)]
    print("\nwords only")
    show("BM25 alone", figures(words, lambda a: a.matrix[:, NAMES.index("words")]))
    show("words, halves crossed", crossed(words, LEXICAL_NAMES))
    show("words, as shipped", figures(words, shipped(LEXICAL)))
    if "--fit" in sys.argv:
        print({n: round(float(w), 2) for n, w in zip(LEXICAL_NAMES, fit(words, LEXICAL_NAMES), strict=True)})
    print(json.dumps({"benchmark": "recall_locomo", "figures": FIGURES}))


if __name__ == "__main__":
    main()
