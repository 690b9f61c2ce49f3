"""A place in a YAML text and the white space around it: lines, indentation, tabs, comments, document markers."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

END: Final = "\0"
"""Stands behind the text, so that looking one character ahead never needs a check."""
BREAK: Final = frozenset("\r\n")
SPACE: Final = frozenset(" \t\r\n")
FLOW: Final = frozenset(",[]{}")

SEPARATION = re.compile(r"[ \t]*+(?:(?:#[^\r\n]*+)?[\r\n][ \t]*+)*+")
BLANK_LINES = re.compile(r"[ \t]*+(?:[\r\n][ \t]*+)*+")
# Outside quotes js-yaml wants printable text, inside them only what JSON allows; comments may hold anything.
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff\ud800-\udfff]")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


class Unreadable(Exception):
    """The text is not what js-yaml reads. `kind` is one of the kinds that `memagent.config.syntax` explains.

    `start` and `end` are the smallest stretch to blame; `first` a second one that explains it.
    """

    def __init__(
        self,
        kind: str,
        start: int,
        end: int | None = None,
        *,
        name: str = "",
        first: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(kind)
        self.kind = kind
        self.start = start
        self.end = start + 1 if end is None else end
        self.name = name
        self.first = first


class Mark(NamedTuple):
    """Where a cursor stood, to go back to."""

    pos: int
    line_start: int
    line_indent: int
    first_tab: int


class Cursor:
    """Walks over `text`, which ends in a line break; `self.text` has `END` behind it.

    `line_start` names the line, `line_indent` counts the spaces it starts with, `first_tab` is the offset of a tab seen
    in the white space of this line, or -1: after one, js-yaml starts no block collection.
    """

    __slots__ = (
        "controls",
        "first_tab",
        "line_indent",
        "line_start",
        "pos",
        "returns",
        "tabs",
        "text",
        "unprintable",
    )

    def __init__(self, text: str) -> None:
        self.text = text + END
        self.pos = 0
        self.line_start = 0
        self.line_indent = 0
        self.first_tab = -1
        self.tabs = "\t" in text
        self.returns = "\r" in text
        self.unprintable = UNPRINTABLE.search(text) is not None
        self.controls = self.unprintable and CONTROL.search(text) is not None

    def mark(self) -> Mark:
        return Mark(self.pos, self.line_start, self.line_indent, self.first_tab)

    def restore(self, mark: Mark) -> None:
        self.pos, self.line_start, self.line_indent, self.first_tab = mark

    def skip(self) -> bool:
        """Go over white space, comments and line breaks; True when a line break was among them."""
        text, pos = self.text, self.pos
        if text[pos] not in " \t\r\n#":
            return False
        match = SEPARATION.match(text, pos)
        end = match.end() if match else pos
        return self.moved_to(end) if end != pos else False

    def skip_blank_lines(self) -> int:
        """Go over white space and line breaks, not over comments; how many line breaks."""
        pos = self.pos
        match = BLANK_LINES.match(self.text, pos)
        end = match.end() if match else pos
        self.moved_to(end)
        count = self.text.count("\n", pos, end)
        if self.returns:
            count += self.text.count("\r", pos, end) - self.text.count("\r\n", pos, end)
        return count

    def moved_to(self, end: int) -> bool:
        """Stand at `end`, white space away from here; True when that is on another line."""
        text, pos = self.text, self.pos
        self.pos = end
        last = text.rfind("\n", pos, end)
        if self.returns:
            last = max(last, text.rfind("\r", pos, end))
        if last < 0:
            if self.tabs and self.first_tab < 0:
                self.first_tab = text.find("\t", pos, end)
            return False
        self.line_start = last + 1
        self.first_tab = text.find("\t", last + 1, end) if self.tabs else -1
        self.line_indent = (end if self.first_tab < 0 else self.first_tab) - last - 1
        return True

    def at_separator(self) -> bool:
        """Whether `---` or `...` stands here, on its own. Only asked at the start of a line."""
        text, pos = self.text, self.pos
        return text[pos : pos + 3] in ("---", "...") and text[pos + 3] in " \t\r\n\0"

    def line_end(self, pos: int) -> int:
        """The offset of the line break that ends the line of `pos`."""
        text = self.text
        end = text.find("\n", pos)
        if self.returns:
            early = text.find("\r", pos, end if end >= 0 else len(text))
            end = early if early >= 0 else end
        return end if end >= 0 else len(text) - 1

    def line_break(self) -> None:
        """Go over one line break.

        Raises:
            Unreadable: something else stands here.

        """
        char = self.text[self.pos]
        if char not in "\r\n":
            raise Unreadable("line-break-expected", self.pos)
        self.pos += 2 if char == "\r" and self.text[self.pos + 1] == "\n" else 1
        self.line_start = self.pos
        self.first_tab = -1
