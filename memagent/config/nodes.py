"""The tree of a YAML document: values as JavaScript sees them, and where each one stands in the text.

Nodes keep offsets; lines and columns are worked out when somebody asks, which is almost never for almost every node.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memagent.config.findings import Position, Span

if TYPE_CHECKING:
    from memagent.config.scalars import Value

LINE_BREAK = re.compile(r"\r\n?|\n")


@dataclass(slots=True, eq=False)
class Source:
    """A text that can say at which line and column an offset lies. Lines end as in YAML 1.2: LF, CR LF or CR."""

    text: str = field(repr=False)
    _starts: list[int] = field(default_factory=list, repr=False)

    def position(self, offset: int) -> Position:
        if not self._starts:
            self._starts = [0, *(match.end() for match in LINE_BREAK.finditer(self.text))]
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1, offset)

    def span(self, start: int, end: int) -> Span:
        return Span(self.position(start), self.position(end))


@dataclass(slots=True, eq=False)
class Node:
    """One YAML node, from offset `start` up to and without `end`; for an alias, where the alias stands."""

    source: Source = field(repr=False)
    start: int
    end: int

    @property
    def span(self) -> Span:
        return self.source.span(self.start, self.end)


@dataclass(slots=True, eq=False)
class Scalar(Node):
    """`value` is what js-yaml makes of it; `plain` says that it is written without quotes or block style."""

    value: Value = field(repr=False)
    plain: bool

    @property
    def raw(self) -> str:
        """The text as written."""
        return self.source.text[self.start : self.end]


@dataclass(slots=True, eq=False)
class Sequence(Node):
    items: list[Node]
    flow: bool


@dataclass(slots=True, eq=False)
class Entry:
    """One pair of a mapping. `key` is the property name as JavaScript has it (`1:` is "1", `null:` is "null")."""

    key: str
    key_start: int
    key_end: int
    value: Node
    merged: bool = False
    """Came in through a merge key (`<<`): the key stands in the mapping that was merged."""

    @property
    def key_span(self) -> Span:
        return self.value.source.span(self.key_start, self.key_end)


@dataclass(slots=True, eq=False)
class Mapping(Node):
    """`entries` in document order, merge keys (`<<`) already expanded the way js-yaml does, explicit keys winning."""

    entries: dict[str, Entry]
    flow: bool
