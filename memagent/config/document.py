"""YAML bytes to a tree of nodes with positions, read as js-yaml 4.3 reads them (spec/librechat.md §2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memagent.config.findings import Finding, Span

MAX_BYTES = 5 * 2**20
"""A configuration larger than this is a mistake or an attack; the largest real one seen is 0.2 MiB."""


@dataclass(slots=True)
class Node:
    """One YAML node. `span` is where its text stands; for an alias, where the alias stands."""

    span: Span


@dataclass(slots=True)
class Scalar(Node):
    """`value` is what js-yaml makes of it: None, bool, int or float, str, a Date, bytes. `raw` is the text as written."""

    value: Any
    raw: str
    plain: bool
    """Written without quotes or block style."""


@dataclass(slots=True)
class Sequence(Node):
    items: list[Node]
    flow: bool


@dataclass(slots=True)
class Entry:
    """One pair of a mapping. `key` is the property name as JavaScript has it (`1:` is "1", `null:` is "null")."""

    key: str
    key_span: Span
    value: Node


@dataclass(slots=True)
class Mapping(Node):
    """`entries` in document order, merge keys (`<<`) already expanded the way js-yaml does, explicit keys winning."""

    entries: dict[str, Entry]
    flow: bool


@dataclass(slots=True)
class Document:
    """A file that was read. `root` is None when it could not be: then `findings` holds exactly one finding that says why."""

    file: str
    text: str
    root: Node | None
    findings: tuple[Finding, ...] = ()

    def node_at(self, path: tuple[str | int, ...]) -> Node | None:
        """The node at a document path, or None."""
        raise NotImplementedError

    def span_at(self, path: tuple[str | int, ...]) -> Span | None:
        """The smallest stretch that shows the thing at `path`: its key, or the scalar; of its nearest parent if absent."""
        raise NotImplementedError


def parse(data: bytes, file: str) -> Document:
    """Read bytes; never raises, whatever they are."""
    raise NotImplementedError
