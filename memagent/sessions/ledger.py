"""Rows that are the only copy of what they hold: turns and facts. Written at once, re-embedded from their own text.

One owner's rows are one live generation. Another embedder builds a new generation from the old one's texts; what is
written meanwhile is never lost, whichever of the two is live when.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memagent.errors import EmbedderFault
from memagent.sessions.embedding import Embedded, embed_passages
from memagent.sessions.vectors import Generation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.llm import Embedder
    from memagent.sessions.vectors import Kind, Passage, VectorStore


@dataclass(frozen=True, slots=True)
class Written:
    """Rows that were written; `unembedded` ones are found by their words until `catch_up` succeeds."""

    rows: int = 0
    embedded: int = 0
    reused: int = 0
    unembedded: int = 0
    rebuilt: bool = False


class Ledger:
    """Rows of one kind, of many owners. `recipe` names the way rows are made: another one is another generation."""

    def __init__(self, vectors: VectorStore, embedder: Embedder | None, *, kind: Kind, recipe: str) -> None:
        self.vectors = vectors
        self.embedder = embedder
        self._kind = kind
        self._recipe = recipe
        self._lock = asyncio.Lock()

    async def live(self, owner: str) -> Generation | None:
        return await self.vectors.live(owner, self._kind)

    async def add(self, owner: str, passages: Sequence[Passage]) -> Written:
        """Write rows; one that is there already is overwritten.

        When the embedder is down they are written all the same and can be found by their words. Raises `StoreFault`;
        then nothing is promised and the same call can be made again.
        """
        while passages:
            live = await self.live(owner) or await self._first(owner)
            done, missing = await self._embedded(live, passages)
            await self.vectors.add(live, done.passages)
            # A rebuild may have gone live meanwhile: its last look at the old generation can be before this write.
            if await self.live(owner) == live:
                return Written(len(passages), done.embedded, done.reused, missing)
        return Written()

    async def catch_up(self, owner: str) -> Written:
        """Give every row a vector of the current embedder.

        Of another embedder's generation a new one is built beside it, which answers once it is whole; a run that died
        goes on where it stopped. Raises `EmbedderFault`, `StoreFault`; the old generation keeps answering.
        """
        async with self._lock:
            live = await self.live(owner)
            if live is None:
                return Written()
            if live == self._wanted(owner, live.serial):
                return await self._copy(live, live, {})
            return await self._rebuild(owner, live, self._wanted(owner, live.serial + 1))

    async def _rebuild(self, owner: str, old: Generation, new: Generation) -> Written:
        await self.vectors.begin(new)
        copied: dict[str, str] = {}
        done = await self._copy(old, new, copied)
        await self._follow(old, new, copied, answering=False)
        await self.vectors.make_live(new)
        # What was written to the old generation, or removed from it, while its last paths were copied.
        rest = await self._copy(old, new, copied)
        await self._follow(old, new, copied, answering=True)
        await self.vectors.sweep(owner, self._kind)
        embedded, reused = done.embedded + rest.embedded, done.reused + rest.reused
        return Written(done.rows + rest.rows, embedded, reused, rebuilt=True)

    async def remove(self, owner: str, path: str) -> None:
        """Remove the rows of one path."""
        while live := await self.live(owner):
            await self.vectors.replace(live, path, ())
            if await self.live(owner) == live:
                return

    async def rows(self, owner: str, path: str) -> Sequence[Passage]:
        live = await self.live(owner)
        return await self.vectors.rows(live, path) if live else ()

    def _wanted(self, owner: str, serial: int) -> Generation:
        if self.embedder is None:
            return Generation(owner, self._kind, serial, recipe=self._recipe)
        return Generation(owner, self._kind, serial, self.embedder.id, self.embedder.dimensions, self._recipe)

    async def _first(self, owner: str) -> Generation:
        wanted = self._wanted(owner, 1)
        await self.vectors.begin(wanted)
        await self.vectors.make_live(wanted)
        return await self.live(owner) or wanted

    async def _embedded(self, live: Generation, passages: Sequence[Passage]) -> tuple[Embedded, int]:
        """Rows for the live generation; while it is another embedder's they have no vector."""
        if self.embedder is None or live.embedder != self.embedder.id:
            return Embedded(tuple(passages)), len(passages) if live.embedder else 0
        try:
            return await embed_passages(self.vectors, self.embedder, passages, sources=[live]), 0
        except EmbedderFault:
            return Embedded(tuple(passages)), len(passages)

    async def _copy(self, source: Generation, target: Generation, copied: dict[str, str]) -> Written:
        """Write to `target` what it lacks of `source`, path by path; the same one to fill in vectors.

        `copied` are the digests of the rows that this run wrote: a row with another one was written by somebody since
        and is the newer one.
        """
        rows = embedded = reused = 0
        for path in sorted(await self.vectors.versions(source)):
            given = {row.id: row for row in await self.vectors.rows(source, path)}
            there = await self.vectors.fetch(target, list(given))
            lacking = [row for row in given.values() if _lacks(there.get(row.id), row, target, copied)]
            if not lacking:
                continue
            done = await embed_passages(self.vectors, self.embedder, lacking, sources=[target, source])
            # Embedding takes its time: what was removed or said anew meanwhile does not come back.
            now = {row.id: row.digest for row in await self.vectors.rows(source, path)}
            current = [row for row in done.passages if now.get(row.id) == row.digest]
            await self.vectors.add(target, current)
            copied |= {row.id: row.digest for row in current}
            rows += len(current)
            embedded += done.embedded
            reused += done.reused
        return Written(rows, embedded, reused)

    async def _follow(
        self, source: Generation, target: Generation, copied: dict[str, str], *, answering: bool
    ) -> None:
        """Remove from `target` the paths that are gone from `source`, but none that was written to it as the live one."""
        gone = (await self.vectors.versions(target)).keys() - (await self.vectors.versions(source)).keys()
        for path in sorted(gone):
            rows = await self.vectors.rows(target, path) if answering else ()
            if all(copied.get(row.id) == row.digest for row in rows):
                await self.vectors.replace(target, path, ())


def _lacks(there: Passage | None, row: Passage, target: Generation, copied: dict[str, str]) -> bool:
    if there is None or (target.dimensions and there.vector is None):
        return True
    return there.digest != row.digest and copied.get(row.id, there.digest) == there.digest
