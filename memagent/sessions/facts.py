"""Single remembered sentences beside the notes: stored once, recalled by meaning, forgotten on request (O84, O85)."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from memagent.errors import BadRequest, NotFound
from memagent.lexicon import fingerprint
from memagent.sessions.candidates import Question, ask, find
from memagent.sessions.chunks import digest
from memagent.sessions.ledger import Ledger
from memagent.sessions.lexical import query_terms, words
from memagent.sessions.search import SOURCE_FACTS, Answer, SearchPolicy, rank
from memagent.sessions.vectors import Kind, Passage

if TYPE_CHECKING:
    from datetime import datetime

    from memagent.llm import Embedder
    from memagent.sessions.candidates import Candidate
    from memagent.sessions.vectors import VectorStore

RECIPE = "facts-1"
DUPLICATE_COSINE = 0.95
FORGET_CANDIDATES_COSINE = 0.7
FORGET_COSINE = 0.9
"""More than this, and alone: then a description is enough to forget a fact."""
MAX_FACT_CHARS = 500
_SPACE = uuid.UUID("6f0c5a52-6a5e-4f0b-9c0e-5d6b5c1f3a77")
_LOOKED_AT = 20


class Category(StrEnum):
    PREFERENCE = "preference"
    DECISION = "decision"
    ENTITY = "entity"
    FACT = "fact"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Fact:
    """One sentence; `id` is a UUID made of its words, so the same sentence is the same fact."""

    id: str
    text: str
    category: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """`fact` is what was stored, or the one that says nearly the same and stays as it is."""

    fact: Fact
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Forgotten:
    """`fact` is what was forgotten. Without one, `candidates` are what could have been meant: forget one by its id."""

    fact: Fact | None = None
    candidates: tuple[Fact, ...] = ()


class Facts(Ledger):
    """Facts of many owners in one store."""

    def __init__(self, vectors: VectorStore, embedder: Embedder | None) -> None:
        super().__init__(vectors, embedder, kind=Kind.FACTS, recipe=RECIPE)
        self._storing = asyncio.Lock()

    async def store(
        self, owner: str, text: str, *, now: datetime, category: Category = Category.OTHER
    ) -> Stored:
        """Remember a sentence unless one that nearly says it is there. Raises `BadRequest`, `EmbedderFault`."""
        said = " ".join(text.split())
        if not said or len(said) > MAX_FACT_CHARS:
            raise BadRequest(f"a fact has 1 to {MAX_FACT_CHARS} characters")
        async with self._storing:
            if known := await self._duplicate(owner, said):
                return Stored(known, duplicate=True)
            row = Passage(_name(said), 1, 1, said, digest(said), terms=words(said), label=category, at=now)
            await self.add(owner, [row])
            return Stored(_fact(row))

    async def forget(self, owner: str, id: str) -> Fact:  # noqa: A002  the name of the field
        """Forget one fact. Raises `BadRequest` for what is no UUID, `NotFound` for another's or nobody's."""
        try:
            name = str(uuid.UUID(id))
        except ValueError:
            raise BadRequest("a fact is forgotten by its id, a UUID, or by a description of it") from None
        rows = await self.rows(owner, name)
        if not rows:
            raise NotFound("there is no fact with this id")
        await self.remove(owner, name)
        return _fact(rows[0])

    async def forget_like(self, owner: str, text: str) -> Forgotten:
        """Forget the one fact that `text` describes beyond doubt; else nothing, and say which could be meant."""
        near = [
            (_nearness(each), each.passage)
            for each in await self._candidates(owner, text)
            if _nearness(each) >= FORGET_CANDIDATES_COSINE
        ]
        near.sort(key=lambda pair: (-pair[0], pair[1].path))
        if len(near) == 1 and near[0][0] > FORGET_COSINE:
            return Forgotten(await self.forget(owner, near[0][1].path))
        return Forgotten(None, tuple(_fact(row) for _, row in near))

    async def search(
        self,
        owner: str,
        text: str,
        *,
        now: datetime,
        policy: SearchPolicy | None = None,
        question: Question | None = None,
    ) -> Answer:
        """The facts that answer `text`, ranked as notes are."""
        live = await self.live(owner)
        if live is None or not text.strip():
            return Answer()
        policy = policy or SearchPolicy()
        question = question or await ask(text, self.embedder)
        found = await find(self.vectors, live, question, limit=policy.candidates)
        return rank(live, question, found.candidates, now=now, policy=policy, source=SOURCE_FACTS)

    async def _duplicate(self, owner: str, text: str) -> Fact | None:
        if rows := await self.rows(owner, _name(text)):
            return _fact(rows[0])
        near = [
            each for each in await self._candidates(owner, text) if (each.cosine or 0.0) >= DUPLICATE_COSINE
        ]
        nearest = max(near, key=lambda each: each.cosine or 0.0, default=None)
        return _fact(nearest.passage) if nearest else None

    async def _candidates(self, owner: str, text: str) -> tuple[Candidate, ...]:
        live = await self.live(owner)
        if live is None:
            return ()
        question = Question(text, query_terms(text))
        if self.embedder is not None:
            # As a passage: the stored ones are, and an asymmetric model puts a question elsewhere.
            vector = (await self.embedder.passages([text]))[0]
            question = replace(question, embedder=self.embedder.id, vector=vector, floor=self.embedder.floor)
        return (await find(self.vectors, live, question, limit=_LOOKED_AT)).candidates


def _name(text: str) -> str:
    return str(uuid.uuid5(_SPACE, fingerprint(text)))


def _nearness(candidate: Candidate) -> float:
    """The cosine; without vectors the same words are as near as can be, and only they."""
    return candidate.cosine if candidate.cosine is not None else float(candidate.exact)


def _fact(row: Passage) -> Fact:
    return Fact(row.path, row.text, row.label, row.at)
