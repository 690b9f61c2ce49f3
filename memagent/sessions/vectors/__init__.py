"""Port to the passage stores: rows of text with their words and vectors, one owner's generation at a time.

A *generation* is one complete index of one owner's notes, turns or facts, made by one embedder with one way of cutting.
Exactly one per owner and kind is live and answers; another can be built beside it and made live in one step, so a build
that dies half-way changes nothing. Every query names a generation and therefore an owner: rows of anybody else are
never candidates (O85).

A store finds and counts; it never ranks by words. Both stores hand back the same rows and the same counts, and
`sessions.lexical` scores them, so a search gives the same ranking on either. `StoreUnavailable` is raised on an outage.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from memagent.llm import Vector


class Kind(StrEnum):
    NOTES = "notes"
    """Chunks of memory files."""
    TURNS = "turns"
    """What was literally said, one row per turn of a transcript."""
    FACTS = "facts"
    """Single remembered sentences (O84)."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One searchable row.

    `path` is the file, the session or the fact's id; `first` and `last` are lines of the file, or the number of the
    turn, and `piece` tells rows of one overlong line apart. `terms` are the folded words as often as they stand there.
    `version` is the digest of the whole file, so that a file whose rows carry another one is known to have changed.
    `label` is who said it, or the category of a fact. `vector` is None in a lexical-only generation, and in rows that
    are handed back by anything but `fetch`.
    """

    path: str
    first: int
    last: int
    text: str
    digest: str
    piece: int = 0
    terms: tuple[str, ...] = ()
    version: str = ""
    label: str = ""
    at: datetime | None = None
    vector: Vector | None = None

    @property
    def id(self) -> str:
        """The same for the same place: a row is replaced, never doubled."""
        return passage_id(self.path, self.first, self.last, self.piece)


def passage_id(path: str, first: int, last: int, piece: int = 0) -> str:
    place = json.dumps([path, first, last, piece])
    return hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Generation:
    """`serial` grows with every rebuild. `embedder` is empty and `dimensions` 0 without vectors.

    `recipe` is everything else the rows depend on: two generations with the same embedder and recipe hold the same rows.
    """

    owner: str
    kind: Kind
    serial: int
    embedder: str = ""
    dimensions: int = 0
    recipe: str = ""

    def __post_init__(self) -> None:
        if not self.owner:
            raise ValueError("a generation needs an owner")

    @property
    def id(self) -> str:
        """Of letters, digits and `-` only, and the same on every run: a build that died goes on where it stopped."""
        parts = json.dumps([self.owner, self.embedder, self.dimensions, self.recipe])
        return f"{self.kind}-{self.serial}-{hashlib.sha256(parts.encode()).hexdigest()[:16]}"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Generation:
        fields = json.loads(text)
        return cls(**{**fields, "kind": Kind(fields["kind"])})


@dataclass(frozen=True, slots=True)
class Frequencies:
    """How many rows a generation has, how many terms they have together, and in how many rows each asked term stands."""

    rows: int
    terms: int
    by_term: Mapping[str, int]


class VectorStore(Protocol):
    """Passages of many owners. `owner` and `generation` are never optional and have no default."""

    async def live(self, owner: str, kind: Kind) -> Generation | None:
        """The generation that answers, or None before the first."""
        ...

    async def begin(self, generation: Generation) -> None:
        """Make room for a generation beside the live one; beginning it again keeps the rows it already has."""
        ...

    async def make_live(self, generation: Generation) -> bool:
        """Let it answer from now on, in one step; false when one with the same or a higher serial does already."""
        ...

    async def sweep(self, owner: str, kind: Kind) -> int:
        """Remove the rows of what came before the live generation, and of what lost to it; how many there were.

        A generation that is being built to follow it, with a higher serial, stays.
        """
        ...

    async def replace(self, generation: Generation, path: str, passages: Sequence[Passage]) -> None:
        """Make `passages` the only rows of `path`, in one atomic step; none removes the path."""
        ...

    async def add(self, generation: Generation, passages: Sequence[Passage]) -> None:
        """Write rows beside those that are there; a row with the same id is overwritten."""
        ...

    async def versions(self, generation: Generation) -> Mapping[str, frozenset[str]]:
        """Every path that has rows, with the versions they carry."""
        ...

    async def vectors(self, generation: Generation, digests: Collection[str]) -> Mapping[str, Vector]:
        """The vectors of these texts, of those that are there (O68)."""
        ...

    async def nearest(
        self, generation: Generation, vector: Vector, limit: int
    ) -> Sequence[tuple[str, float]]:
        """Ids and cosines of the nearest rows, nearest first, exactly."""
        ...

    async def frequencies(self, generation: Generation, terms: Sequence[str]) -> Frequencies: ...

    async def containing(
        self, generation: Generation, terms: Sequence[str], limit: int
    ) -> Mapping[str, tuple[str, ...]]:
        """Ids and words of rows with at least one of the terms, at most `limit`, in no order."""
        ...

    async def fetch(self, generation: Generation, ids: Sequence[str]) -> Mapping[str, Passage]:
        """Rows by id, with vectors; those that are not there are left out."""
        ...

    async def rows(self, generation: Generation, path: str) -> Sequence[Passage]:
        """All rows of one path, in order of place, without vectors."""
        ...

    async def erase(self, owner: str) -> int:
        """Remove everything of an owner, of every kind and generation; how many rows there were."""
        ...

    async def close(self) -> None: ...
