"""Keys that nobody reads: misspelt, in the wrong place, retired, or never there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memagent.config.check import shape as shapes
from memagent.config.check.draft import dotted, inside, strictness
from memagent.config.document import plain
from memagent.config.findings import Fix, Level, LibreChat
from memagent.config.nodes import Mapping, Scalar, Sequence
from memagent.config.spelling import (
    AGENT_ALIASES,
    BUILT_IN_ALIASES,
    CUSTOM_ALIASES,
    MEMORY_ALIASES,
    fold,
    meant,
)

if TYPE_CHECKING:
    from collections.abc import Mapping as MappingOf

    from memagent.config.check.draft import Draft, Path
    from memagent.config.check.shape import Shape
    from memagent.config.nodes import Entry, Node

RETIRED_IN_ENDPOINTS = frozenset(
    {"summarize", "summaryModel", "forcePrompt", "userIdQuery", "addedEndpoints"}
)
RETIRED_IN_INTERFACE = frozenset({"endpointsMenu", "sidePanel"})
"""Keys that LibreChat once read there."""

POISON = (("reason",), ("stack",))
"""LibreChat takes a file with one of these keys for a failed read (spec/librechat.md §2.1)."""

POISONED = (
    "LibreChat takes a file with this key at the top level for one it could not read, and ignores it whole"
)

FEW_KEYS = 12
"""A block with more keys is not listed in a hint."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A key that its place does not know. `known` are the keys that it does know, `shape` what may hold there."""

    path: Path
    entry: Entry
    known: tuple[str, ...]
    shape: Shape
    librechat: LibreChat

    @property
    def parent(self) -> Path:
        return self.path[:-1]

    @property
    def level(self) -> Level:
        return Level.ERROR if self.librechat is LibreChat.REJECTS else strictness(self.path)


def check_unread(draft: Draft) -> None:
    """Report every key that LibreChat drops in silence. What it refuses is in the verdict."""
    if draft.document.root is not None:
        _walk(draft, (), draft.document.root, shapes.top())


def report_refused(draft: Draft, path: Path, _message: str) -> None:
    """Report the keys that a strict place refuses, one finding each."""
    node = draft.mapping(path)
    shape = shapes.at(path)
    known = shapes.keys(shape) or ()
    for key, entry in node.entries.items() if node else ():
        if key not in known:
            _report(draft, Unknown((*path, key), entry, known, shape, LibreChat.REJECTS))


def _walk(draft: Draft, path: Path, node: Node, shape: Shape) -> None:
    if shape and not draft.is_blamed(path):
        _descend(draft, path, node, shape)


def _descend(draft: Draft, path: Path, node: Node, shape: Shape) -> None:
    if isinstance(node, Sequence):
        each = shapes.below(shape, 0)
        for index, item in enumerate(node.items):
            if not isinstance(item, Scalar):
                _walk(draft, (*path, index), item, each)
    elif isinstance(node, Mapping):
        known = shapes.keys(shape)
        for key, entry in node.entries.items():
            here = (*path, key)
            if known is None or key in known:
                if not isinstance(entry.value, Scalar):
                    _walk(draft, here, entry.value, shapes.below(shape, key))
            elif not shapes.is_strict(shape):
                _report(draft, Unknown(here, entry, known, shape, LibreChat.IGNORES))


def _report(draft: Draft, unknown: Unknown) -> None:
    if draft.is_blamed(unknown.path):
        return
    name = unknown.entry.key
    alias = _aliases(unknown.parent).get(fold(name))
    near = meant(name, unknown.known)
    if name in _retired(unknown.parent):
        _add(
            draft,
            unknown,
            "MEM402",
            f"`{name}` {inside(unknown.parent)} is no longer read by LibreChat",
            "remove it",
        )
    elif near and near.certain and alias is None:
        _add_misspelt(draft, unknown, near.name)
        _descend(draft, unknown.path, unknown.entry.value, shapes.below(unknown.shape, near.name))
    elif (places := shapes.places(name, unknown.entry.value, away_from=unknown.parent)) and alias is None:
        said = f"`{draft.quote(name)}` has no meaning {inside(unknown.parent)}"
        _add(draft, unknown, "MEM104", said, _homes(name, places))
    else:
        hint = alias or (
            f"a key with a similar name exists: `{near.name}`" if near else _known(unknown.known)
        )
        _add(
            draft,
            unknown,
            "MEM101",
            _said(draft, unknown),
            hint,
            note=POISONED if unknown.path in POISON else "",
        )


def _add(
    draft: Draft,
    unknown: Unknown,
    code: str,
    message: str,
    hint: str,
    *,
    note: str = "",
    fix: Fix | None = None,
) -> None:
    draft.add(
        code,
        unknown.path,
        message,
        level=unknown.level,
        span=unknown.entry.key_span,
        librechat=unknown.librechat,
        helps=(hint,) if hint else (),
        notes=(note,) if note else (),
        fix=fix,
    )


def _said(draft: Draft, unknown: Unknown) -> str:
    return f"unknown key `{draft.quote(unknown.entry.key)}` {inside(unknown.parent)}"


def _retired(parent: Path) -> frozenset[str]:
    if parent == ("interface",):
        return RETIRED_IN_INTERFACE
    return RETIRED_IN_ENDPOINTS if parent[:1] == ("endpoints",) and len(parent) > 1 else frozenset()


def _aliases(parent: Path) -> MappingOf[str, str]:
    if parent == ("memory",):
        return MEMORY_ALIASES
    if parent == ("memory", "agent"):
        return AGENT_ALIASES
    if parent[:-1] == ("endpoints",):
        return BUILT_IN_ALIASES
    return CUSTOM_ALIASES if parent[:-1] == ("endpoints", "custom") else {}


def _known(known: tuple[str, ...]) -> str:
    if not known or len(known) > FEW_KEYS:
        return ""
    return f"known here are {', '.join(f'`{name}`' for name in known)}"


def _add_misspelt(draft: Draft, unknown: Unknown, right: str) -> None:
    target: Path = (*unknown.parent, right)
    entry = unknown.entry
    taken = draft.entry(target) is not None or target in draft.renamed
    fits = (
        not taken
        and not entry.merged
        and shapes.takes(shapes.below(unknown.shape, right), plain(entry.value))
    )
    written = draft.document.text[entry.key_start : entry.key_end]
    fix = None
    if fits and entry.key in written:
        draft.renamed.add(target)
        fix = Fix(entry.key_span, written.replace(entry.key, right), f"rename to `{right}`")
    note = f"`{right}` is set here as well, and is the one that counts" if taken else ""
    _add(
        draft,
        unknown,
        "MEM101",
        _said(draft, unknown),
        f"a key with a similar name exists: `{right}`",
        note=note,
        fix=fix,
    )


def _homes(name: str, places: list[Path]) -> str:
    """Where a key belongs, in words."""
    homes = [f"under `{dotted(place[:-1])}`" if place[:-1] else "at the top level" for place in places]
    told = homes[0] if len(homes) == 1 else f"{', '.join(homes[:-1])} or {homes[-1]}"
    right = str(places[0][-1])
    return f"`{name}` belongs {told}" + (f", as `{right}`" if right != name else "")
