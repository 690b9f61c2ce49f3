"""The findings of a check as a page draws them: each with its frame, in stretches that carry a style."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memagent.config.check import check
from memagent.config.document import parse
from memagent.config.findings import Level
from memagent.config.librechat.verdict import verdict
from memagent.config.rules import RULES
from memagent.config.secrecy import masked
from memagent.report.frame import draw
from memagent.report.text import split_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.config.findings import Finding

FILE = "librechat.yaml"
ENDS = ("\x0e", "\x0f")
"""Around what a frame paints: control characters, which no frame shows of a text."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a frame's row; `style` is `gutter`, `primary`, `secondary` or nothing."""

    style: str
    text: str


@dataclass(frozen=True, slots=True)
class Framed:
    """A finding, the name of its rule, and its frame's rows; no row where no text is to blame."""

    finding: Finding
    rule: str
    rows: tuple[tuple[Stretch, ...], ...]

    @property
    def is_error(self) -> bool:
        return self.finding.level is Level.ERROR


@dataclass(frozen=True, slots=True)
class Check:
    """What was found in a text, and what LibreChat would do with it: `starts`, `defaults`, `exits`, `crashes`."""

    outcome: str
    findings: tuple[Framed, ...]

    @property
    def errors(self) -> int:
        return sum(framed.is_error for framed in self.findings)

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors


def checked(text: bytes) -> Check:
    """Check a librechat.yaml. Nothing of the server is asked: no variable of its environment, no file. Blocking, pure."""
    document = parse(text, FILE)
    judged = verdict(document, {})
    lines = split_lines(masked(document))
    return Check(str(judged.outcome), tuple(_framed(each, lines) for each in check(document, judged)))


def _framed(finding: Finding, lines: Sequence[str]) -> Framed:
    rows: list[str] = []
    if finding.span is not None:
        _, rows = draw(lines, finding.span, labels=finding.labels, paint=_paint)
    return Framed(finding, RULES[finding.code].name, tuple(_stretches(row) for row in rows))


def _paint(style: str, text: str) -> str:
    return f"{ENDS[0]}{style}\n{text}{ENDS[1]}"


def _stretches(row: str) -> tuple[Stretch, ...]:
    found: list[Stretch] = []
    for piece in row.split(ENDS[0]):
        style, _, rest = piece.partition("\n") if ENDS[1] in piece else ("", "", piece)
        painted, _, after = rest.partition(ENDS[1]) if style else ("", "", rest)
        found += [Stretch(style, painted), Stretch("", after)]
    return tuple(each for each in found if each.text)
