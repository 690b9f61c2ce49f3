"""Plain values of a node tree: dicts, lists and scalars, without places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memagent.config.nodes import Mapping, Scalar, Sequence

if TYPE_CHECKING:
    from memagent.config.nodes import Node


def value_of(node: Node | None) -> Any:
    """What stands below `node`; an anchor's value is one object wherever its aliases stand, so a small file stays small."""
    return _value(node, {})


def _value(node: Node | None, seen: dict[int, Any]) -> Any:
    if node is None or id(node) in seen:
        return seen.get(id(node))
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        items: list[Any] = []
        seen[id(node)] = items
        items.extend(_value(item, seen) for item in node.items)
        return items
    entries: dict[str, Any] = {}
    seen[id(node)] = entries
    if isinstance(node, Mapping):
        entries.update((key, _value(entry.value, seen)) for key, entry in node.entries.items())
    return entries
