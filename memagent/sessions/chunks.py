"""Cutting a note into passages of whole lines that overlap (O67). Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memagent.sessions.files import split_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

CHARS_PER_TOKEN = 4
"""The rule of thumb the sizes are given in (O67): 400 tokens are 1,600 characters."""
MIN_CHUNK_CHARS = 32


@dataclass(frozen=True, slots=True)
class Chunking:
    """How large passages are, in tokens of four characters. The overlap is clamped to `tokens - 1`."""

    tokens: int = 400
    overlap: int = 80

    def __post_init__(self) -> None:
        if self.tokens < 1 or self.overlap < 0:
            raise ValueError("a chunk has at least one token and no negative overlap")

    @property
    def max_chars(self) -> int:
        return max(MIN_CHUNK_CHARS, self.tokens * CHARS_PER_TOKEN)

    @property
    def overlap_chars(self) -> int:
        return min(self.overlap, self.tokens - 1) * CHARS_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Chunk:
    """`text` is lines `first` to `last`, 1-based and both included; `piece` numbers the pieces of one overlong line from 0."""

    first: int
    last: int
    text: str
    piece: int = 0

    @property
    def digest(self) -> str:
        return digest(self.text)


def digest(text: str) -> str:
    """The sha256 of a text: equal texts are embedded once (O68)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def cut(text: str, chunking: Chunking) -> tuple[Chunk, ...]:
    """Chunks in order, none blank, none longer than `max_chars`; every line that is not blank is in at least one.

    The next chunk repeats whole trailing lines until they make up the overlap, fewer when they would not fit beside the
    line that comes next.
    """
    chunks: list[Chunk] = []
    held: list[Chunk] = []
    size = 0
    for piece in _pieces(text, chunking.max_chars):
        needed = len(piece.text) + 1
        if held and size + needed > chunking.max_chars:
            chunks.append(_joined(held))
            held, size = _overlap(held, chunking, needed)
        held.append(piece)
        size += needed
    if held:
        chunks.append(_joined(held))
    return tuple(chunk for chunk in chunks if chunk.text.strip())


def _pieces(text: str, max_chars: int) -> Iterator[Chunk]:
    """Lines, an overlong one in pieces that fill a chunk each."""
    for number, line in enumerate(split_lines(text), start=1):
        for index, start in enumerate(range(0, max(len(line), 1), max_chars)):
            yield Chunk(number, number, line[start : start + max_chars], index)


def _overlap(held: list[Chunk], chunking: Chunking, needed: int) -> tuple[list[Chunk], int]:
    kept: list[Chunk] = []
    size = 0
    for line in reversed(held):
        if size >= chunking.overlap_chars or size + len(line.text) + 1 + needed > chunking.max_chars:
            break
        kept.append(line)
        size += len(line.text) + 1
    return kept[::-1], size


def _joined(held: list[Chunk]) -> Chunk:
    return Chunk(held[0].first, held[-1].last, "\n".join(line.text for line in held), held[0].piece)
