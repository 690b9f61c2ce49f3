"""Documents: the bytes of a file to a tree of nodes with positions, read as js-yaml 4.3 reads them (spec/librechat.md §2.2).

A file that cannot be read is a `Document` without a root and with one finding; nothing here raises.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memagent.config.cursor import Unreadable
from memagent.config.findings import Finding, Level, LibreChat, Span
from memagent.config.nodes import Entry, Mapping, Node, Scalar, Sequence, Source
from memagent.config.scalars import Date, Value
from memagent.config.stream import read
from memagent.config.syntax import IGNORED_WHOLE, explain

if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = [
    "MAX_BYTES",
    "Date",
    "Document",
    "Entry",
    "Mapping",
    "Node",
    "Scalar",
    "Sequence",
    "Value",
    "parse",
    "plain",
]

MAX_BYTES: Final = 3 * 2**20
"""A configuration larger than this is a mistake or an attack; the largest real one seen is 1.1 MiB."""

Path: TypeAlias = "tuple[str | int, ...]"

FOREIGN_ENCODINGS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


@dataclass(slots=True)
class Document:
    """A file that was read. `root` is None when it could not be: then `findings` holds exactly one finding that says why.

    `text` is without a byte order mark (`bom` says whether there was one); bytes that are no UTF-8 stand in it as U+FFFD.
    """

    file: str
    text: str
    root: Node | None
    findings: tuple[Finding, ...] = ()
    bom: bool = False

    def node_at(self, path: Path) -> Node | None:
        """The node at a document path, or None."""
        node = self.root
        for step in path:
            node = _child(node, step)
        return node

    def entry_at(self, path: Path) -> Entry | None:
        """The pair of a mapping that `path` leads to, or None where it leads to an item, the root or nowhere."""
        if not path:
            return None
        parent = self.node_at(path[:-1])
        return parent.entries.get(str(path[-1])) if isinstance(parent, Mapping) else None

    def span_at(self, path: Path) -> Span | None:
        """The smallest stretch that shows the thing at `path`: a scalar itself, the key of anything else.

        Of its nearest parent if there is nothing at `path`; of the first line at the root.
        """
        for length in range(len(path), -1, -1):
            node = self.node_at(path[:length])
            if node is None:
                continue
            if isinstance(node, Scalar) and node.end > node.start:
                return node.source.span(node.start, _first_line_end(node))
            entry = self.entry_at(path[:length])
            if entry is not None:
                return entry.key_span
            return node.source.span(node.start, _first_line_end(node))
        return None


def parse(data: bytes, file: str) -> Document:
    """Read bytes; never raises, whatever they are."""
    if len(data) > MAX_BYTES:
        said = f"the file has {len(data):,} bytes; more than {MAX_BYTES:,} is no configuration"
        return Document(file, "", None, (_finding(file, "MEM003", said, LibreChat.ACCEPTS),))
    bom = data.startswith(codecs.BOM_UTF8)
    data = data[len(codecs.BOM_UTF8) :] if bom else data
    try:
        source = Source(data.decode("utf-8"))
    except UnicodeDecodeError as fault:
        return Document(
            file, data.decode("utf-8", "replace"), None, (_not_utf8(data, file, fault.start),), bom=bom
        )
    try:
        root = read(source)
    except Unreadable as fault:
        return Document(file, source.text, None, (explain(fault, source, file),), bom=bom)
    if root is None or (isinstance(root, Scalar) and root.value is None):
        said = "the file is empty" if not data.strip() else "the file holds nothing but comments"
        return Document(file, source.text, None, (_finding(file, "MEM006", said),), bom=bom)
    return Document(file, source.text, root, bom=bom)


def plain(node: Node) -> object:
    """The values of a tree as dictionaries, lists and scalars."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    assert isinstance(node, Mapping)  # noqa: S101 - there is no fourth kind of node
    return {key: plain(entry.value) for key, entry in node.entries.items()}


def _child(node: Node | None, step: str | int) -> Node | None:
    if isinstance(node, Mapping):
        entry = node.entries.get(str(step))
        return entry.value if entry else None
    if isinstance(node, Sequence) and isinstance(step, int) and 0 <= step < len(node.items):
        return node.items[step]
    return None


def _first_line_end(node: Node) -> int:
    """Where the part of a node that stands on its first line ends."""
    written = node.source.text[node.start : node.end]
    return node.start + max(1, len(written.splitlines()[0].rstrip()) if written.strip() else 1)


def _not_utf8(data: bytes, file: str, at: int) -> Finding:
    encoding = next((name for mark, name in FOREIGN_ENCODINGS if data.startswith(mark)), None)
    before = data[:at].decode("utf-8", "replace")
    place = Source(before + "\ufffd")
    said = f"the file is {encoding}, not UTF-8" if encoding else f"byte 0x{data[at]:02x} is not UTF-8"
    return Finding(
        file=file,
        code="MEM002",
        level=Level.ERROR,
        message=said,
        librechat=LibreChat.REJECTS if b"\0" in data else LibreChat.ACCEPTS,
        span=place.span(len(before), len(before) + 1),
        helps=("save the file as UTF-8",),
        notes=() if b"\0" in data else ("LibreChat reads such bytes as U+FFFD",),
    )


def _finding(file: str, code: str, message: str, librechat: LibreChat = LibreChat.REJECTS) -> Finding:
    notes = () if librechat is LibreChat.ACCEPTS else (IGNORED_WHOLE,)
    start = Source("").position(0)
    span = None if code == "MEM003" else Span(start, start)
    return Finding(
        file=file, code=code, level=Level.ERROR, message=message, librechat=librechat, span=span, notes=notes
    )
