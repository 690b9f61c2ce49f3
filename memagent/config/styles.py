"""The four ways to write a scalar: plain, 'single', "double", and the block styles | and >. Each returns its text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from memagent.config.cursor import BREAK, CONTROL, END, UNPRINTABLE, Unreadable

if TYPE_CHECKING:
    from memagent.config.cursor import Cursor

PLAIN_IN_BLOCK = re.compile(r"(?:[^:#\r\n\0]++|:(?![ \t\r\n])|(?<![ \t\r\n])#)*+")
PLAIN_IN_FLOW = re.compile(r"(?:[^:#,\[\]{}\r\n\0]++|:(?![ \t\r\n,\[\]{}])|(?<![ \t\r\n])#)*+")
NEVER_FIRST: Final = frozenset(" \t\r\n,[]{}#&*!|>'\"%@`\0")
IN_SINGLE = re.compile(r"[^'\r\n\0]*+")
IN_DOUBLE = re.compile(r'[^"\\\r\n\0]*+')
HEX_DIGITS: Final = frozenset("0123456789abcdefABCDEF")
ESCAPES: Final = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
HEX_ESCAPES: Final = {"x": 2, "u": 4, "U": 8}
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
    while text[stop] in BREAK:
        cursor.pos = stop
        line = cursor.line_start, cursor.line_indent
        breaks = cursor.skip_blank_lines()
        if cursor.line_indent < indent:
            cursor.line_start, cursor.line_indent = line
            cursor.pos = end
            return value, end
        start = stop = cursor.pos
        if start == cursor.line_start and cursor.at_separator():
            break
        stop = _end(pattern, text, start)
        more = text[start:stop].rstrip(" \t")
        if not more:
            break
        end = start + len(more)
        _printable(cursor, start, end)
        value += _folded(breaks) + more
    cursor.pos = stop
    return value, end


def single_quoted(cursor: Cursor) -> str:
    """The text of a '…' scalar, the cursor behind it."""
    text = cursor.text
    opened = cursor.pos
    pos = piece = opened + 1
    value = ""
    while True:
        end = _end(IN_SINGLE, text, pos)
        char = text[end]
        if char == "'" and text[end + 1] == "'":
            value += _json(cursor, piece, end)
            # The second quote is text, and stands for both.
            piece, pos = end + 1, end + 2
            continue
        if char == "'":
            cursor.pos = end + 1
            return value + _json(cursor, piece, end)
        if char == END:
            raise Unreadable("unclosed-quote", opened, name="'")
        value += _json(cursor, piece, end).rstrip(" \t")
        cursor.pos = end
        value += _folded(cursor.skip_blank_lines())
        pos = piece = _inside(cursor, opened)


def double_quoted(cursor: Cursor) -> str:
    """The text of a "…" scalar, the cursor behind it."""
    text = cursor.text
    opened = cursor.pos
    pos = opened + 1
    parts: list[str] = []
    while True:
        end = _end(IN_DOUBLE, text, pos)
        char = text[end]
        if char == '"':
            cursor.pos = end + 1
            parts.append(_json(cursor, pos, end))
            return _whole("".join(parts))
        if char == "\\":
            parts.append(_json(cursor, pos, end))
            cursor.pos = end + 1
            if text[end + 1] in BREAK:
                cursor.skip_blank_lines()
            else:
                parts.append(_escape(cursor))
            pos = cursor.pos
        elif char == END:
            raise Unreadable("unclosed-quote", opened, name='"')
        else:
            parts.append(_json(cursor, pos, end).rstrip(" \t"))
            cursor.pos = end
            parts.append(_folded(cursor.skip_blank_lines()))
            pos = _inside(cursor, opened)


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


def _escape(cursor: Cursor) -> str:
    """One escape sequence, the cursor behind its backslash and then behind it."""
    text, pos = cursor.text, cursor.pos
    char = text[pos]
    if char in ESCAPES:
        cursor.pos = pos + 1
        return ESCAPES[char]
    width = HEX_ESCAPES.get(char)
    if width is None:
        raise Unreadable("bad-escape", pos - 1, pos + 1)
    digits = text[pos + 1 : pos + 1 + width]
    if len(digits) < width or not HEX_DIGITS.issuperset(digits):
        raise Unreadable("bad-escape", pos - 1, pos + 1)
    cursor.pos = pos + 1 + width
    code = int(digits, 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"  # noqa: PLR2004 - the last code point


def _inside(cursor: Cursor, opened: int) -> int:
    """Where a quoted scalar goes on after a line break: a document marker ends it."""
    if cursor.pos == cursor.line_start and cursor.at_separator():
        raise Unreadable("unclosed-quote", opened, name=cursor.text[opened])
    return cursor.pos


def _end(pattern: re.Pattern[str], text: str, pos: int) -> int:
    match = pattern.match(text, pos)
    return match.end() if match else pos


def _folded(breaks: int) -> str:
    return " " if breaks == 1 else "\n" * (breaks - 1)


def _printable(cursor: Cursor, start: int, end: int) -> None:
    if cursor.unprintable and (match := UNPRINTABLE.search(cursor.text, start, end)):
        raise Unreadable("control-character", match.start())


def _json(cursor: Cursor, start: int, end: int) -> str:
    if cursor.controls and (match := CONTROL.search(cursor.text, start, end)):
        raise Unreadable("control-character", match.start())
    return cursor.text[start:end]


def _whole(value: str) -> str:
    """Escaped surrogate pairs become the character they mean; a lone half becomes U+FFFD, which can be printed."""
    if value.isascii() or SURROGATES.search(value) is None:
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
