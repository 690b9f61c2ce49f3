"""Findings: what is wrong with a file, as data. They have a total order and no other behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class LibreChat(StrEnum):
    """What LibreChat itself does with the thing found."""

    REJECTS = "rejects"
    IGNORES = "ignores"
    ACCEPTS = "accepts"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text: 1-based line and column, in code points; `offset` is 0-based, in code points."""

    line: int
    column: int
    offset: int


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """From `start` up to and without `end`."""

    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class Label:
    """A second place that explains a finding: `first set here`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A certain repair: put `replacement` in the place of `span`."""

    span: Span
    replacement: str
    summary: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of one file.

    `path` is the document path as the oracle gives it (keys and indices), empty for the whole file. `span` is the
    smallest stretch of text that shows the fault, None where no text is to blame. `helps` and `notes` are finished
    sentences; no finding holds a secret.
    """

    file: str
    code: str
    level: Level
    message: str
    librechat: LibreChat
    path: tuple[str | int, ...] = ()
    span: Span | None = None
    labels: tuple[Label, ...] = ()
    helps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    fix: Fix | None = None

    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Order: file, line, column, code, message."""
        start = self.span.start if self.span else Position(1, 1, 0)
        return (self.file, start.line, start.column, self.code, self.message)
