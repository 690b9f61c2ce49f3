"""The findings of one document while they are collected, and how a document is quoted in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from memagent.config.findings import Finding, Level, LibreChat
from memagent.config.nodes import Mapping, Scalar, Sequence
from memagent.config.rules import RULES
from memagent.config.secrecy import hide, hide_named, is_secret, secrets

if TYPE_CHECKING:
    from memagent.config.document import Document
    from memagent.config.findings import Fix, Label, Span
    from memagent.config.nodes import Entry, Node

Path: TypeAlias = tuple[str | int, ...]

MAX_QUOTE_CHARS = 40
"""More of a found value than this hides the message around it."""


@dataclass(slots=True)
class Draft:
    document: Document
    findings: list[Finding] = field(default_factory=list)
    blamed: set[Path] = field(default_factory=set)
    """Paths that a finding is about: what depends on them is not judged a second time."""
    renamed: set[Path] = field(default_factory=set)
    """Paths that repairs move a key to: no second key may go there."""
    _secrets: tuple[str, ...] | None = None

    def add(
        self,
        code: str,
        path: Path,
        message: str,
        *,
        librechat: LibreChat,
        level: Level | None = None,
        span: Span | None = None,
        labels: tuple[Label, ...] = (),
        helps: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        fix: Fix | None = None,
    ) -> None:
        """Add a finding at `path`, or at `span` where the path's own is too wide; nothing in it shows a secret."""
        finding = Finding(
            file=self.document.file,
            code=code,
            level=level or RULES[code].level,
            message=self._safe(message),
            librechat=librechat,
            path=path,
            span=span or self.document.span_at(path),
            labels=labels,
            helps=tuple(self._safe(text) for text in helps),
            notes=tuple(self._safe(text) for text in notes),
            fix=fix,
        )
        self.blamed.add(path)
        self.findings.append(finding)

    def is_blamed(self, *paths: Path) -> bool:
        return any(path in self.blamed for path in paths)

    def node(self, path: Path) -> Node | None:
        return self.document.node_at(path)

    def mapping(self, path: Path) -> Mapping | None:
        node = self.node(path)
        return node if isinstance(node, Mapping) else None

    def items(self, path: Path) -> list[Node]:
        node = self.node(path)
        return node.items if isinstance(node, Sequence) else []

    def entry(self, path: Path) -> Entry | None:
        parent = self.mapping(path[:-1])
        return parent.entries.get(str(path[-1])) if parent else None

    def text(self, path: Path) -> str | None:
        """The text at `path`; None where there is none, or something else."""
        node = self.node(path)
        return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None

    def number(self, path: Path) -> float | None:
        node = self.node(path)
        value = node.value if isinstance(node, Scalar) else None
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def flag(self, path: Path) -> bool | None:
        node = self.node(path)
        return node.value if isinstance(node, Scalar) and isinstance(node.value, bool) else None

    def key_span(self, path: Path) -> Span | None:
        """Where the key itself stands, for a fault that is the key's."""
        entry = self.entry(path) if path and isinstance(path[-1], str) else None
        return entry.key_span if entry else None

    def value_span(self, path: Path) -> Span | None:
        """Where the value stands if it is of one line; its key otherwise."""
        node = self.node(path)
        if node is None or node.start == node.end:
            return None
        span = node.span
        return span if span.start.line == span.end.line else self.document.span_at(path)

    def found(self, path: Path) -> str:
        """What stands at `path`, in words, the value as written unless it must not be shown."""
        node = self.node(path)
        if isinstance(node, Mapping):
            return "a mapping"
        if isinstance(node, Sequence):
            return "a list"
        if not isinstance(node, Scalar) or node.value is None:
            return "nothing"
        if is_secret(path):
            return f"{_kind(node).replace('the ', 'a ')} that is not shown"
        return f"{_kind(node)} `{self.quote(node.raw)}`"

    def quote(self, text: str) -> str:
        """A stretch of the file for a message: its secrets hidden first, then cut to one short line."""
        first, _, rest = hide_named(self._safe(text)).partition("\n")
        return (
            first
            if not rest and len(first) <= MAX_QUOTE_CHARS
            else first[: MAX_QUOTE_CHARS - 1].rstrip() + "…"
        )

    def _safe(self, text: str) -> str:
        if self._secrets is None:
            self._secrets = secrets(self.document)
        return hide(text, self._secrets)


def strictness(path: Path) -> Level:
    """How bad an ignored setting is: in the parts that memagent is for, as bad as a rejected one."""
    return Level.ERROR if path[:1] == ("memory",) or path[:2] == ("endpoints", "custom") else Level.WARNING


def dotted(path: Path) -> str:
    """`endpoints.custom[0].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def inside(path: Path) -> str:
    """Where a key stands: ``in `memory` ``, or at the top level."""
    return f"in `{dotted(path)}`" if path else "at the top level"


def _kind(node: Scalar) -> str:
    if isinstance(node.value, bool):
        return "the word"
    if isinstance(node.value, (int, float)):
        return "the number"
    if isinstance(node.value, str):
        return "the text"
    return "binary data" if isinstance(node.value, bytes) else "the date"
