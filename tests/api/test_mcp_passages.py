"""`memory_search` and `memory_get` among the tools of the Model Context Protocol, where transcripts are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from memagent.api.auth import May, Principal
from memagent.api.mcp import call, offered
from memagent.errors import BadRequest, Forbidden
from memagent.llm.script import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

ON = {"MEMAGENT_TRANSCRIPTS": "true"}
BOTH = {"memory_search", "memory_get"}


def caller(**given: Any) -> Principal:
    return Principal(**{"via": "test", "user": "ada", "may": frozenset({May.READ}), **given})


async def test_a_model_searches_and_reads_what_was_said(open_service: Callable[..., Any]) -> None:
    async with open_service(Answer("nothing"), environ=ON) as service:
        memory, ada = service.app.state.memory, service.as_user("ada")
        await ada.post("/v1/turns", json=service.turn("my cat is called Mochi"), params={"wait": "true"})
        assert {tool.name for tool in offered(memory)} > BOTH
        found = await call(memory, caller(), "memory_search", {"query": "what is my cat called"})
        assert [hit["citation"] for hit in found["results"]] == ["sessions/c1#L1-L1"]
        read = await call(memory, caller(), "memory_get", {"path": found["results"][0]["path"]})
        assert "my cat is called Mochi" in read["text"]
        other = await call(memory, caller(user="kim"), "memory_search", {"query": "what is my cat called"})
        assert other == {"results": []}
        with pytest.raises(Forbidden):
            await call(memory, caller(may=frozenset()), "memory_search", {"query": "cat"})


async def test_where_nothing_is_kept_there_is_nothing_to_search(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        memory = service.app.state.memory
        assert not BOTH & {tool.name for tool in offered(memory)}
        with pytest.raises(BadRequest):
            await call(memory, caller(), "memory_search", {"query": "cat"})
