"""memory_search and memory_get answer whatever a model sends (O76, O77)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memagent.errors import EmbedderFault, StoreUnavailable
from memagent.sessions.memory_tools import MEMORY_GET, MEMORY_SEARCH, MemoryTools, unavailable
from memagent.sessions.turns import TurnIndex, Utterance
from tests.sessions.notes.note_cases import NOW, CountingEmbedder, index_with

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memagent.sessions.files import Workspace
    from memagent.sessions.notes import NoteIndex
    from memagent.sessions.vectors import VectorStore

    Write = Callable[[str, str], Path]

KEYS = {"path", "startLine", "endLine", "score", "snippet", "source", "citation"}


@pytest.fixture
async def tools(
    index: NoteIndex, vectors: VectorStore, embedder: CountingEmbedder, write: Write
) -> MemoryTools:
    write("MEMORY.md", "Juno's cat\nis called Mochi\n")
    await index.sync()
    turns = TurnIndex(vectors, embedder)
    await turns.say(
        "ann", [Utterance("s1", 1, "Ann", "Mochi ate the tuna", datetime(2026, 3, 1, tzinfo=UTC))]
    )
    await turns.say("ben", [Utterance("s1", 1, "Ben", "Mochi is mine", datetime(2026, 3, 1, tzinfo=UTC))])
    return MemoryTools("ann", clock=lambda: NOW, notes=index, turns=turns)


async def test_o76_results_have_path_lines_score_snippet_source_and_citation(tools: MemoryTools) -> None:
    answer = await tools.search({"query": "Mochi"})

    assert {result["citation"] for result in answer["results"]} == {"MEMORY.md#L1-L2", "sessions/s1#L1-L1"}
    assert all(result.keys() >= KEYS for result in answer["results"])
    assert {result["source"] for result in answer["results"]} == {"memory", "sessions"}
    assert answer["results"] == sorted(answer["results"], key=lambda result: -result["score"])
    json.dumps(answer)


async def test_o76_the_number_of_results_and_their_floor_can_be_asked_for(tools: MemoryTools) -> None:
    assert len((await tools.search({"query": "Mochi", "maxResults": 1}))["results"]) == 1
    assert len((await tools.search({"query": "Mochi", "maxResults": -5}))["results"]) == 1
    assert len((await tools.search({"query": "what about Mochi then", "minScore": 1}))["results"]) == 2
    assert (await tools.search({"query": "vacuum Mochi", "minScore": 1.0}))["results"] == []


async def test_o76_citations_are_for_direct_chats(index: NoteIndex, write: Write) -> None:
    write("MEMORY.md", "Mochi")
    await index.sync()
    answer = await MemoryTools("ann", clock=lambda: NOW, notes=index, citations=False).search(
        {"query": "Mochi"}
    )

    assert answer["results"]
    assert all("citation" not in result for result in answer["results"])


async def test_o76_an_embedder_that_is_down_is_told_and_never_raised(
    tools: MemoryTools, embedder: CountingEmbedder
) -> None:
    embedder.down = True
    answer = await tools.search({"query": "Mochi"})

    assert (answer["results"], answer["disabled"], answer["unavailable"]) == ([], True, True)
    assert all(answer[name] for name in ("error", "warning", "action"))
    assert "quota" not in answer["warning"]


@pytest.mark.parametrize("told", ["HTTP 429", "insufficient_quota", "Rate limit reached"])
def test_o76_a_used_up_quota_is_named(told: str) -> None:
    assert "quota" in unavailable(EmbedderFault(told))["warning"]


def test_o76_a_store_that_is_away_is_named() -> None:
    assert "store" in unavailable(StoreUnavailable("away"))["warning"]


async def test_o76_a_store_that_is_away_is_told_and_never_raised(workspace: Workspace) -> None:
    from memagent.sessions.vectors.redis import RedisVectors

    store = RedisVectors.open("redis://127.0.0.1:1/0")
    tools = MemoryTools("ann", clock=lambda: NOW, notes=index_with(workspace, store, None))
    assert (await tools.search({"query": "Mochi"}))["unavailable"] is True
    await store.close()


async def test_o77_a_file_and_a_cited_turn_are_read(tools: MemoryTools) -> None:
    assert await tools.get({"path": "MEMORY.md"}) == {
        "path": "MEMORY.md",
        "text": "Juno's cat\nis called Mochi\n",
    }
    assert (await tools.get({"path": "MEMORY.md", "from": 2, "lines": 1}))["text"] == "is called Mochi"
    assert (await tools.get({"path": "sessions/s1", "from": 1}))[
        "text"
    ] == "2026-03-01 00:00 Ann: Mochi ate the tuna"
    assert await tools.get({"path": "memory/none.md"}) == {"path": "memory/none.md", "text": ""}


@pytest.mark.parametrize("path", ["../secret.md", "/etc/passwd", "memory/../../x.md", "README.md", ""])
async def test_o77_outside_of_memory_is_an_error_and_no_text(tools: MemoryTools, path: str) -> None:
    answer = await tools.get({"path": path})

    assert answer["text"] == ""
    assert "not a memory path" in answer["error"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("memory_search", "{"), ("memory_search", "[]"), ("memory_search", "{}"), ("memory_search", '{"query": 3}'),
        ("memory_search", '{"query": "x", "maxResults": "6"}'), ("memory_search", '{"query": "x", "minScore": NaN}'),
        ("memory_search", '{"query": "x", "more": 1}'), ("memory_get", "null"), ("memory_get", '{"path": null}'),
        ("memory_get", '{"path": "MEMORY.md", "from": 0}'), ("memory_get", '{"path": "MEMORY.md", "lines": true}'),
        ("memory_drop", "{}"),
    ],
)  # fmt: skip
async def test_o76_broken_calls_get_an_answer(tools: MemoryTools, name: str, arguments: str) -> None:
    assert (await tools.call(name, arguments))["error"]


async def test_o76_a_call_is_answered_by_its_tool(tools: MemoryTools) -> None:
    assert (await tools.call("memory_search", '{"query": "Mochi"}'))["results"]
    assert (await tools.call("memory_get", '{"path": "MEMORY.md"}'))["text"]


@pytest.mark.parametrize("spec", [MEMORY_SEARCH, MEMORY_GET])
def test_o76_the_tools_describe_their_arguments(spec: Any) -> None:
    Draft202012Validator.check_schema(dict(spec.parameters))


@given(
    st.one_of(
        st.text(),
        st.dictionaries(
            st.sampled_from(["query", "path", "from", "lines", "minScore"]),
            st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.lists(st.integers())),
        ).map(json.dumps),
    )
)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
async def test_o76_no_arguments_raise(workspace: Workspace, arguments: str) -> None:
    tools = MemoryTools("ann", clock=lambda: NOW)
    for name in ("memory_search", "memory_get"):
        assert isinstance(await tools.call(name, arguments), dict)
