"""LibreChat: its collection of memory entries as `mongoexport` writes it, or what `GET /api/memories` answers.

An entry has `key`, `value`, `userId` and, in an agent's partition, `agentId` (spec/librechat.md §6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memagent.service.imports.items import (
    Found,
    Incoming,
    LeftOut,
    counted,
    like,
    of_one_person,
    rows_of,
    text_at,
)

if TYPE_CHECKING:
    from memagent.service.imports import Wanted


def knows(data: Any) -> bool:
    return like(data, ("memories",), lambda row: isinstance(row.get("key"), str) and "value" in row) or (
        isinstance(data, dict) and data.get("memories") == [] and "tokenLimit" in data
    )


def read(data: Any, wanted: Wanted) -> Found:
    """Entries of the asked partition; the other partitions are named, so that they can be imported one by one."""
    found = Found()
    elsewhere = []
    for row in of_one_person(
        rows_of(data, "memories") or [], lambda row: text_at(row, "userId"), wanted.owner, found
    ):
        key, value, agent = text_at(row, "key"), text_at(row, "value"), text_at(row, "agentId")
        if agent != wanted.agent:
            where = f"agent {agent}: `--agent {agent}`" if agent else "the shared pool: leave `--agent` out"
            elsewhere.append(("other_partition", f"{{count}} memories are of {where} imports them"))
        elif row.get("contentFilterBlocked"):
            found.left_out.append(
                LeftOut(key, "not_a_memory", "LibreChat's content filter hid its words from this answer")
            )
        elif key and value:
            found.items.append(Incoming(key, value))
        else:
            found.left_out.append(LeftOut(key, "not_a_memory", "an entry needs a key and a value"))
    counted(found, elsewhere)
    return found
