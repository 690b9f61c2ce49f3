"""Redis agent-memory-server: its memory records, as a search answers them (`{"memories": […], "total": …}`) or as a list.

A record has `id`, `text`, `user_id`, `topics`, `entities` and a `memory_type`: `semantic` and `episodic` ones are memories,
a `message` is a line of a chat. A working memory's own `memories` are such records too.
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
    return like(data, ("memories",), lambda row: isinstance(row.get("text"), str) and "id" in row)


def read(data: Any, wanted: Wanted) -> Found:
    """One text is one memory, named by its first topic and its first words; an event's date is put behind its words."""
    found = Found()
    lines = []
    for row in of_one_person(
        rows_of(data, "memories") or [], lambda row: text_at(row, "user_id"), wanted.owner, found
    ):
        text = text_at(row, "text").strip()
        if row.get("memory_type") == "message":
            lines.append(("not_a_memory", "{count} records are lines of a chat, not memories"))
        elif text:
            found.items.append(Incoming(key_of(text, under=topic_of(row)), dated(text, row), named=False))
        else:
            found.left_out.append(LeftOut(text_at(row, "id"), "not_a_memory", "it has no text"))
    counted(found, lines)
    return found


def topic_of(row: Mapping[str, Any]) -> str:
    topics = row.get("topics")
    first = topics[0] if isinstance(topics, list) and topics else ""
    return first if isinstance(first, str) else ""


def dated(text: str, row: Mapping[str, Any]) -> str:
    """The words of an event with its day, unless they say it themselves."""
    day = text_at(row, "event_date")[:10]
    return text if not day or day in text else f"{text} ({day})"
