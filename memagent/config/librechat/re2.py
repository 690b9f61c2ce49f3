"""RE2: whether LibreChat's regular expression engine takes a pattern, and how many instructions it compiles to.

LibreChat checks patterns with a JavaScript port of RE2, whose grammar is that of Go's `regexp/syntax`. Reading that grammar
takes two pages; Python's binding to RE2 is a C++ library that counts other instructions, so it could not tell the size
that is limited here. The size is exact but for alternatives that share a beginning, which RE2 writes only once: there it
is an upper bound, and matters for patterns thousands of instructions long only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from memagent.config.librechat.scripts import CATEGORIES, SCRIPTS

MAX_REPEAT: Final = 1000
MAX_DEPTH: Final = 1000
MAX_SIZE: Final = 1_398_101
FRAME: Final = 2
"""Instructions around every pattern: one that fails, one that matches."""

REPEAT = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
FLAGS = re.compile(r"\(\?[imsU]*(?:-[imsU]+)?([:)])")
NAMED = re.compile(r"\(\?P?<([A-Za-z0-9_]+)>")
ESCAPE = re.compile(
    r"\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2}|x\{(?P<long>[0-9A-Fa-f]+)\}|x(?P<short>[0-9A-Fa-f]{2})|(?P<letter>[afnrtv])|(?P<sign>[\x00-/:-@\[-`{-\x7f]))"
)
LETTERS: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
CLASS = re.compile(r"\\[dDsSwW]")
UNICODE = re.compile(r"\\[pP](?:\{\^?([^}]*)\}|([^{]))", re.DOTALL)
POSIX: Final = frozenset(
    [
        "alnum",
        "alpha",
        "ascii",
        "blank",
        "cntrl",
        "digit",
        "graph",
        "lower",
        "print",
        "punct",
        "space",
        "upper",
        "word",
        "xdigit",
    ]
)
MAX_RUNE: Final = 0x10FFFF


class Unsupported(Exception):
    """RE2 refuses the pattern."""


@dataclass(slots=True)
class Piece:
    """A part of a pattern. `reach` is the product of the counted repeats in it, which RE2 bounds."""

    size: int
    nullable: bool = False
    reach: int = 0
    depth: int = 1
    single: bool = False
    """One character or class: alternatives of such become one class."""
    star: bool = False


@dataclass(slots=True)
class Group:
    """An open parenthesis, or the pattern itself."""

    captures: bool
    done: list[Piece] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def bar(self) -> None:
        self.done.append(_joined(self.pieces))
        self.pieces = []

    def close(self) -> Piece:
        self.bar()
        inner = _alternatives(self.done)
        if not self.captures:
            return inner
        return Piece((inner.size or 1) + 2, inner.nullable, inner.reach, inner.depth + 1)


@lru_cache(maxsize=512)
def program_size(pattern: str) -> int | None:
    """How many instructions `pattern` compiles to, or None where RE2 refuses it."""
    try:
        size = _Reader(pattern).read().size
    except Unsupported:
        return None
    return (size or 1) + FRAME if size <= MAX_SIZE else None


class _Reader:
    """One pass over a pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.pos = 0
        self.names: set[str] = set()
        self.groups = [Group(captures=False)]

    def read(self) -> Piece:
        repeated = False
        while self.pos < len(self.pattern):
            char = self.pattern[self.pos]
            if char in "*+?{" and self.repeat(again=repeated):
                repeated = True
                continue
            repeated = False
            if char == "(":
                self.open()
            elif char == ")":
                self.shut()
            elif char == "|":
                self.groups[-1].bar()
                self.pos += 1
            elif char == "[":
                self.bracket()
            elif char == "\\":
                self.backslash()
            else:
                self.add(Piece(1, nullable=char in "^$", single=char not in "^$"))
                self.pos += 1
        if len(self.groups) > 1:
            raise Unsupported
        return self.groups[0].close()

    def add(self, piece: Piece) -> None:
        self.groups[-1].pieces.append(piece)

    def repeat(self, *, again: bool) -> bool:
        """Repeat the last piece; False where a brace is only a brace."""
        char = self.pattern[self.pos]
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(char, (0, 0))
        end = self.pos + 1
        if char == "{":
            match = REPEAT.match(self.pattern, self.pos)
            if match is None:
                return False
            least = int(match[1])
            most = (int(match[3]) if match[3] else None) if match[2] else least
            end = match.end()
            if least > MAX_REPEAT or (most is not None and not least <= most <= MAX_REPEAT):
                raise Unsupported
        if self.pattern[end : end + 1] == "?":
            end += 1
        pieces = self.groups[-1].pieces
        if again or not pieces:
            raise Unsupported
        pieces[-1] = _repeated(pieces[-1], least, most, counted=char == "{")
        self.pos = end
        return True

    def open(self) -> None:
        if len(self.groups) > MAX_DEPTH:
            raise Unsupported
        if not self.pattern.startswith("(?", self.pos):
            self.groups.append(Group(captures=True))
            self.pos += 1
            return
        named = NAMED.match(self.pattern, self.pos)
        if named is not None:
            if named[1] in self.names:
                raise Unsupported
            self.names.add(named[1])
            self.groups.append(Group(captures=True))
            self.pos = named.end()
            return
        flags = FLAGS.match(self.pattern, self.pos)
        if flags is None:
            raise Unsupported
        if flags[1] == ":":
            self.groups.append(Group(captures=False))
        self.pos = flags.end()

    def shut(self) -> None:
        group = self.groups.pop()
        if not self.groups:
            raise Unsupported
        self.add(group.close())
        self.pos += 1

    def backslash(self) -> None:
        pair = self.pattern[self.pos : self.pos + 2]
        if pair in ("\\A", "\\b", "\\B", "\\z"):
            self.add(Piece(1, nullable=True))
            self.pos += 2
        elif pair == "\\Q":
            end = self.pattern.find("\\E", self.pos + 2)
            text = self.pattern[self.pos + 2 : end if end >= 0 else None]
            for _ in text:
                self.add(Piece(1, single=True))
            self.pos = len(self.pattern) if end < 0 else end + 2
        elif not self.char_class():
            self.escape()
            self.add(Piece(1, single=True))
        else:
            self.add(Piece(1, single=True))

    def char_class(self) -> bool:
        r"""Go over `\d`, `\\pL` and the like; False where none stands."""
        found = CLASS.match(self.pattern, self.pos)
        if found is None and self.pattern.startswith(("\\p", "\\P"), self.pos):
            found = UNICODE.match(self.pattern, self.pos)
            name = None if found is None else (found[1] if found[1] is not None else found[2])
            if name not in CATEGORIES and name not in SCRIPTS:
                raise Unsupported
        if found is None:
            return False
        self.pos = found.end()
        return True

    def escape(self) -> int:
        """The character that an escape means, which the cursor goes over."""
        match = ESCAPE.match(self.pattern, self.pos)
        if match is None:
            raise Unsupported
        self.pos = match.end()
        kind = match.lastgroup
        if kind is None:
            return int(match[0][1:], 8)
        if kind == "letter":
            return LETTERS[match["letter"]]
        if kind == "sign":
            return ord(match["sign"])
        rune = int(match[kind], 16)
        if rune > MAX_RUNE:
            raise Unsupported
        return rune

    def bracket(self) -> None:
        """Go over a `[…]` class."""
        pattern = self.pattern
        self.pos += 2 if pattern.startswith("[^", self.pos) else 1
        first = True
        while first or pattern[self.pos : self.pos + 1] != "]":
            first = False
            if pattern.startswith("[:", self.pos) and (end := pattern.find(":]", self.pos)) >= 0:
                if pattern[self.pos + 2 : end].removeprefix("^") not in POSIX:
                    raise Unsupported
                self.pos = end + 2
            elif not self.char_class():
                low = self.class_char()
                if pattern[self.pos : self.pos + 1] == "-" and pattern[self.pos + 1 : self.pos + 2] != "]":
                    self.pos += 1
                    if self.class_char() < low:
                        raise Unsupported
        self.pos += 1
        self.add(Piece(1, single=True))

    def class_char(self) -> int:
        char = self.pattern[self.pos : self.pos + 1]
        if not char:
            raise Unsupported
        if char == "\\":
            return self.escape()
        self.pos += 1
        return ord(char)


def _joined(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    return Piece(
        size=sum(piece.size for piece in pieces),
        nullable=all(piece.nullable for piece in pieces),
        reach=max((piece.reach for piece in pieces), default=0),
        depth=1 + max((piece.depth for piece in pieces), default=0),
    )


def _alternatives(options: list[Piece]) -> Piece:
    # RE2 keeps one of several empty alternatives in a row, and makes one class of characters in a row.
    kept = options[:1]
    for option in options[1:]:
        if option.size or kept[-1].size:
            if option.single and kept[-1].single:
                continue
            kept.append(option)
    if len(kept) == 1:
        return kept[0]
    return Piece(
        size=sum(option.size or 1 for option in kept) + len(kept) - 1,
        nullable=any(option.nullable for option in kept),
        reach=max(option.reach for option in kept),
        depth=1 + max(option.depth for option in kept),
    )


def _repeated(piece: Piece, least: int, most: int | None, *, counted: bool) -> Piece:
    """`piece` from `least` to `most` times, written out as RE2 does it."""
    depth = piece.depth + 1
    if depth > MAX_DEPTH:
        raise Unsupported
    reach = piece.reach
    if counted:
        bound = most if most is not None else least
        reach = 0 if most == 0 else max(bound, bound * reach) if bound else reach
        if reach > MAX_REPEAT and (least >= 2 or bound >= 2):  # noqa: PLR2004 - RE2 looks from two repeats on
            raise Unsupported
    nullable = piece.nullable or least == 0
    if piece.size == 0 or most == 0:
        return Piece(0, nullable=True, reach=reach, depth=depth)
    if most is None:
        last = 0 if piece.star and least == 0 else 1 + (piece.nullable and least == 0)
        return Piece(piece.size * max(1, least) + last, nullable, reach, depth, star=least == 0)
    optional = (most - least) * (piece.size + 1)
    return Piece(
        piece.size * least + optional, nullable, reach, depth, single=piece.single and least == most == 1
    )
