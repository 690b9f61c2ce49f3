"""Node properties: tags and what they make of a node, anchors, and what a node is called as a property name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from memagent.config.cursor import FLOW, SPACE, Unreadable
from memagent.config.nodes import Entry, Mapping, Node, Scalar, Sequence
from memagent.config.scalars import WORDS, Value, binary, date, number, text_of

if TYPE_CHECKING:
    from memagent.config.cursor import Cursor

CORE: Final = "tag:yaml.org,2002:"
MERGE: Final = CORE + "merge"
OBJECT: Final = "[object Object]"
SCALAR_TAGS: Final = frozenset({"str", "null", "bool", "int", "float", "timestamp", "merge", "binary"})
SEQUENCE_TAGS: Final = frozenset({"seq", "omap", "pairs"})
MAPPING_TAGS: Final = frozenset({"map", "set"})
HANDLE = r"(?:!|!!|![0-9A-Za-z-]+!)\Z"
TAG_URI = r"(?:!|[^,\[\]{}])(?:%[0-9a-f]{2}|[0-9a-z\-#;/?:@&=+$,_.!~*'()\[\]])*+\Z"


class Tag(NamedTuple):
    """A tag: what it means, where it stands, and how it is written there."""

    text: str
    start: int
    end: int
    written: str

    def refused(self, kind: str) -> Unreadable:
        return Unreadable(kind, self.start, self.end, name=self.written)


def read_tag(cursor: Cursor, handles: dict[str, str]) -> Tag:
    """The whole tag that starts at the cursor with `!`, the cursor behind it."""
    start = cursor.pos
    meaning = _meaning(cursor, handles)
    return Tag(meaning, start, cursor.pos, cursor.text[start : cursor.pos])


def _meaning(cursor: Cursor, handles: dict[str, str]) -> str:
    text, start = cursor.text, cursor.pos
    if text[start + 1] == "<":
        close = text.find(">", start + 3)
        if close < 0:
            raise Unreadable("bad-tag", start, cursor.line_end(start))
        cursor.pos = close + 1
        return tag_text(text[start + 2 : close], start)
    end = _word_end(r"[^ \t\r\n\0]*+", text, start + 1)
    cursor.pos = end
    handle, _, suffix = text[start:end].rpartition("!")
    handle += "!"
    if FLOW.intersection(suffix):
        raise Unreadable("bad-tag", start, end)
    if handle != "!" and not re.match(HANDLE, handle):
        raise Unreadable("bad-tag", start, end)
    suffix = tag_text(suffix, start)
    if handle in handles:
        return handles[handle] + suffix
    if handle == "!":
        return "!" + suffix
    if handle == "!!":
        return CORE + suffix
    raise Unreadable("unknown-tag", start, end, name=text[start:end])


def tag_text(name: str, start: int) -> str:
    """A tag or a part of one with its percent escapes decoded."""
    if name and not re.match(TAG_URI, name, re.IGNORECASE | re.ASCII):
        raise Unreadable("bad-tag", start, start + len(name) + 1)
    if "%" not in name:
        return name
    raw = re.sub(rb"%([0-9a-fA-F]{2})", lambda m: bytes([int(m[1], 16)]), name.encode("utf-8", "replace"))
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise Unreadable("bad-tag", start, start + len(name) + 1) from None


def read_name(cursor: Cursor) -> str:
    """The name behind `&` or `*`, the cursor behind it."""
    text, start = cursor.text, cursor.pos
    end = _word_end(r"[^ \t\r\n,\[\]{}\0]*+", text, start + 1)
    if end == start + 1:
        raise Unreadable("nameless-alias", start, name=text[start])
    cursor.pos = end
    return text[start + 1 : end]


def _word_end(pattern: str, text: str, pos: int) -> int:
    match = re.compile(pattern).match(text, pos)
    return match.end() if match else pos


def apply_tag(tag: Tag, node: Node | None, place: Scalar) -> Node:
    """What an explicit tag makes of `node`; `place` stands for a node that is not there."""
    name = tag.text[len(CORE) :] if tag.text.startswith(CORE) else ""
    if node is None:
        return _tagged_nothing(tag, name, place)
    if _is_kindless(node):
        if not isinstance(node, Scalar) or node.value is not None:
            raise tag.refused("wrong-tag")
        return _tagged_nothing(tag, name, place)
    wanted = (
        SCALAR_TAGS
        if isinstance(node, Scalar)
        else SEQUENCE_TAGS
        if isinstance(node, Sequence)
        else MAPPING_TAGS
    )
    known = SCALAR_TAGS | SEQUENCE_TAGS | MAPPING_TAGS
    if name not in wanted:
        raise tag.refused("unknown-tag" if name not in known else "wrong-tag")
    if isinstance(node, Scalar):
        node.value = _tagged_value(tag, name, node.value)
        return node
    if name == "set" and any(
        not isinstance(entry.value, Scalar) or entry.value.value is not None for entry in _entries(node)
    ):
        raise tag.refused("wrong-tag")
    if name in ("omap", "pairs") and isinstance(node, Sequence):
        return _pairs(tag, node, name)
    return node


def _is_kindless(node: Node) -> bool:
    """Whether js-yaml takes `node` for no kind of node: an alias, or a tag with nothing behind it."""
    written = node.source.text[node.start : node.end]
    return not written or (written[0] == "*" and SPACE.isdisjoint(written))


def _entries(node: Node) -> list[Entry]:
    return list(node.entries.values()) if isinstance(node, Mapping) else []


def _pairs(tag: Tag, node: Sequence, name: str) -> Sequence:
    """`!!omap` stays a list of one-key mappings with distinct keys, `!!pairs` becomes a list of [key, value]."""
    pairs = [entries[0] for item in node.items if len(entries := _entries(item)) == 1]
    if len(pairs) != len(node.items) or (name == "omap" and len({pair.key for pair in pairs}) != len(pairs)):
        raise tag.refused("wrong-tag")
    if name == "omap":
        return node
    source = node.source
    items: list[Node] = [
        Sequence(
            source,
            pair.key_start,
            pair.value.end,
            [Scalar(source, pair.key_start, pair.key_end, pair.key, plain=False), pair.value],
            flow=True,
        )
        for pair in pairs
    ]
    return Sequence(source, node.start, node.end, items, node.flow)


def _tagged_nothing(tag: Tag, name: str, place: Scalar) -> Node:
    if name in ("map", "set"):
        return Mapping(place.source, place.start, place.end, {}, flow=False)
    if name in SEQUENCE_TAGS:
        return Sequence(place.source, place.start, place.end, [], flow=False)
    if name in ("str", "null", "merge"):
        place.value = "" if name == "str" else None
        return place
    raise tag.refused("wrong-tag" if name in SCALAR_TAGS else "unknown-tag")


def _tagged_value(tag: Tag, name: str, value: Value) -> Value:
    """The value of a scalar under an explicit tag of the core schema.

    A value that is no string has been resolved already (the tag stands on the line before): only `!!str`, which then
    changes nothing, and a null where null is meant get past js-yaml.
    """
    made: Value = None
    if name == "str":
        return "" if value is None else value
    if isinstance(value, str):
        if name == "null" and value in WORDS and WORDS[value] is None:
            return None
        if name == "bool" and isinstance(WORDS.get(value), bool):
            made = WORDS[value]
        elif name in ("int", "float"):
            made = _tagged_number(name, value)
        elif name == "timestamp":
            made = date(value)
        elif name == "binary":
            made = binary(value)
        elif name == "merge" and value == "<<":
            made = value
    elif value is None and name in ("null", "merge"):
        return None
    if made is None:
        raise tag.refused("wrong-tag")
    return made


def _tagged_number(name: str, text: str) -> int | float | None:
    digits = text.lstrip("+-")
    based = digits[:2] in ("0b", "0x", "0o")
    fits = based or digits.isdigit() if name == "int" else not based
    return number(text) if fits else None


def property_name(node: Node | None) -> str:
    """What JavaScript calls a key: strings as they are, everything else as `String(key)` writes it.

    Raises:
        Unreadable: a list within a list.

    """
    if node is None:
        return "null"
    if isinstance(node, Scalar):
        return text_of(node.value)
    if isinstance(node, Sequence):
        return ",".join(_item_name(item) for item in node.items)
    return OBJECT


def _item_name(item: Node) -> str:
    if isinstance(item, Sequence):
        raise Unreadable("nested-list-key", item.start, item.end)
    if isinstance(item, Scalar) and item.value is None:
        return ""
    return property_name(item)
