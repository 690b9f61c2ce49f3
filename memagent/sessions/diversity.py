"""Hits that say different things: maximal marginal relevance over their words. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.sessions.search import Hit

_WORD = re.compile(r"\w+")


def tokens(text: str) -> frozenset[str]:
    """The words of a text as they are written, accents and all: `mèo` and `meo` are two (V44)."""
    return frozenset(_WORD.findall(unicodedata.normalize("NFC", text).lower()))


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that two texts have in common, 0..1."""
    return len(one & other) / len(one | other) if one or other else 0.0


def diverse(hits: Sequence[Hit], weight: float | None, *, limit: int) -> tuple[Hit, ...]:
    """The first `limit` of hits that come best first; with a weight, each next one pays for repeating a chosen one.

    `weight` is MMR's lambda: 1 is score alone, 0 is difference alone.
    """
    if weight is None:
        return tuple(hits[:limit])
    left = [(hit, tokens(hit.snippet)) for hit in hits]
    chosen: list[tuple[Hit, frozenset[str]]] = []
    while left and len(chosen) < limit:
        best = max(
            left,
            key=lambda pair: (
                weight * pair[0].score
                - (1 - weight) * max((alike(pair[1], other) for _, other in chosen), default=0.0)
            ),
        )
        left.remove(best)
        chosen.append(best)
    return tuple(hit for hit, _ in chosen)
