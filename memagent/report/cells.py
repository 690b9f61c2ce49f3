"""How many terminal cells text takes, and what of it may be shown as it is."""

from __future__ import annotations

import unicodedata

TAB_STOP = 4
"""Cells between tab stops in a frame."""

HIDDEN = "\0"
"""Stands where a masked character stood: keeps every column of the line, takes no cell, is never printed."""

_JOINER = "\u200d"
_EMOJI_STYLE = "\ufe0f"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_WIDE = frozenset("WF")
_MARKS = frozenset(("Mn", "Me"))
_UNSHOWABLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def layout(line: str) -> list[tuple[str, int]]:
    """Each code point of `line` as what is printed for it and the cells that takes.

    Tabs become spaces. Characters that could move the cursor, hide text or turn its direction become `�`, so a file
    cannot write to the reader's terminal.
    """
    placed: list[tuple[str, int]] = []
    column = 0
    for index, char in enumerate(line):
        shown, cells = _cell(line, index, char, column)
        placed.append((shown, cells))
        column += cells
    return placed


def _cell(line: str, index: int, char: str, column: int) -> tuple[str, int]:
    if " " <= char <= "~":
        return char, 1
    if char == "\t":
        cells = TAB_STOP - column % TAB_STOP
        return " " * cells, cells
    if char == HIDDEN:
        return "", 0
    return _foreign_cell(line, index, char)


def _foreign_cell(line: str, index: int, char: str) -> tuple[str, int]:
    category = unicodedata.category(char)
    if category in _UNSHOWABLE and char != _JOINER:
        return "�", 1
    joins = char == _JOINER or line[index - 1 : index] == _JOINER
    if joins or category in _MARKS or ord(char) in _SKIN_TONES:
        return char, 0
    is_wide = unicodedata.east_asian_width(char) in _WIDE or line[index + 1 : index + 2] == _EMOJI_STYLE
    return char, 2 if is_wide else 1


def width(line: str) -> int:
    """The cells that `line` takes when it starts at column 0."""
    return sum(cells for _, cells in layout(line))


def printable(text: str) -> str:
    """`text` with line breaks and control characters shown as escapes, for a message of one line."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char in (_JOINER, _EMOJI_STYLE)
        else char.encode("unicode_escape").decode()
        for char in text
    )
