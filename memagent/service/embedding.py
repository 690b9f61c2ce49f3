"""Vectors for what is remembered: of a value that is written, and of what is not searched yet (T48)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from memagent.errors import EmbedderFault
from memagent.lexicon import terms
from memagent.store import SetMemory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.llm import Embedder, Vector
    from memagent.memory import Scope
    from memagent.service.ports import Ports
    from memagent.store import Edit

log = logging.getLogger("memagent.embedding")

BATCH = 64
"""Texts per request to an embedder: what providers take without complaint."""


async def passage(embedder: Embedder | None, text: str) -> tuple[Vector | None, str]:
    """The vector of a text to be found, and whose it is.

    Raises `EmbedderFault`: a write that could not be found again would be a silent loss.
    """
    if embedder is None:
        return None, ""
    return (await embedder.passages([text]))[0], embedder.id


async def embedded(embedder: Embedder | None, edits: Sequence[Edit]) -> list[Edit]:
    """The edits, what they set with its vector; as they are without an embedder.

    Raises `EmbedderFault`: whether a write may go on that cannot be found yet is the caller's to decide.
    """
    values = [edit.value for edit in edits if isinstance(edit, SetMemory)]
    if embedder is None or not values:
        return list(edits)
    vectors: list[Vector] = []
    for start in range(0, len(values), BATCH):
        vectors += await embedder.passages(values[start : start + BATCH])
    found = iter(vectors)
    return [
        replace(edit, vector=next(found), embedder=embedder.id) if isinstance(edit, SetMemory) else edit
        for edit in edits
    ]


async def embed_unsearched(ports: Ports, scope: Scope | None = None) -> int:
    """Embed what has no vector of the current embedder, in one scope or in all; returns how many memories got one.

    An edit that happens meanwhile wins: its new words stay, and are embedded in the next round (T49). An embedder that is
    down is logged; the memories stay readable, unsearched and unaged.
    """
    if ports.embedder is None:
        return 0
    attached = 0
    while waiting := await ports.store.unsearched(scope, ports.embedder.id, limit=BATCH):
        try:
            vectors = await ports.embedder.passages([memory.value for memory in waiting])
        except EmbedderFault as fault:
            log.warning(
                "memories stay unsearched for now", extra={"code": fault.code, "waiting": len(waiting)}
            )
            break
        done = 0
        for memory, vector in zip(waiting, vectors, strict=True):
            done += await ports.store.attach_vector(
                memory,
                vector=vector,
                embedder=ports.embedder.id,
                terms=terms(memory.value),
                now=ports.clock(),
            )
        attached += done
        if not done:
            break
    return attached
