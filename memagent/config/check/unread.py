"""Keys that nobody reads: misspelt, in the wrong place, retired, or never there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.config.check import shape as shapes
from memagent.config.check.draft import dotted, inside, strictness
from memagent.config.findings import Fix, Level, LibreChat
from memagent.config.nodes import Mapping, Sequence
from memagent.config.spelling import AGENT_ALIASES, CUSTOM_ALIASES, MEMORY_ALIASES, fold, meant

if TYPE_CHECKING:
    from collections.abc import Mapping as MappingOf

    from memagent.config.check.draft import Draft, Path
    from memagent.config.check.shape import Shape
    from memagent.config.nodes import Entry, Node

RETIRED: MappingOf[str, frozenset[str]] = {
    "custom": frozenset({"summarize", "summaryModel", "forcePrompt", "userIdQuery", "addedEndpoints"}),
    "interface": frozenset({"endpointsMenu", "sidePanel"}),
}
"""Keys that LibreChat once read, by the block they stood in."""

POISON = ("reason", "stack")
"""LibreChat takes a file with one of these at the top level for a failed read (spec/librechat.md §2.1)."""

FEW_KEYS = 12
"""A block with more keys is not listed in a hint."""


def check_unread(draft: Draft) -> None:
    """Report every key that LibreChat drops in silence. What it refuses is in the verdict."""
    if draft.document.root is not None:
        _walk(draft, (), draft.document.root, shapes.top())


def report_refused(draft: Draft, path: Path, message: str) -> None:
    """Report the keys that a strict place refuses, one finding each."""
    node = draft.mapping(path)
    shape = shapes.at(path)
    known = shapes.keys(shape) or ()
    for key in node.entries if node else ():
        if key not in known and f"'{key}'" in message:
            _report(draft, (*path, key), known, shape, LibreChat.REJECTS)


def _walk(draft: Draft, path: Path, node: Node, shape: Shape) -> None:
    if not shape or draft.is_blamed(path):
        return
    if isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            _walk(draft, (*path, index), item, shapes.below(shape, index))
    elif isinstance(node, Mapping):
        known = shapes.keys(shape)
        for key, entry in node.entries.items():
            here = (*path, key)
            if known is None or key in known:
                _walk(draft, here, entry.value, shapes.below(shape, key))
            elif not shapes.is_strict(shape):
                _report(draft, here, known, shape, LibreChat.IGNORES)


def _report(draft: Draft, path: Path, known: tuple[str, ...], shape: Shape, librechat: LibreChat) -> None:
    entry = draft.entry(path)
    if entry is None or draft.is_blamed(path):
        return
    level = Level.ERROR if librechat is LibreChat.REJECTS else strictness(path)
    name = entry.key
    block = next((step for step in reversed(path[:-1]) if isinstance(step, str)), "")
    alias = _aliases(path[:-1]).get(fold(name))
    near = meant(name, known)
    if name in RETIRED.get(block, ()):
        _add_retired(draft, path, level, librechat)
    elif near and near.certain and alias is None:
        _add_misspelt(draft, path, entry, near.name, shape, level, librechat)
    elif (places := shapes.places(name, away_from=path[:-1])) and alias is None:
        _add_misplaced(draft, path, places, level, librechat)
    else:
        hint = alias or (f"a key with a similar name exists: `{near.name}`" if near else _known(known))
        notes = ()
        if len(path) == 1 and name in POISON:
            notes = (
                f"LibreChat takes a file with `{name}` at the top level for one it could not read, and ignores it whole",
            )
        draft.add(
            "MEM101",
            path,
            f"unknown key `{draft.quote(name)}` {inside(path[:-1])}",
            level=level,
            span=entry.key_span,
            librechat=librechat,
            helps=(hint,) if hint else (),
            notes=notes,
        )


def _aliases(parent: Path) -> MappingOf[str, str]:
    if parent == ("memory",):
        return MEMORY_ALIASES
    if parent == ("memory", "agent"):
        return AGENT_ALIASES
    return CUSTOM_ALIASES if parent[:2] == ("endpoints", "custom") and len(parent) == 3 else {}  # noqa: PLR2004  an entry's path


def _known(known: tuple[str, ...]) -> str:
    if not known or len(known) > FEW_KEYS:
        return ""
    return f"known here are {', '.join(f'`{name}`' for name in known)}"


def _add_retired(draft: Draft, path: Path, level: Level, librechat: LibreChat) -> None:
    draft.add(
        "MEM402",
        path,
        f"`{path[-1]}` {inside(path[:-1])} is no longer read by LibreChat",
        level=level,
        span=draft.key_span(path),
        librechat=librechat,
        helps=("remove it",),
    )


def _add_misspelt(
    draft: Draft, path: Path, entry: Entry, right: str, shape: Shape, level: Level, librechat: LibreChat
) -> None:
    target: Path = (*path[:-1], right)
    taken = draft.entry(target) is not None or target in draft.renamed
    certain = not taken and not entry.merged and shapes.takes(shapes.below(shape, right), entry.value)
    if certain:
        draft.renamed.add(target)
    span = entry.key_span
    written = draft.document.text[entry.key_start : entry.key_end]
    draft.add(
        "MEM101",
        path,
        f"unknown key `{draft.quote(entry.key)}` {inside(path[:-1])}",
        level=level,
        span=span,
        librechat=librechat,
        helps=(f"a key with a similar name exists: `{right}`",),
        notes=(f"`{right}` is set here as well, and is the one that counts",) if taken else (),
        fix=Fix(span, written.replace(entry.key, right), f"rename to `{right}`")
        if certain and entry.key in written
        else None,
    )


def _add_misplaced(draft: Draft, path: Path, places: list[Path], level: Level, librechat: LibreChat) -> None:
    homes = [f"`{dotted(place[:-1]) or 'the top level'}`" for place in places]
    homes = [home if home != "`the top level`" else "the top level" for home in homes]
    name = str(places[0][-1])
    renamed = f" as `{name}`" if name != path[-1] else ""
    where = f"`{path[-1]}` belongs {_under(homes)}{renamed}"
    draft.add(
        "MEM104",
        path,
        f"`{draft.quote(str(path[-1]))}` has no meaning {inside(path[:-1])}",
        level=level,
        span=draft.key_span(path),
        librechat=librechat,
        helps=(where,),
    )


def _under(homes: list[str]) -> str:
    told = [home if home == "the top level" else f"under {home}" for home in homes]
    told = [home.replace("the top level", "at the top level") for home in told]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} or {told[-1]}"
