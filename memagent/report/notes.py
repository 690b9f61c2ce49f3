"""Notes and turns that were found, as a person reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType


def found(answer: Mapping[str, Any]) -> RenderableType:
    """Each hit under its citation; says when the index is behind, and when there is nothing."""
    parts: list[RenderableType] = []
    for hit in answer["results"]:
        parts.append(Text(f"{hit['citation']}  {hit['score']:.2f}", style="bold"))
        parts.append(Text(hit["snippet"] + "\n"))
    if not parts:
        parts.append(Text("nothing found"))
    if answer.get("stale"):
        parts.append(Text(f"the index is behind ({answer['stale']}): search again later", style="yellow"))
    return Group(*parts)


def synced(done: Mapping[str, Any]) -> RenderableType:
    """One line on what a synchronisation did, and a line for each file that could not be read."""
    counts = f"{done['embedded']} texts embedded, {done['reused']} known"
    line = f"{done['files']} files: {len(done['changed'])} changed, {len(done['removed'])} removed; {counts}"
    lost = [Text(f"cannot be read: {path}", style="yellow") for path in done["unreadable"]]
    return Group(Text(f"{line}; built anew" if done["rebuilt"] else line), *lost)
