"""The index of what was literally said: every turn with its session, date and speaker, per owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memagent.errors import BadRequest
from memagent.sessions.chunks import Chunking, cut
from memagent.sessions.ledger import Ledger, Written
from memagent.sessions.lexical import words
from memagent.sessions.vectors import Kind, Passage, passage_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from memagent.llm import Embedder
    from memagent.sessions.vectors import VectorStore

RECIPE = "turns-1"
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


class TurnIndex(Ledger):
    """Turns of many owners in one store. A turn given twice is one turn; a changed text replaces the old one."""

    def __init__(self, vectors: VectorStore, embedder: Embedder | None) -> None:
        super().__init__(vectors, embedder, kind=Kind.TURNS, recipe=RECIPE)

    async def say(self, owner: str, utterances: Sequence[Utterance]) -> Written:
        """Index turns; blank ones say nothing and are left out. As `add`."""
        return await self.add(owner, [passage for each in utterances for passage in _passages(each)])

    async def forget(self, owner: str, session: str) -> None:
        """Remove the turns of one session."""
        await self.remove(owner, session_path(session))

    async def read(self, owner: str, path: str, *, first: int = 1, count: int | None = None) -> str:
        """`count` turns of a cited session from number `first` on, one per line; empty for an unknown one.

        Raises `BadRequest` for a path that cites no session.
        """
        if not path.startswith(SESSION_PREFIX) or first < 1 or (count is not None and count < 0):
            raise BadRequest("give a session as memory_search cites it, and turns from 1 on")
        last = None if count is None else first + count
        rows = await self.rows(owner, path)
        wanted = [row for row in rows if row.first >= first and (last is None or row.first < last)]
        return "\n".join(_told(row) for row in wanted)

    async def texts(self, owner: str, places: Collection[tuple[str, int]]) -> Mapping[tuple[str, int], str]:
        """What was said at these session paths and numbers, of an overlong turn its beginning; unknown ones are left out."""
        live = await self.live(owner)
        if live is None or not places:
            return {}
        found = await self.vectors.fetch(live, [passage_id(path, number, number) for path, number in places])
        return {(row.path, row.first): row.text for row in found.values()}


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
