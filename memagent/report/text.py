"""Findings for people: full frames, or one line each. Decides nothing about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.config.findings import Level, LibreChat
from memagent.report.cells import printable
from memagent.report.frame import draw

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memagent.config.findings import Finding

CONSEQUENCE: Mapping[LibreChat, str] = {
    LibreChat.REJECTS: "rejects the file",
    LibreChat.IGNORES: "ignores this without a word",
    LibreChat.ACCEPTS: "accepts this",
}

_STYLES: Mapping[str, str] = {
    "error": "1;31",
    "warning": "1;33",
    "primary": "1;31",
    "secondary": "1;34",
    "gutter": "1;34",
    "bold": "1",
}


def full(findings: Sequence[Finding], *, sources: Mapping[str, str], files: int, color: bool) -> str:
    """Every finding with its frame, and the count. `sources` is each file's text, its secrets masked."""
    lines = {file: split_lines(text) for file, text in sources.items()}
    blocks = ["\n".join(_block(finding, lines.get(finding.file, []), color=color)) for finding in findings]
    return "\n\n".join([*blocks, _footer(findings, files=files)]) + "\n"


def concise(findings: Sequence[Finding], *, files: int, color: bool) -> str:
    """One line a finding, and the count."""
    rows = []
    for finding in findings:
        level = _paint(finding.level, f"{finding.level}[{finding.code}]", color=color)
        rows.append(f"{_place(finding)}: {level} {printable(finding.message)}")
    return "\n".join([*rows, _footer(findings, files=files)]) + "\n"


def split_lines(text: str) -> list[str]:
    """Lines as YAML counts them: LF, CRLF and a lone CR end one; no other character does."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _block(finding: Finding, lines: Sequence[str], *, color: bool) -> Iterator[str]:
    def paint(style: str, text: str) -> str:
        return _paint(str(finding.level) if style == "primary" else style, text, color=color)

    head = paint(finding.level, f"{finding.level}[{finding.code}]")
    yield head + paint("bold", f": {printable(finding.message)}")
    rows: list[str] = []
    margin = " "
    if finding.span and lines:
        gutter, rows = draw(lines, finding.span, labels=finding.labels, paint=paint)
        margin = " " * gutter
    yield f"{margin}{paint('gutter', '-->')} {_place(finding)}"
    yield from rows
    for word, text in _remarks(finding):
        yield f"{margin} {paint('gutter', '=')} {paint('bold', word)}: {printable(text)}"


def _remarks(finding: Finding) -> Iterator[tuple[str, str]]:
    for text in finding.helps:
        yield "help", text
    for text in finding.notes:
        yield "note", text
    yield "librechat", CONSEQUENCE[finding.librechat]
    yield "docs", f"memagent explain {finding.code}"


def _place(finding: Finding) -> str:
    if finding.span is None:
        return printable(finding.file)
    return f"{printable(finding.file)}:{finding.span.start.line}:{finding.span.start.column}"


def _footer(findings: Sequence[Finding], *, files: int) -> str:
    errors = sum(finding.level is Level.ERROR for finding in findings)
    where = _count(files, "file")
    fixable = sum(finding.fix is not None for finding in findings)
    parts = [_count(errors, "error")] if errors or not findings else []
    if len(findings) > errors:
        parts.append(_count(len(findings) - errors, "warning"))
    if not findings:
        return f"No problems in {where}."
    hint = f" {fixable} can be mended with --fix." if fixable else ""
    return f"Found {' and '.join(parts)} in {where}.{hint}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _paint(style: str, text: str, *, color: bool) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if color else text
