"""mem0: what `get_all` answers, of the library (`{"results": […]}`) or of the platform (pages of the same, or a bare list).

A memory has `id`, `memory` (its text), `user_id`, `agent_id`, `run_id`, `metadata`; the platform adds `categories` and
`expiration_date`. Relations of its graph are no memories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memagent.service.imports.items import (
    Found,
    Incoming,
    LeftOut,
    counted,
    key_of,
    like,
    of_one_person,
    rows_of,
    text_at,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memagent.service.imports import Wanted


def knows(data: Any) -> bool:
    return like(data, ("results",), lambda row: isinstance(row.get("memory"), str) and "id" in row)


def read(data: Any, wanted: Wanted) -> Found:
    """One text is one memory, named by its category and its first words. What ends on a date is left out: nothing here does."""
    found = Found()
    elsewhere = []
    for row in of_one_person(rows_of(data, "results") or [], owner_of, wanted.owner, found):
        text, agent = text_at(row, "memory").strip(), text_at(row, "agent_id")
        if agent != wanted.agent:
            where = f"agent {agent}: `--agent {agent}`" if agent else "no agent: leave `--agent` out"
            elsewhere.append(("other_partition", f"{{count}} memories are of {where} imports them"))
        elif not text:
            found.left_out.append(LeftOut(text_at(row, "id"), "not_a_memory", "it has no text"))
        elif row.get("expiration_date"):
            found.left_out.append(
                LeftOut(text_at(row, "id"), "expires", "it ends on a date, and no memory here does")
            )
        else:
            found.items.append(Incoming(key_of(text, under=category_of(row)), text, named=False))
    relations = data.get("relations") if isinstance(data, dict) else None
    if isinstance(relations, list) and relations:
        elsewhere += [("not_a_memory", "{count} relations of mem0's graph say nothing by themselves")] * len(
            relations
        )
    counted(found, elsewhere)
    return found


def owner_of(row: Mapping[str, Any]) -> str:
    return text_at(row, "user_id")


def category_of(row: Mapping[str, Any]) -> str:
    """The first of the platform's categories, or the category that an application kept in the metadata."""
    categories = row.get("categories")
    metadata = row.get("metadata")
    first = categories[0] if isinstance(categories, list) and categories else None
    kept = metadata.get("category") if isinstance(metadata, dict) else None
    return next((each for each in (first, kept) if isinstance(each, str)), "")
