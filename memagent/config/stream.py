"""The stream: the one document of a text, with the directives in front of it and the markers around it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memagent.config.collections import BLOCK_OUT
from memagent.config.cursor import Unreadable
from memagent.config.properties import HANDLE, tag_text
from memagent.config.reader import Reader

if TYPE_CHECKING:
    from memagent.config.nodes import Node, Source


def read(source: Source) -> Node | None:
    """The document that `source` holds, or None where there is nothing but comments.

    Raises:
        Unreadable: js-yaml refuses the text, or it is too large or deep to be a configuration.

    """
    reader = Reader(source)
    text = reader.text
    nul = text.find("\0", 0, len(text) - 1)
    if nul >= 0:
        raise Unreadable("null-byte", nul)
    while text[reader.pos] == " ":
        reader.pos += 1
    reader.line_indent = reader.pos
    # js-yaml takes a text for finished at its last line break.
    last = len(text) - 2
    root, first = None, True
    while reader.pos < last:
        begin = reader.pos
        node = _document(reader, last)
        if not first:
            raise Unreadable("several-documents", begin)
        root, first = node, False
    return root


def _document(reader: Reader, last: int) -> Node | None:
    """One document, the reader behind it and behind the `...` that may end it."""
    reader.anchors.clear()
    _directives(reader)
    node = reader.compose(reader.line_indent - 1, BLOCK_OUT, seek=False, compact=True)
    reader.skip()
    if reader.pos == reader.line_start and reader.at_separator():
        if reader.text[reader.pos] == ".":
            reader.pos += 3
            reader.skip()
    elif reader.pos < last:
        raise Unreadable("end-expected", reader.pos)
    return node


def _directives(reader: Reader) -> None:
    """`%YAML`, `%TAG` and the `---` behind them, over which the reader goes."""
    text, handles = reader.text, reader.handles
    handles.clear()
    seen: set[str] = set()
    while True:
        reader.skip()
        if reader.line_indent > 0 or text[reader.pos] != "%":
            break
        start, end = reader.pos, reader.line_end(reader.pos)
        words = re.split(r"[ \t]+", text[start + 1 : end].rstrip(" \t"))
        comment = next((at for at, word in enumerate(words) if at and word.startswith("#")), len(words))
        name, arguments = words[0], words[1:comment]
        if not name:
            raise Unreadable("reserved-character", start)
        reader.pos = end
        reader.line_break()
        if (name == "YAML" and (name in seen or not _is_version(arguments))) or (
            name == "TAG" and not _declare(handles, arguments, start)
        ):
            raise Unreadable("bad-directive", start, end)
        seen.add(name)
    if reader.line_indent == 0 and text.startswith("---", reader.pos):
        reader.pos += 3
        reader.skip()
    elif seen:
        raise Unreadable("directive-end", reader.pos)


def _is_version(arguments: list[str]) -> bool:
    """Whether these are the arguments of a `%YAML` that js-yaml takes: any 1.x."""
    match = re.match(r"([0-9]+)\.[0-9]+\Z", arguments[0]) if len(arguments) == 1 else None
    return match is not None and int(match[1]) == 1


def _declare(handles: dict[str, str], arguments: list[str], start: int) -> bool:
    """Enter the handle of a `%TAG`; False where it is malformed or there already."""
    if len(arguments) != 2 or arguments[0] in handles or not re.match(HANDLE, arguments[0]):  # noqa: PLR2004 - a pair
        return False
    handles[arguments[0]] = tag_text(arguments[1], start)
    return True
