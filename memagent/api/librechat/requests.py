"""What a request says, and whether it can stand: LibreChat's checks, in its order and words (spec/librechat.md §5)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from memagent.admission import utf16_length
from memagent.errors import BadRequest, NotFound
from memagent.memory import MAX_KEY_CHARS
from memagent.turn import LONE_SURROGATE, MAX_ID_CHARS

if TYPE_CHECKING:
    from memagent.config.settings import MemorySettings

MAX_BODY_BYTES = 100 * 1024
"""Of these routes in LibreChat."""
DEFAULT_CHAR_LIMIT = 10_000
"""What LibreChat takes a limit of zero for."""

_KEY = re.compile(r"[a-z_]+")
_PARALLEL_AGENT = re.compile(r"____\d+$")


async def given(request: Request) -> Mapping[str, Any]:
    """The JSON object of the body; what is no object says nothing. Raises `BadRequest` for what is no JSON."""
    raw = await request.body()
    if len(raw) > MAX_BODY_BYTES:
        raise HTTPException(413, f"The request is larger than {MAX_BODY_BYTES // 1024} kB.")
    try:
        found = json.loads(raw) if raw.strip() else {}
    except (ValueError, RecursionError):
        raise BadRequest("The request is not valid JSON.") from None
    return found if isinstance(found, dict) else {}


Given = Annotated[Mapping[str, Any], Depends(given)]


def partition(named: Any) -> str:
    """The partition of an agent that a request names; only a text names one (spec/librechat.md §4.2, §5).

    Which agents there are, LibreChat knows and we do not: a partition that was never written to is empty.
    """
    agent = _PARALLEL_AGENT.sub("", named.strip()) if isinstance(named, str) else ""
    if len(agent) > MAX_ID_CHARS or LONE_SURROGATE.search(agent):
        raise NotFound("Agent not found.")
    return agent


async def asked_partition(request: Request) -> str:
    """`?agentId=`; twice is an array, which names none."""
    named = request.query_params.getlist("agentId")
    return partition(named[0]) if len(named) == 1 else ""


Partition = Annotated[str, Depends(asked_partition)]


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks of one configuration; every one raises `BadRequest` in LibreChat's words."""

    memory: MemorySettings

    @property
    def char_limit(self) -> int:
        return self.memory.char_limit or DEFAULT_CHAR_LIMIT

    def value(self, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise BadRequest("Value is required and must be a non-empty string.")
        return value

    def key_length(self, key: str) -> None:
        if (length := utf16_length(key)) > MAX_KEY_CHARS:
            raise BadRequest(
                f"Key exceeds maximum length of {MAX_KEY_CHARS} characters. Current length: {length} characters."
            )

    def key_format(self, key: str) -> None:
        """A key that is to be: one of `validKeys`, which may look like anything, or what LibreChat takes for a key."""
        if key not in self.memory.valid_keys and not _KEY.fullmatch(key):
            raise BadRequest("Key must only contain lowercase letters and underscores.")

    def value_length(self, value: str) -> None:
        if (length := utf16_length(value)) > self.char_limit:
            raise BadRequest(
                f"Value exceeds maximum length of {self.char_limit} characters. Current length: {length} characters."
            )

    def tokens(self, *, held: int, before: int, after: int) -> None:
        """`held` are all tokens of the partition, `before` those of them that `after` replaces."""
        limit = self.memory.token_limit
        if limit and held - before + after > limit:
            raise BadRequest(
                f"Adding this memory would exceed the token limit of {limit}. Current usage: {held} tokens."
            )
