"""The four ways to write a scalar: plain, 'single', "double", and the block styles | and >. Each returns its text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from memagent.config.cursor import BREAK, CONTROL, END, UNPRINTABLE, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memagent.config.cursor import Cursor

PLAIN_IN_BLOCK = re.compile(r"(?:[^:#\r\n\0]++|:(?![ \t\r\n])|(?<![ \t\r\n])#)*+")
PLAIN_IN_FLOW = re.compile(r"(?:[^:#,\[\]{}\r\n\0]++|:(?![ \t\r\n,\[\]{}])|(?<![ \t\r\n])#)*+")
NEVER_FIRST: Final = frozenset(" \t\r\n,[]{}#&*!|>'\"%@`\0")
SINGLE = re.compile(r"'(?:[^'\0]++|'')*+'")
DOUBLE = re.compile(r'"(?:[^"\\\0]++|\\[^\0])*+"', re.DOTALL)
BREAKS = re.compile(r"[\r\n][ \t\r\n]*+")
MARKER = re.compile(r"[\r\n](?:---|\.\.\.)[ \t\r\n]")
ESCAPE = re.compile(
    r"\\(?:x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|.)", re.DOTALL
)
ESCAPES: Final = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
SURROGATES = re.compile("[\ud800-\udfff]")


def plain(cursor: Cursor, indent: int, *, in_flow: bool) -> tuple[str, int] | None:
    """A plain scalar and the offset where its text ends, or None when none starts here.

    It goes on over line breaks as long as the next text is indented by `indent` or more.
    """
    text, start = cursor.text, cursor.pos
    first = text[start]
    if first in NEVER_FIRST:
        return None
    if first in "?-" and text[start + 1] in (" \t\r\n,[]{}" if in_flow else " \t\r\n"):
        return None
    if start == cursor.line_start and cursor.at_separator():
        return None
    pattern = PLAIN_IN_FLOW if in_flow else PLAIN_IN_BLOCK
    stop = _end(pattern, text, start)
    value = text[start:stop].rstrip(" \t")
    if not value:
        return None
    end = start + len(value)
    _printable(cursor, start, end)
    if text[stop] in BREAK:
        return _continued(cursor, pattern, indent, value=value, end=end, stop=stop)
    cursor.pos = stop
    return value, end


def _continued(
    cursor: Cursor, pattern: re.Pattern[str], indent: int, *, value: str, end: int, stop: int
) -> tuple[str, int]:
    """A plain scalar whose first line is `value`, with the lines below that belong to it."""
    text, parts = cursor.text, [value]
    while text[stop] in BREAK:
        cursor.pos = stop
        line = cursor.line_start, cursor.line_indent
        breaks = cursor.skip_blank_lines()
        if cursor.line_indent < indent:
            cursor.line_start, cursor.line_indent = line
            stop = end
            break
        start = stop = cursor.pos
        if start == cursor.line_start and cursor.at_separator():
            break
        stop = _end(pattern, text, start)
        more = text[start:stop].rstrip(" \t")
        if not more:
            break
        end = start + len(more)
        if cursor.unprintable:
            _printable(cursor, start, end)
        parts.append(_folded(breaks))
        parts.append(more)
    cursor.pos = stop
    return "".join(parts), end


def single_quoted(cursor: Cursor) -> str:
    """The text of a '…' scalar, the cursor behind it."""
    return "".join(
        piece.rstrip(" \t") + _folded(breaks) if breaks else piece for piece, breaks in _lines(cursor, SINGLE)
    ).replace("''", "'")


def double_quoted(cursor: Cursor) -> str:
    """The text of a "…" scalar, the cursor behind it."""
    opened = cursor.pos
    parts: list[str] = []
    for piece, breaks in _lines(cursor, DOUBLE):
        if not breaks:
            parts.append(piece)
            continue
        bare = piece.rstrip(" \t")
        if (len(bare) - len(bare.rstrip("\\"))) % 2 == 0:
            parts.append(bare + _folded(breaks))
        elif bare == piece:
            # The line break itself is escaped.
            parts.append(piece[:-1])
        else:
            parts.append(piece[: len(bare) + 1] + _folded(breaks))
    value = "".join(parts)
    if "\\" not in value:
        return value
    try:
        return _whole(ESCAPE.sub(_unescaped, value))
    except KeyError:
        text = cursor.text
        at = next(m.start() for m in ESCAPE.finditer(text, opened, cursor.pos) if not _is_escape(m))
        raise Unreadable("bad-escape", at, at + 2) from None


def _lines(cursor: Cursor, pattern: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    """The lines within quotes as they are written, each with the number of line breaks behind it; 0 behind the last."""
    text, opened = cursor.text, cursor.pos
    match = pattern.match(text, opened)
    if match is None:
        raise Unreadable("unclosed-quote", opened, name=text[opened])
    start, end = opened + 1, match.end() - 1
    if cursor.controls and (control := CONTROL.search(text, start, end)):
        raise Unreadable("control-character", control.start())
    breaks = list(BREAKS.finditer(text, start, end)) if "\n" in text[start:end] or cursor.returns else []
    if breaks:
        if MARKER.search(text, start, end + 1):
            raise Unreadable("unclosed-quote", opened, name=text[opened])
        cursor.pos = breaks[-1].start()
        cursor.moved_to(breaks[-1].end())
    cursor.pos = end + 1
    for line in breaks:
        count = line[0].count("\n")
        if cursor.returns:
            count += line[0].count("\r") - line[0].count("\r\n")
        yield text[start : line.start()], count
        start = line.end()
    yield text[start:end], 0


def block(cursor: Cursor, indent: int) -> tuple[str, int]:
    """A | or > scalar and the offset where its text ends, the cursor on the first line that is not part of it."""
    text = cursor.text
    folded = text[cursor.pos] == ">"
    chomping, width = _block_header(cursor)
    end = cursor.pos
    detected = width > 0
    margin = indent + width - 1 if detected else indent
    lines: list[str] = []
    empty = 0
    deeper = False
    while text[cursor.pos] != END:
        cursor.line_break()
        pos = start = cursor.pos
        limit = start + margin if detected else len(text)
        while pos < limit and text[pos] == " ":
            pos += 1
        cursor.pos = pos
        cursor.line_indent = pos - start
        if not detected:
            margin = max(margin, cursor.line_indent)
        char = text[pos]
        if char in BREAK:
            empty += 1
            continue
        if not detected and margin == 0:
            raise Unreadable("block-scalar-indent", pos)
        if cursor.line_indent < margin:
            lines.append(_tail(chomping, empty=empty, first=not lines))
            break
        flat = folded and char not in " \t"
        lines.append(_between(flat=flat, deeper=deeper, empty=empty, first=not lines))
        deeper = not flat
        detected = True
        empty = 0
        cursor.pos = end = cursor.line_end(pos)
        _printable(cursor, pos, cursor.pos)
        lines.append(text[pos : cursor.pos])
    return "".join(lines), end


def _between(*, flat: bool, deeper: bool, empty: int, first: bool) -> str:
    """What joins a line to the one before: a space where a `>` scalar folds, line breaks elsewhere."""
    if not flat:
        return "\n" * (empty if first else empty + 1)
    if deeper:
        return "\n" * (empty + 1)
    return "\n" * empty if empty else "" if first else " "


def _tail(chomping: str, *, empty: int, first: bool) -> str:
    """The line breaks at the end: all of them, one, or none."""
    if chomping == "+":
        return "\n" * (empty if first else empty + 1)
    return "" if chomping == "-" or first else "\n"


def _block_header(cursor: Cursor) -> tuple[str, int]:
    """Chomping sign and indentation width of a block scalar, the cursor at the end of its first line."""
    text = cursor.text
    pos = cursor.pos + 1
    chomping, width = "", 0
    while text[pos] in "+-0123456789":
        char = text[pos]
        if char in "+-":
            if chomping:
                raise Unreadable("block-scalar-header", pos)
            chomping = char
        elif width or char == "0":
            raise Unreadable("block-scalar-header", pos)
        else:
            width = int(char)
        pos += 1
    if text[pos] in " \t":
        while text[pos] in " \t":
            pos += 1
        if text[pos] == "#":
            pos = cursor.line_end(pos)
    cursor.pos = pos
    return chomping, width


def _unescaped(match: re.Match[str]) -> str:
    """What an escape sequence means. Raises KeyError where it means nothing."""
    if match.lastgroup is None:
        return ESCAPES[match[0][1:]]
    code = int(match[match.lastgroup], 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"  # noqa: PLR2004 - the last code point


def _is_escape(match: re.Match[str]) -> bool:
    return match.lastgroup is not None or match[0][1:] in ESCAPES or match[0][1:] in BREAK


def _end(pattern: re.Pattern[str], text: str, pos: int) -> int:
    match = pattern.match(text, pos)
    return match.end() if match else pos


def _folded(breaks: int) -> str:
    return " " if breaks == 1 else "\n" * (breaks - 1)


def _printable(cursor: Cursor, start: int, end: int) -> None:
    if cursor.unprintable and (match := UNPRINTABLE.search(cursor.text, start, end)):
        raise Unreadable("control-character", match.start())


def _whole(value: str) -> str:
    """Escaped surrogate pairs become the character they mean; a lone half becomes U+FFFD, which can be printed."""
    if value.isascii() or SURROGATES.search(value) is None:
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
