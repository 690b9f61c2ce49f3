"""memagent's own export: `{"memagent": 1, "user": …, "memories": […]}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memagent.errors import BadRequest
from memagent.service.imports.items import Found, Incoming

if TYPE_CHECKING:
    from memagent.service.imports import Wanted

VERSION = 1


def knows(data: Any) -> bool:
    return isinstance(data, dict) and "memagent" in data


def read(data: Any, _: Wanted) -> Found:
    """Whole or not at all: what memagent wrote has no faults, so a fault is a sign of a damaged file."""
    if data["memagent"] != VERSION:
        raise BadRequest(f"this export is of version {data['memagent']!r}, and {VERSION} can be read")
    rows = data.get("memories")
    if not isinstance(rows, list):
        raise BadRequest("`memories` is not a list of memories")
    found = Found()
    for index, row in enumerate(rows):
        if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in ("key", "value")):
            raise BadRequest(f"memories.{index}: `key` and `value` must be texts")
        tags = row.get("tags") or []
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise BadRequest(f"memories.{index}.tags: not a list of texts")
        trusted = row.get("trusted", True) is not False
        found.items.append(Incoming(row["key"], row["value"], tuple(tags), trusted))
    return found
