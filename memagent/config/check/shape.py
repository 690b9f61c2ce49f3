"""What LibreChat's schema knows about a place of the file: its keys, and where else a key would be known."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from memagent.config.librechat.root import ROOT
from memagent.config.nodes import Mapping
from memagent.config.spelling import fold
from memagent.config.zod import (
    Anything,
    Both,
    Default,
    Lazy,
    List,
    Needed,
    Nullable,
    Object,
    Piped,
    Record,
    Refined,
    Run,
    Tagged,
    Transformed,
    Union,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memagent.config.check.draft import Path
    from memagent.config.nodes import Node
    from memagent.config.zod import Schema

EVERYWHERE = frozenset(
    {"enabled", "disabled", "name", "title", "description", "url", "type", "default", "timeout", "headers"}
)
"""Names that mean something else in every block: none of them is a key that went astray."""

MAX_PLACES = 3
"""A name that is known in more places than this says nothing about where it belongs."""

Shape: TypeAlias = tuple["Schema", ...]
"""The schemas that may hold at one place: several where a union leaves it open."""


def top() -> Shape:
    return tuple(_bare(ROOT))


def below(shape: Shape, step: str | int) -> Shape:
    """The shape of a key or an item; empty where nothing is known there."""
    found: list[Schema] = []
    for schema in shape:
        if isinstance(schema, Object):
            child = schema.fields.get(str(step))
            found += _bare(child) if child else ()
        elif isinstance(schema, Record) and isinstance(step, str):
            found += _bare(schema.value)
        elif isinstance(schema, List) and isinstance(step, int):
            found += _bare(schema.item)
        elif isinstance(schema, Anything):
            found.append(schema)
    return tuple(found)


def at(path: Path) -> Shape:
    shape = top()
    for step in path:
        shape = below(shape, step)
    return shape


def keys(shape: Shape) -> tuple[str, ...] | None:
    """The keys that are known at a place, in the schema's order; None where any key may stand."""
    objects = [schema for schema in shape if isinstance(schema, Object)]
    if not objects or any(isinstance(schema, (Record, Anything)) for schema in shape):
        return None
    return tuple(dict.fromkeys(name for schema in objects for name in schema.fields))


def is_strict(shape: Shape) -> bool:
    """Whether LibreChat refuses an unknown key here instead of dropping it."""
    return any(isinstance(schema, Object) and schema.strict for schema in shape)


def takes(shape: Shape, value: object) -> bool:
    """Whether a plain value fits one of the schemas as it is."""
    for schema in shape:
        run = Run({})
        schema.read(value, (), run)
        if not run.issues:
            return True
    return False


def places(name: str, node: Node, *, away_from: Path) -> list[Path]:
    """Where a key of that name is known: one level in, or outside, or from the top; empty if nowhere or all over."""
    if name in EVERYWHERE:
        return []
    if not away_from:
        found = _best(_sections().get(fold(name), []), node)
        return found if len(found) <= MAX_PLACES else []
    here = at(away_from)
    for child in keys(here) or ():
        if name in (keys(below(here, child)) or ()):
            return [(*away_from, child, name)]
    for length in range(len(away_from) - 1, -1, -1):
        place = away_from[:length]
        if name in (keys(at(place)) or ()):
            return [(*place, name)]
    return []


def _best(candidates: list[Path], node: Node) -> list[Path]:
    """The places that know most of what stands below the key."""
    if not isinstance(node, Mapping):
        return candidates
    known = {path: len(node.entries.keys() & set(keys(at(path)) or ())) for path in candidates}
    return [path for path in candidates if known[path] == max(known.values())]


@cache
def _sections() -> dict[str, list[Path]]:
    """Folded name to every section, at the top or one level in, that knows a key of that name."""
    index: dict[str, list[Path]] = {}
    for section in keys(top()) or ():
        shape = below(top(), section)
        for name in keys(shape) or ():
            index.setdefault(fold(name), []).append((section, name))
    return index


def _bare(schema: Schema) -> Iterator[Schema]:
    """The schemas that a wrapper, a union or a choice by tag comes down to."""
    if isinstance(schema, (Default, Needed, Nullable, Refined, Transformed, Piped)):
        yield from _bare(schema.inner)
    elif isinstance(schema, Lazy):
        yield from _bare(schema.make())
    elif isinstance(schema, Union):
        for option in schema.options:
            yield from _bare(option)
    elif isinstance(schema, Tagged):
        for option in schema.options.values():
            yield from _bare(option)
    elif isinstance(schema, Both):
        yield from _bare(schema.left)
        yield from _bare(schema.right)
    else:
        yield schema
