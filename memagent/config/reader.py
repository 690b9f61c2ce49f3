"""The reader: text to nodes, accepting exactly the texts that js-yaml 4.3 accepts and meaning by them what it means.

A reader of our own because none of Python's has this grammar: libyaml refuses tabs, long keys and loose indentation that
js-yaml takes, takes duplicate keys and comments that js-yaml refuses, and costs more to import than this costs to run.
Built in four steps: `cursor` (white space), `styles` (scalars), `collections` (what holds nodes), and here the nodes.

Raises `Unreadable` and nothing else. What to tell a person about it is `memagent.config.syntax`'s business.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final

from memagent.config.collections import BLOCK_IN, BLOCK_OUT, FLOW_IN, FLOW_OUT, MAX_NODES, Collections
from memagent.config.cursor import END, Mark, Unreadable
from memagent.config.nodes import Mapping, Node, Scalar, Sequence
from memagent.config.properties import MERGE, Tag, apply_tag, read_name, read_tag
from memagent.config.scalars import resolve
from memagent.config.styles import block, double_quoted, plain, single_quoted

if TYPE_CHECKING:
    from memagent.config.nodes import Source

MAX_DEPTH: Final = 100
"""js-yaml's own limit of nesting; ours for nesting through aliases too."""


class Anchored:
    """What an anchor names: a node once it is read; until then an alias to it would be a circle.

    `size` and `height` are its nodes and nesting with every alias written out.
    """

    __slots__ = ("height", "node", "size")

    def __init__(self) -> None:
        self.node: Node | None = None
        self.size = 0
        self.height = 0


class Properties:
    """The tag and anchor in front of a node, and where the cursor stood before them."""

    __slots__ = ("anchor", "mark", "start", "tag")

    def __init__(self, mark: Mark) -> None:
        self.mark = mark
        self.start = mark.pos
        self.tag: Tag | None = None
        self.anchor: str | None = None


class Reader(Collections):
    """Reads nodes. `count` is how many there are, `height` how deep they nest, both with every alias written out."""

    __slots__ = ("anchors", "depth", "handles", "height")

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.anchors: dict[str, Anchored] = {}
        self.handles: dict[str, str] = {}
        self.depth = 0
        self.height = 0

    def compose(self, parent_indent: int, context: int, *, seek: bool, compact: bool) -> Node | None:
        """One node with its properties, or None where none stands.

        `parent_indent` is the column of the collection around it, `seek` goes over white space first, `compact` allows a
        block collection on this very line.
        """
        if self.depth >= MAX_DEPTH:
            raise Unreadable("too-deep", self.pos)
        if self.count > MAX_NODES:
            raise Unreadable("too-many-nodes", self.pos)
        self.depth += 1
        self.count += 1
        if self.height < self.depth:  # noqa: PLR1730 - max() costs more, and this runs for every node
            self.height = self.depth
        self.is_merge = False
        new_line = seek and self.skip()
        above = _compare(self.line_indent, parent_indent) if new_line else 1
        if above == 1 and self.text[self.pos] in "!&":
            node = self.dressed(parent_indent, context, new_line=new_line)
        else:
            blocks = context >= BLOCK_IN and (new_line or compact)
            node = self.content(parent_indent, context, above, blocks=blocks)
        self.depth -= 1
        return node

    def content(
        self, parent_indent: int, context: int, above: int, *, blocks: bool, props: Properties | None = None
    ) -> Node | None:
        """A node, read without its properties. `above` says how this line is indented against the parent: 1 more, 0 the same."""
        if above < 1:
            # A sequence may stand at the indentation of the key that it belongs to.
            same = above == 0 and context == BLOCK_OUT and blocks
            return self.block_sequence(self.pos - self.line_start) if same else None
        indent = parent_indent if context <= FLOW_OUT else parent_indent + 1
        if blocks:
            column = self.pos - self.line_start
            node = self.block_sequence(column) or self.block_mapping(column, indent)
            if node is not None:
                return node
        if self.text[self.pos] in "[{":
            return self.flow(indent)
        return self.scalar(indent, context, props)

    def scalar(  # noqa: PLR0911 - one for each style
        self, indent: int, context: int, props: Properties | None
    ) -> Node | None:
        """A scalar or an alias. Plain text stays unresolved under a tag."""
        start, char = self.pos, self.text[self.pos]
        if char == '"':
            value = double_quoted(self)
            return Scalar(self.source, start, self.pos, value, plain=False)
        if char == "'":
            value = single_quoted(self)
            return Scalar(self.source, start, self.pos, value, plain=False)
        if char in "|>":
            if context < BLOCK_IN:
                return None
            value, end = block(self, indent)
            return Scalar(self.source, start, end, value, plain=False)
        if char == "*":
            return self.alias(props)
        found = plain(self, indent, in_flow=context == FLOW_IN)
        if found is None:
            return None
        text, end = found
        if props is not None and props.tag is not None:
            return Scalar(self.source, start, end, text, plain=True)
        self.is_merge = text == "<<"
        return Scalar(self.source, start, end, resolve(text), plain=True)

    def alias(self, props: Properties | None) -> Node:
        """The node that an alias names, standing here."""
        start = self.pos
        name = read_name(self)
        end = self.pos
        anchored = self.anchors.get(name)
        if anchored is None:
            raise Unreadable("unknown-alias", start, end, name=name)
        if props is not None:
            raise Unreadable("alias-with-properties", start, end, name=name)
        node = anchored.node
        if node is None:
            raise Unreadable("recursive-alias", start, end, name=name)
        self.count += anchored.size
        self.height = max(self.height, self.depth + anchored.height)
        if self.count > MAX_NODES or self.height > MAX_DEPTH:
            raise Unreadable("alias-bomb", start, end, name=name)
        self.skip()
        if isinstance(node, Scalar):
            return Scalar(node.source, start, end, node.value, plain=False)
        if isinstance(node, Sequence):
            return Sequence(node.source, start, end, node.items, node.flow)
        assert isinstance(node, Mapping)  # noqa: S101 - there is no fourth kind of node
        return Mapping(node.source, start, end, node.entries, node.flow)

    def dressed(self, parent_indent: int, context: int, *, new_line: bool) -> Node | None:
        """A node with a tag, an anchor or both."""
        props, above, blocks = self.properties(parent_indent, new_line=new_line)
        styles = context >= BLOCK_IN
        blocks = blocks and styles
        outer = self.anchors.get(props.anchor or "")
        anchored, height, count = Anchored(), self.height, self.count
        self.height = self.depth
        if props.anchor is not None:
            self.anchors[props.anchor] = anchored
        may_be_key = above == 1 and styles and not blocks and self.text[self.pos] not in "|>[{"
        if may_be_key and self.text.find(":", self.pos, self.line_end(self.pos)) >= 0:
            node = self.first_key(props, parent_indent + 1, outer)
        else:
            node = None
        if node is None:
            start = self.pos
            node = self.bare(parent_indent, context, above, props, blocks=blocks)
            if props.tag is not None:
                node = self.tagged(props.tag, node, start)
            elif node is None and props.anchor is not None:
                node = Scalar(self.source, start, start, None, plain=True)
            if props.anchor is not None:
                anchored.node, anchored.size = node, self.count - count + 1
                anchored.height = self.height - self.depth
        self.height = max(self.height, height)
        return node

    def properties(self, parent_indent: int, *, new_line: bool) -> tuple[Properties, int, bool]:
        """The properties that stand here, how what follows is indented, and whether it stands on a line of its own."""
        props = Properties(self.mark())
        above, alone = 1, False
        while self.text[self.pos] in "!&":
            is_tag = self.text[self.pos] == "!"
            if (props.tag if is_tag else props.anchor) is not None:
                if new_line:
                    # On a line of its own, a second property belongs to the first key of a mapping.
                    break
                raise Unreadable("second-property", self.pos)
            if is_tag:
                props.tag = read_tag(self, self.handles)
            else:
                props.anchor = read_name(self)
            alone = self.skip()
            if alone:
                new_line = True
                above = _compare(self.line_indent, parent_indent)
        return props, above, alone

    def bare(
        self, parent_indent: int, context: int, above: int, props: Properties, *, blocks: bool
    ) -> Node | None:
        """The node behind its properties, which js-yaml forgets where it looked for a mapping and found no key.

        The anchor then names what that mapping would have become.
        """
        if above == 1 and not blocks and self.text[self.pos] not in "[{":
            return self.scalar(parent_indent if context <= FLOW_OUT else parent_indent + 1, context, props)
        start, looked = self.pos, above == 1 and blocks and self.first_tab < 0 and self.text[self.pos] != END
        kept = None if looked else props
        node = self.content(parent_indent, context, above, blocks=blocks, props=kept)
        if looked and (node is None or self.text[start] in "|>"):
            if props.anchor is not None:
                empty = Mapping(self.source, start, start, {}, flow=False)
                self.anchors[props.anchor].node = empty
            props.tag = props.anchor = None
        return node

    def first_key(self, props: Properties, indent: int, outer: Anchored | None) -> Node | None:
        """The mapping whose first key the properties belong to (`&a key: value`), or None where there is none."""
        here, count, anchor = self.mark(), self.count, props.anchor
        mine = self.anchors.pop(anchor) if anchor is not None else None
        if anchor is not None and outer is not None:
            self.anchors[anchor] = outer
        self.restore(props.mark)
        node = self.block_mapping(props.mark.pos - props.mark.line_start, indent)
        if isinstance(node, Mapping):
            return node
        # Only a scalar was read, so no other anchor can have changed.
        self.restore(here)
        self.count = count
        if anchor is not None and mine is not None:
            self.anchors[anchor] = mine
        return None

    def tagged(self, tag: Tag, node: Node | None, start: int) -> Node:
        """`node`, which starts at `start`, as its tag has it."""
        place = Scalar(self.source, start, start, None, plain=True)
        self.is_merge = tag.text == MERGE
        if tag.text == "!":
            return node or place
        if tag.text != "?":
            return apply_tag(tag, node, place)
        # The tag that plain scalars get by themselves can be written out: `!<?> "1"` is a number. What is one already
        # makes js-yaml stumble.
        if node is not None and (
            not isinstance(node, Scalar)
            or (node.start == node.end and node.value is not None)
            or type(node.value) is int
            or (isinstance(node.value, float) and isfinite(node.value))
        ):
            raise tag.refused("wrong-tag")
        if node is not None and isinstance(node.value, str):
            self.is_merge = node.value == "<<"
            node.value = resolve(node.value)
        return node or place


def _compare(left: int, right: int) -> int:
    return (left > right) - (left < right)
