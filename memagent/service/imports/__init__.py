"""Memories on their way in from elsewhere: one module per format, and telling them apart.

A reader takes what it knows and says of every other item why not; nothing is cut and nothing is guessed. A file may hold the
memories of many people: only one person's are ever read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from memagent.errors import BadRequest
from memagent.service.imports import agent_memory_server, librechat, mem0, openclaw, own
from memagent.service.imports.items import MAX_MEMORIES, Found, Incoming, LeftOut

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["Format", "Found", "Incoming", "LeftOut", "Wanted", "decode", "read"]


class Format(StrEnum):
    MEMAGENT = "memagent"
    LIBRECHAT = "librechat"
    MEM0 = "mem0"
    AGENT_MEMORY_SERVER = "agent-memory-server"
    OPENCLAW = "openclaw"


READERS: dict[Format, ModuleType] = {
    Format.MEMAGENT: own,
    Format.LIBRECHAT: librechat,
    Format.MEM0: mem0,
    Format.AGENT_MEMORY_SERVER: agent_memory_server,
    Format.OPENCLAW: openclaw,
}
"""Each has `knows(data)`, whether data is of its format, and `read(data, wanted)`. Where two could know it, the earlier does."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose memories of a file: `owner` as the file names them, None for the only person in it; `agent` is the partition."""

    owner: str | None = None
    agent: str = ""


def decode(content: bytes | str) -> Any:
    """JSON, JSON line by line as `mongoexport` writes it, or else the text as it is. Raises `BadRequest` for no UTF-8."""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(f"the file is not UTF-8 text: look at byte {error.start}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        return [json.loads(line) for line in lines] if lines else text
    except (ValueError, RecursionError):
        return text


def read(data: Any, format: Format | None, wanted: Wanted) -> tuple[Format, Found]:  # noqa: A002  the word for it
    """The memories in decoded data, and what format that is; None finds it out. Raises `BadRequest` when none fits."""
    if format is None:
        format = next((each for each, reader in READERS.items() if reader.knows(data)), None)  # noqa: A001
    if format is None or not READERS[format].knows(data):
        looked = "any format that can be read here" if format is None else f"the format `{format}`"
        raise BadRequest(f"this is not of {looked}: name one of {', '.join(Format)}")
    found: Found = READERS[format].read(data, wanted)
    if len(found.items) > MAX_MEMORIES:
        raise BadRequest(
            f"these are {len(found.items):,} memories, and {MAX_MEMORIES:,} are more than any list holds"
        )
    return format, found
