"""The index of what was literally said: every turn with its session, date and speaker, per owner.

The rows are the only copy this index needs: another embedder builds a new generation from the old one's texts.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memagent.errors import BadRequest, EmbedderFault
from memagent.sessions.chunks import Chunking, cut
from memagent.sessions.embedding import Embedded, embed_passages
from memagent.sessions.lexical import words
from memagent.sessions.vectors import Generation, Kind, Passage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from memagent.llm import Embedder
    from memagent.sessions.vectors import VectorStore

RECIPE = "turns-1"
"""Part of every generation: another way of making rows is another generation."""
SESSION_PREFIX = "sessions/"
"""Before a session's id in a path, so that a citation of a turn is never taken for one of a file."""
PIECES = Chunking()
"""A turn longer than this is several rows of one number; they are cited as the one turn they are."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What one speaker said in one turn. `number` counts the turns of a session from 1; `at` knows its time zone."""

    session: str
    number: int
    speaker: str
    text: str
    at: datetime

    def __post_init__(self) -> None:
        if not self.session or self.number < 1 or self.at.tzinfo is None:
            raise ValueError("an utterance has a session, a number from 1 on and a date with a time zone")


@dataclass(frozen=True, slots=True)
class Indexed:
    """Turns that were written; `unembedded` rows are found by their words until `catch_up` succeeds."""

    turns: int = 0
    embedded: int = 0
    reused: int = 0
    unembedded: int = 0
    rebuilt: bool = False


class TurnIndex:
    """Turns of many owners in one store. A turn given twice is one row; a changed text replaces the old one."""

    def __init__(self, vectors: VectorStore, embedder: Embedder | None) -> None:
        self.vectors = vectors
        self.embedder = embedder
        self._lock = asyncio.Lock()

    async def live(self, owner: str) -> Generation | None:
        return await self.vectors.live(owner, Kind.TURNS)

    async def add(self, owner: str, utterances: Sequence[Utterance]) -> Indexed:
        """Index turns; blank ones say nothing and are left out.

        When the embedder is down the turns are written all the same and can be found by their words. Raises
        `StoreFault`; then nothing is promised and the same call can be made again.
        """
        passages = [passage for utterance in utterances for passage in _passages(utterance)]
        if not passages:
            return Indexed()
        while True:
            live = await self.live(owner) or await self._first(owner)
            done, missing = await self._embedded(live, passages)
            await self.vectors.add(live, done.passages)
            # A rebuild may have gone live meanwhile: its last look at the old generation can be before this write.
            if await self.live(owner) == live:
                turns = len({passage.first for passage in passages})
                return Indexed(turns, done.embedded, done.reused, missing)

    async def catch_up(self, owner: str) -> Indexed:
        """Give every turn a vector of the current embedder.

        Of another embedder's generation a new one is built beside it, which answers once it is whole; a run that died
        goes on where it stopped. Raises `EmbedderFault`, `StoreFault`; the old generation keeps answering.
        """
        async with self._lock:
            live = await self.live(owner)
            if live is None:
                return Indexed()
            if live == self._wanted(owner, live.serial):
                return await self._copy(live, live)
            target = self._wanted(owner, live.serial + 1)
            await self.vectors.begin(target)
            done = await self._copy(live, target)
            await self.vectors.make_live(target)
            # Turns that were written to the old generation while its last sessions were copied.
            rest = await self._copy(live, target)
            await self.vectors.sweep(owner, Kind.TURNS)
            return Indexed(
                done.turns + rest.turns,
                done.embedded + rest.embedded,
                done.reused + rest.reused,
                rebuilt=True,
            )

    async def forget(self, owner: str, session: str) -> None:
        """Remove the turns of one session."""
        if live := await self.live(owner):
            await self.vectors.replace(live, session_path(session), ())

    async def read(self, owner: str, path: str, *, first: int = 1, count: int | None = None) -> str:
        """`count` turns of a cited session from number `first` on, one per line; empty for an unknown one.

        Raises `BadRequest` for a path that cites no session.
        """
        if not path.startswith(SESSION_PREFIX) or first < 1 or (count is not None and count < 0):
            raise BadRequest(
                "give a session as memory_search cites it, a turn from 1 on and a count that is not negative"
            )
        live = await self.live(owner)
        rows = await self.vectors.rows(live, path) if live else ()
        last = None if count is None else first + count
        wanted = [row for row in rows if row.first >= first and (last is None or row.first < last)]
        return "\n".join(_told(row) for row in wanted)

    # -- generations ---------------------------------------------------------------------------------------------------

    def _wanted(self, owner: str, serial: int) -> Generation:
        if self.embedder is None:
            return Generation(owner, Kind.TURNS, serial, recipe=RECIPE)
        return Generation(owner, Kind.TURNS, serial, self.embedder.id, self.embedder.dimensions, RECIPE)

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

    async def _copy(self, source: Generation, target: Generation) -> Indexed:
        """Write to `target` what it lacks of `source`, session by session; the same one to fill in vectors."""
        turns = embedded = reused = 0
        for path in sorted(await self.vectors.versions(source)):
            rows = {row.id: row for row in await self.vectors.rows(source, path)}
            there = await self.vectors.fetch(target, list(rows))
            lacking = [row for row in rows.values() if not self._complete(there.get(row.id), row, target)]
            if lacking:
                done = await embed_passages(self.vectors, self.embedder, lacking, sources=[target, source])
                await self.vectors.add(target, done.passages)
                turns += len(lacking)
                embedded += done.embedded
                reused += done.reused
        return Indexed(turns, embedded, reused)

    def _complete(self, there: Passage | None, row: Passage, target: Generation) -> bool:
        return (
            there is not None
            and there.digest == row.digest
            and (there.vector is not None or not target.dimensions)
        )


def session_path(session: str) -> str:
    """The path that a session's turns are cited with."""
    return f"{SESSION_PREFIX}{session}"


def _passages(utterance: Utterance) -> list[Passage]:
    return [
        Passage(
            path=session_path(utterance.session),
            first=utterance.number,
            last=utterance.number,
            piece=piece,
            text=chunk.text,
            digest=chunk.digest,
            terms=words(chunk.text),
            label=utterance.speaker,
            at=utterance.at,
        )
        for piece, chunk in enumerate(cut(utterance.text, PIECES))
    ]


def _told(row: Passage) -> str:
    when = f"{row.at:%Y-%m-%d %H:%M} " if row.at else ""
    return f"{when}{row.label}: {row.text}"
