"""Collections: flow `[…]` and `{…}`, block sequences and mappings, and what a merge key puts into a mapping.

Configuration files are mostly lines of `key: value` and `- item`: `PAIR` and `ITEM` take such a line, and the blank ones
behind it, in one step. Everything else goes the long way, which gives the same result.
"""

from __future__ import annotations

import re
from typing import Final

from memagent.config.cursor import END, SPACE, Cursor, Unreadable
from memagent.config.nodes import Entry, Mapping, Node, Scalar, Sequence, Source
from memagent.config.properties import property_name
from memagent.config.scalars import WORDS, Date, resolve, text_of

FLOW_IN, FLOW_OUT, BLOCK_IN, BLOCK_OUT = range(4)
"""Where a node stands: inside brackets, as a key, as an item, as a value."""

MAX_NODES: Final = 100_000
"""A document that expands to more nodes than this is an attack; the largest real one seen has 17,000."""

MAX_MERGED_KEYS: Final = 10_000
MAX_MERGED_MAPPINGS: Final = 100
"""js-yaml's own limits: of one file, and of one merge key."""

WORD = (
    r"(?:([^ \t\r\n,\[\]{}#&*!|>'\"%@`\0?:-](?:[^:#\r\n\0]++|:(?![ \t\r\n])|(?<![ \t])#)*+)"
    r"""|"([^"\\\r\n\0]*+)"|'([^'\r\n\0]*+)')"""
)
REST_OF_LINE = (
    r"[ \t]*+(?:(?<=[ \t])#[^\r\n\0]*+)?\r?\n"
    r"(?:[ \t]*+(?:#[^\r\n\0]*+)?\r?\n)*+"
    r"( *+)(?=[^ \t\r\n#])"
)
PAIR = re.compile(rf"([A-Za-z_][A-Za-z0-9_./-]*+): ++{WORD}{REST_OF_LINE}")
ITEM = re.compile(rf"(-) ++{WORD}{REST_OF_LINE}")


class Draft:
    """A block mapping while it is read: its pairs, the key whose value comes next, and whether `?` announced that key."""

    __slots__ = ("at", "compact", "detected", "entries", "explicit", "key", "lone", "merge")

    def __init__(self, start: int) -> None:
        self.entries: dict[str, Entry] = {}
        self.key: Node | None = None
        self.at = (start, start)
        self.merge = False
        self.detected = False
        self.explicit = False
        self.compact = False
        self.lone: Node | None = None
        """The node that stands where a key was looked for."""


class Collections(Cursor):
    """Reads what holds nodes; its heir `Reader` composes the nodes themselves."""

    __slots__ = ("count", "is_merge", "merged", "simple", "source")

    def __init__(self, source: Source) -> None:
        text = source.text
        super().__init__(text if text.endswith(("\n", "\r")) else text + "\n")
        self.source = source
        self.count = 0
        self.merged = 0
        self.is_merge = False
        """The node composed last is a merge key: an untagged plain `<<`, or tagged as one."""
        self.simple = not self.unprintable
        """The text holds no character that a scalar may not have, so `PAIR` and `ITEM` need not look for them."""

    def compose(self, parent_indent: int, context: int, *, seek: bool, compact: bool) -> Node | None:
        raise NotImplementedError

    def flow(self, indent: int) -> Node:
        """A `[…]` or `{…}` collection, the cursor behind its bracket."""
        text, start = self.text, self.pos
        is_mapping = text[start] == "{"
        close = "}" if is_mapping else "]"
        items: list[Node] = []
        entries: dict[str, Entry] = {}
        self.pos += 1
        comma = True
        while text[self.pos] != END:
            self.skip()
            char = text[self.pos]
            if char == close:
                self.pos += 1
                self.is_merge = False
                if is_mapping:
                    return Mapping(self.source, start, self.pos, entries, flow=True)
                return Sequence(self.source, start, self.pos, items, flow=True)
            if not comma:
                raise Unreadable("missing-comma", self.pos, first=(start, start + 1))
            if char == ",":
                raise Unreadable("stray-comma", self.pos)
            explicit = char == "?" and text[self.pos + 1] in SPACE
            if explicit:
                self.pos += 1
                self.skip()
            self.flow_entry(indent, items=None if is_mapping else items, entries=entries, explicit=explicit)
            self.skip()
            comma = text[self.pos] == ","
            if comma:
                self.pos += 1
        raise Unreadable("unclosed-bracket", start, name=text[start])

    def flow_entry(
        self, indent: int, *, items: list[Node] | None, entries: dict[str, Entry], explicit: bool
    ) -> None:
        """One item or pair between brackets; `items` is None within `{…}`."""
        text, line, start = self.text, self.line_start, self.pos
        key = self.compose(indent, FLOW_IN, seek=False, compact=True)
        merge = self.is_merge
        end = self.pos if key is None else key.end
        self.skip()
        value: Node | None = None
        is_pair = explicit
        if text[self.pos] == ":" and (explicit or self.line_start == line):
            is_pair = True
            self.pos += 1
            self.skip()
            value = self.compose(indent, FLOW_IN, seek=False, compact=True)
        if items is None:
            self.store(entries, key, value, at=(start, end), merge=merge)
        elif is_pair:
            pair: dict[str, Entry] = {}
            self.store(pair, key, value, at=(start, end), merge=merge)
            items.append(Mapping(self.source, start, value.end if value else end, pair, flow=True))
        else:
            items.append(key or Scalar(self.source, start, start, None, plain=True))

    def block_sequence(self, indent: int) -> Node | None:
        """A sequence of `- item` lines at column `indent`, or None where none starts."""
        text, start = self.text, self.pos
        if self.first_tab >= 0 or text[start] != "-" or text[start + 1] not in SPACE:
            return None
        items: list[Node] = []
        source, simple = self.source, self.simple
        while text[self.pos] == "-" and text[self.pos + 1] in SPACE:
            if self.first_tab >= 0:
                raise Unreadable("tab", self.first_tab)
            if simple and (match := ITEM.match(text, self.pos)) and len(match[5]) <= indent:
                items.append(self.word(match))
                if self.line_indent < indent:
                    break
                continue
            at = self.pos
            self.pos += 1
            if self.skip() and self.line_indent <= indent:
                items.append(Scalar(source, at + 1, at + 1, None, plain=True))
                if self.first_tab >= 0 and text[self.pos] != END:
                    raise Unreadable("tab", self.first_tab)
                continue
            line = self.line_start
            node = self.compose(indent, BLOCK_IN, seek=False, compact=True)
            items.append(node or Scalar(source, at + 1, at + 1, None, plain=True))
            self.skip()
            if text[self.pos] == END:
                break
            if self.line_start == line or self.line_indent > indent:
                raise Unreadable("bad-item", self.pos, first=(start, start + 1))
            if self.line_indent < indent:
                break
            if self.first_tab >= 0:
                raise Unreadable("tab", self.first_tab)
        return Sequence(source, start, items[-1].end, items, flow=False)

    def word(self, match: re.Match[str]) -> Scalar:
        """The value of a `PAIR` or an `ITEM`, the cursor on the next line."""
        self.count += 1
        if self.count > MAX_NODES:
            raise Unreadable("too-many-nodes", self.pos)
        self.pos = match.end()
        self.line_start = match.start(5)
        self.line_indent = self.pos - self.line_start
        self.first_tab = -1
        plain = match[2]
        if plain is not None:
            plain = plain.rstrip(" \t")
            start = match.start(2)
            return Scalar(self.source, start, start + len(plain), resolve(plain), plain=True)
        group = 3 if match[3] is not None else 4
        return Scalar(self.source, match.start(group) - 1, match.end(group) + 1, match[group], plain=False)

    def block_mapping(self, indent: int, flow_indent: int) -> Node | None:
        """A mapping at column `indent`, or the one node that stands there instead, or None where there is neither."""
        if self.first_tab >= 0:
            return None
        text, start = self.text, self.pos
        draft = Draft(start)
        while text[self.pos] != END:
            if not draft.explicit and self.pair_line(draft, indent):
                if self.line_indent < indent:
                    break
                continue
            line = self.line_start
            if not self.block_key(draft, flow_indent):
                if draft.lone is not None:
                    return draft.lone
                break
            value = self.compose(indent, BLOCK_OUT, seek=True, compact=draft.compact)
            if draft.explicit:
                draft.key, draft.merge = value, False
                draft.at = (value.start, value.end) if value else draft.at
            else:
                self.settle(draft, value)
            self.skip()
            if text[self.pos] == END or (self.line_start != line and self.line_indent < indent):
                break
            if self.line_start == line or self.line_indent > indent:
                raise Unreadable("bad-indentation", self.pos, first=(start, start + 1))
        if draft.explicit:
            self.settle(draft, None)
        if not draft.detected:
            return None
        end = max((entry.value.end for entry in draft.entries.values() if not entry.merged), default=self.pos)
        return Mapping(self.source, start, end, draft.entries, flow=False)

    def pair_line(self, draft: Draft, indent: int) -> bool:
        """Take one `key: value` line and go to the next, if it is as simple as that."""
        if self.first_tab >= 0:
            raise Unreadable("tab", self.first_tab)
        match = PAIR.match(self.text, self.pos) if self.simple else None
        if match is None or len(match[5]) > indent:
            return False
        draft.detected = True
        self.put(draft.entries, _word_name(match[1]), self.word(match), at=match.span(1))
        return True

    def block_key(self, draft: Draft, flow_indent: int) -> bool:
        """Go over a key and the sign behind it; False where none stands, with the node that does, if any, in `lone`."""
        at, char = self.pos, self.text[self.pos]
        if char in "?:" and self.text[at + 1] in SPACE:
            if char == ":" and not draft.explicit:
                raise Unreadable("missing-key", at)
            if char == "?" and draft.explicit:
                self.settle(draft, None)
            draft.detected = draft.compact = True
            draft.explicit = char == "?"
            if draft.explicit:
                draft.at = (at, at + 1)
            self.pos += 1
            return True
        line = self.line_start
        node = self.compose(flow_indent, FLOW_OUT, seek=False, compact=True)
        merge = self.is_merge
        if node is None:
            return False
        if not self.colon(line, node, detected=draft.detected):
            draft.lone = node
            return False
        if draft.explicit:
            self.settle(draft, None)
        draft.detected, draft.explicit, draft.compact = True, False, False
        draft.key, draft.at, draft.merge = node, (at, node.end), merge
        return True

    def settle(self, draft: Draft, value: Node | None) -> None:
        """Put the pair that is being read into its mapping."""
        self.store(draft.entries, draft.key, value, at=draft.at, merge=draft.merge)
        draft.key, draft.merge = None, False

    def colon(self, line: int, key: Node, *, detected: bool) -> bool:
        """Whether a colon follows `key` on its line, the cursor then behind it.

        Raises:
            Unreadable: none does, though this is a mapping already; or one does with nothing between it and the value.

        """
        if self.line_start != line:
            if detected:
                raise Unreadable("missing-colon", key.start, self.line_end(key.start))
            return False
        text = self.text
        while text[self.pos] in " \t":
            self.pos += 1
        if text[self.pos] != ":":
            if detected:
                raise Unreadable("missing-colon", key.start, key.end)
            return False
        self.pos += 1
        if text[self.pos] not in SPACE:
            raise Unreadable("missing-space", self.pos - 1)
        return True

    def store(
        self,
        entries: dict[str, Entry],
        key: Node | None,
        value: Node | None,
        *,
        at: tuple[int, int],
        merge: bool,
    ) -> None:
        """Put a pair into a mapping: under its property name, or all of `value`'s pairs if `key` is a merge key."""
        name = property_name(key)
        if not merge:
            self.put(entries, name, value or Scalar(self.source, at[1], at[1], None, plain=True), at=at)
        elif isinstance(value, Sequence):
            if len(value.items) > MAX_MERGED_MAPPINGS:
                raise Unreadable("merge-bomb", *at)
            for item in value.items:
                self.merge(entries, item, at)
        else:
            self.merge(entries, value, at)

    def put(self, entries: dict[str, Entry], name: str, value: Node, *, at: tuple[int, int]) -> None:
        old = entries.get(name)
        if old is not None and not old.merged:
            raise Unreadable("duplicate-key", *at, name=name, first=(old.key_start, old.key_end))
        entries[name] = Entry(name, at[0], at[1], value)

    def merge(self, entries: dict[str, Entry], source: Node | None, at: tuple[int, int]) -> None:
        """Add the pairs of `source` that `entries` has not: anything but a scalar that is no object will do."""
        if isinstance(source, Mapping):
            pairs = list(source.entries.values())
        elif isinstance(source, Sequence):
            pairs = [Entry(str(n), item.start, item.end, item) for n, item in enumerate(source.items)]
        elif isinstance(source, Scalar) and isinstance(source.value, Date | bytes):
            numbers = source.value if isinstance(source.value, bytes) else b""
            byte_at = (source.source, source.start, source.end)
            pairs = [
                Entry(str(n), *at, Scalar(*byte_at, byte, plain=False)) for n, byte in enumerate(numbers)
            ]
        else:
            raise Unreadable("bad-merge", *at)
        self.merged += 1 + len(pairs)
        if self.merged > MAX_MERGED_KEYS:
            raise Unreadable("merge-bomb", *at)
        for pair in pairs:
            if pair.key not in entries:
                entries[pair.key] = Entry(pair.key, pair.key_start, pair.key_end, pair.value, merged=True)


def _word_name(word: str) -> str:
    """The property name of a plain key made of letters, which may be one of the words that mean a value."""
    return text_of(WORDS[word]) if word in WORDS else word
