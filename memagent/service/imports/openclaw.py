"""OpenClaw's `MEMORY.md`: Markdown that a model keeps for itself. A point of a list, or a paragraph, is one memory.

Headings say what it is about, so they go in front of the words; the title of the file says nothing. Code, tables, comments
and front matter are no memories.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memagent.service.imports.items import Found, Incoming, LeftOut, key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memagent.service.imports import Wanted

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n(?:---|\.\.\.)\n", re.DOTALL)
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_POINT = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_FENCE = re.compile(r"\s*(```|~~~)")
_RULE = re.compile(r"\s*([-*_])(?:\s*\1){2,}\s*$")
_STRONG = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")


def knows(data: Any) -> bool:
    return isinstance(data, str) and bool(data.strip())


@dataclass(slots=True)
class _Outline:
    """Where a reader stands in the file: the headings above, and the point or paragraph that is being read."""

    found: Found
    headings: dict[int, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    indent: int = 0

    @property
    def about(self) -> str:
        """The nearest heading; the title of the file is none."""
        deepest = max((level for level in self.headings if level > 1), default=0)
        return self.headings.get(deepest, "")

    def end(self) -> None:
        """The point or paragraph is over."""
        text = _STRONG.sub(r"\2", " ".join(self.words)).strip()
        self.words = []
        if not text:
            return
        about = self.about
        value = f"{about}: {text}" if about else text
        self.found.items.append(Incoming(key_of(text, under=about), value, named=False))

    def head(self, level: int, text: str) -> None:
        self.end()
        self.headings = {above: words for above, words in self.headings.items() if above < level}
        self.headings[level] = _STRONG.sub(r"\2", text).strip()

    def point(self, indent: int, text: str) -> None:
        """A point, or one further in, which belongs to the point above it."""
        if self.words and indent > self.indent:
            if not self.words[-1].endswith((":", ";")):
                self.words[-1] += ";"
            self.words.append(text)
            return
        self.end()
        self.indent = indent
        self.words = [text]


def read(data: Any, _: Wanted) -> Found:
    found = Found()
    outline = _Outline(found)
    skipped = 0
    for kind, line in _lines(_COMMENT.sub("", _FRONT_MATTER.sub("", str(data).replace("\r\n", "\n")))):
        heading, point = _HEADING.match(line), _POINT.match(line)
        if kind == "code":
            skipped += 1
        elif heading:
            outline.head(len(heading[1]), heading[2])
        elif not line.strip() or _RULE.match(line):
            outline.end()
        elif point:
            outline.point(len(point[1].expandtabs(4)), point[2].strip())
        else:
            outline.words.append(line.strip())
    outline.end()
    if skipped:
        found.left_out.append(LeftOut("", "not_a_memory", f"{skipped} lines of code or tables were left out"))
    return found


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Lines of text, and lines of code and tables, which say nothing about anybody."""
    fence = ""
    for line in text.splitlines():
        opening = _FENCE.match(line)
        if fence:
            fence = "" if opening and opening[1] == fence else fence
            yield "code", line
        elif opening:
            fence = opening[1]
            yield "code", line
        else:
            yield ("code" if line.lstrip().startswith("|") else "text"), line
