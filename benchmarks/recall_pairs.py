"""How well recall separates: raw, centred, words alone, fused, on our own pairs and on a file of others.

    python -m benchmarks.recall_pairs [PAIRS.jsonl]

Without an argument ../shared/recall/pairs.jsonl is measured too when it is there.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measure import Reach, report
from memagent import matching
from memagent.llm.calibration import Pair, best, calibrate, judge, load_pairs, outcomes, recall_at
from memagent.llm.embedders import LOCAL_FLOOR, LocalEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.llm import Embedder, Vector
    from memagent.llm.calibration import Outcome

LANGUAGE_MARKS = {
    "vi": "ạảấầậẩặăđơưọộợụủứừựýễệếềịơờớổốồ",
    "de": ("der ", "die ", "das ", "wie ", "hilf", "welche", "was "),
}
INDONESIAN = ("pengguna", "bagaimana", "tempat", "resep")


class Raw(LocalEmbedder):
    """The model as it answers: no centring, one side."""

    async def query(self, text: str) -> Vector:
        return (await self._asking.run(lambda model, texts: model.query(list(texts)), [text]))[0]

    async def passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        return list(await self._filing.run(lambda model, texts: model.passage(list(texts)), texts))


class WordsAlone:
    """Vectors that say nothing, so that only shared words score."""

    id, dimensions, floor = "words", 2, 0.0

    async def query(self, _text: str) -> Vector:
        return np.array([1, 0], dtype=np.float32)

    async def passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        return [np.array([0, 1], dtype=np.float32) for _ in texts]


def language(pair: Pair) -> str:
    if pair.language:
        return pair.language
    text = pair.query.lower()
    if any(mark in text for mark in LANGUAGE_MARKS["vi"]):
        return "vi"
    if text.startswith(INDONESIAN):
        return "id"
    return "de" if text.startswith(LANGUAGE_MARKS["de"]) and "what" not in text else "en"


def row(name: str, found: Sequence[Outcome], floor: float | None) -> str:
    top = best(found)
    line = f"{name:26} {recall_at(found, 1):8.2f} {recall_at(found, 3):8.2f} {top.f1:8.2f} @{top.floor:.3f}"
    if floor is None:
        return line
    at = judge(found, floor)
    return f"{line} {at.f1:8.2f} {at.right:5}/{at.wanted} {at.wrong:5} {at.disturbed:9}"


async def measure(title: str, pairs: Sequence[Pair]) -> dict[str, dict[str, float]]:
    pairs = [Pair(p.memory, p.query, language(p)) for p in pairs]
    print(f"\n{title}: {len(pairs)} messages, {sum(p.memory is not None for p in pairs)} memories")
    print(f"{'':26} recall@1 recall@3  best F1           F1@floor  back    wrong disturbed")
    local = LocalEmbedder()
    parts: list[tuple[str, Embedder, float, float | None]] = [
        ("raw", Raw(), 0.0, None),
        ("words alone", WordsAlone(), 1.0, None),
        ("centred, both sides", local, 0.0, LOCAL_FLOOR),
        ("fused", local, matching.LEXICAL_WEIGHT, LOCAL_FLOOR),
    ]
    weight = matching.LEXICAL_WEIGHT
    figures: dict[str, dict[str, float]] = {}
    for name, embedder, lexical_weight, floor in parts:
        matching.LEXICAL_WEIGHT = lexical_weight
        found = await outcomes(embedder, pairs)
        print(row(name, found, floor))
        figures[name] = {
            "recall_at_1": round(recall_at(found, 1), 3),
            "recall_at_3": round(recall_at(found, 3), 3),
            "best_f1": round(best(found).f1, 3),
        }
    matching.LEXICAL_WEIGHT = weight
    for code in ("en", "vi", "id", "de"):
        print(row(f"fused, {code}", [o for o in found if o.language == code], LOCAL_FLOOR))
    print(f"calibrate() would choose {calibrate(found).floor:.2f}; shipped {LOCAL_FLOOR:.2f}")
    print("folds:", folds(found))
    figures["fused"]["f1_at_floor"] = round(judge(found, LOCAL_FLOOR).f1, 3)
    return figures


def folds(found: Sequence[Outcome], count: int = 5) -> str:
    """F1 over all messages when each fifth is judged at a floor chosen on the others."""
    right = wrong = wanted = 0
    for fold in range(count):
        rest = [o for i, o in enumerate(found) if i % count != fold]
        at = judge([o for i, o in enumerate(found) if i % count == fold], calibrate(rest).floor)
        right, wrong, wanted = right + at.right, wrong + at.wrong, wanted + at.wanted
    return f"F1 {2 * right / (wanted + right + wrong):.2f} with floors chosen on the other four fifths"


async def main() -> None:
    own = load_pairs()
    figures = {"own": await measure("own pairs", own)}
    given = (
        Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "shared/recall/pairs.jsonl"
    )
    if given.exists():
        others = load_pairs(given.read_text("utf-8").splitlines())
        figures["given"] = await measure(given.name, others)
        figures["both"] = await measure("both in one scope", [*own, *others])
    else:
        print(f"\nskipped: {given} is not here")
    print()
    report("recall_pairs", "default", figures, [reach(*each) for each in figures.items()])


def reach(pairs: str, found: dict[str, dict[str, float]]) -> Reach:
    """The fused default must not lose to any of its parts."""
    others = max(part["best_f1"] for name, part in found.items() if name != "fused")
    gain = round(found["fused"]["best_f1"] - others, 3)
    return Reach(f"best F1 of fused over its best part, {pairs} pairs", gain, 0, "", at_least=True)


if __name__ == "__main__":
    asyncio.run(main())
