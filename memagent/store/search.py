"""What one search sends: `lua/see.lua` and `lua/judge.lua` read it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memagent.matching import LEXICAL_WEIGHT, LONG_MEMORY_TERMS
from memagent.store import CONSENT, RecallQuery
from memagent.store.index import Index, query_terms, with_terms
from memagent.store.keys import channel_tag, embedder_tag, scope_id
from memagent.store.rows import day_number, half_precision, milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.memory import Scope
    from memagent.store.prefixes import Prefix


def recall_request(
    index: Index | None, scopes: Sequence[Scope], query: RecallQuery, known: Prefix | None
) -> tuple[dict[str, Any], list[bytes]]:
    """The request and its vector. Raises `BadRequest` for a vector that the index cannot compare.

    It has a `context` where what is `known` depended on the words of the chat.
    """
    searching = index if query.vector is not None and scopes else None
    words = query_terms(query.terms)
    request: dict[str, Any] = {
        "scopes": [_scope_row(searching, scope, query.candidates, words) for scope in scopes],
        "index": index.name if index else "",
        "emb": embedder_tag(query.embedder),
        "search": searching is not None,
        "terms": words,
        "channel": channel_tag(query.channel),
        "floor": query.floor,
        "used": query.used,
        "candidates": query.candidates,
        "hits": query.hits,
        "decay": query.decay,
        "days": query.dormant_after_days,
        "commit": query.commit,
        "weights": {"lexical": LEXICAL_WEIGHT, "long": LONG_MEMORY_TERMS, **query.weights},
        "consent": CONSENT,
        "now": milliseconds(query.now),
        "today": day_number(query.now),
    }
    if known is not None:
        for row, mark in zip(request["scopes"], known.marks, strict=True):
            row["known"] = mark
        if known.tagged:
            request["context"] = query.context_terms()
    if index is None or query.vector is None:
        return request, []
    return request, [half_precision(query.vector, index.dimensions)]


def _scope_row(index: Index | None, scope: Scope, candidates: int, words: Sequence[str]) -> dict[str, Any]:
    name = scope_id(scope)
    row: dict[str, Any] = {"id": name, "kind": scope.kind.value}
    if index is not None:
        nearest, sharing, everything = _standing_queries(index, name, candidates)
        row |= {"nearest": nearest, "all": everything}
        if words:
            row["lexical"] = with_terms(sharing, words)
    return row


@lru_cache(maxsize=4096)
def _standing_queries(index: Index, scope: str, candidates: int) -> tuple[str, str, str]:
    """What every search of a scope asks: a chat goes on in the same scopes, and writing these takes a share of its time."""
    nearest, sharing = (index.nearest(scope, candidates, sharing=words) for words in (False, True))
    return nearest, sharing, index.all_of(scope)
