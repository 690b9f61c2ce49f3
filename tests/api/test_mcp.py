"""Memory as tools of MCP: the SDK's own client against a real server over HTTP, and against a real process over stdio."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from memagent.api.auth import USER_HEADER
from memagent.memory import Scope, ScopeKind, Source
from memagent.service import hands
from memagent.store import SetMemory
from memagent.store.embedded import EmbeddedRedis
from tests.api.gateway.conftest import listening, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.api.conftest import Service

MODES = ("auto", "legacy")
"""The protocol of mid-2026, which knows no handshake, and the one that LibreChat's client speaks."""


@asynccontextmanager
async def talking(
    service: Service, user: str = "ada", *, key: str = "backend", mode: str = "auto"
) -> AsyncIterator[Client]:
    """A client of the SDK before a real server."""
    headers = {"Authorization": f"Bearer {service.keys[key]}", USER_HEADER: user}
    app = _running(service)
    with listening() as (bound, address):
        async with (
            serving(app, bound),
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as client,
        ):
            yield client


def _running(service: Service) -> Any:
    """The application of a service whose lifespan runs already."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            return await service.app(scope, receive, send)
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        return await send({"type": "lifespan.shutdown.complete"})

    app.state = service.app.state  # type: ignore[attr-defined]
    return app


def text_of(result: Any) -> str:
    [content] = result.content
    return content.text


async def told(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers, the same as data and as text."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert json.loads(text_of(result)) == result.structured_content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return text_of(result)


@pytest.mark.parametrize("mode", MODES)
async def test_a_model_writes_finds_lists_and_deletes(open_service: Callable[..., Any], mode: str) -> None:
    async with open_service() as service, talking(service, mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == {
            "search_memory",
            "list_memories",
            "set_memory",
            "delete_memory",
        }

        written = await told(client, "set_memory", key="Home Town", value="Ada lives in Porto.")
        assert written["remembered"] == "home_town"
        await told(client, "set_memory", key="diet", value="Ada eats no meat.")
        found = await told(client, "search_memory", query="Ada lives in Porto")
        assert found["memories"][0] == {
            "key": "home_town",
            "value": "Ada lives in Porto.",
            "updated": "2026-03-02",
        }
        assert "not instructions" in found["about"]
        assert {each["key"] for each in (await told(client, "list_memories"))["memories"]} == {
            "home_town",
            "diet",
        }
        assert await told(client, "delete_memory", key="diet") == {"deleted": "diet"}
        assert (await told(client, "search_memory", query="zzzz qqqq"))["memories"] == []


async def test_what_a_model_writes_is_not_protected_as_a_persons_hand_would(
    open_service: Callable[..., Any],
) -> None:
    async with open_service() as service, talking(service) as client:
        await told(client, "set_memory", key="diet", value="Ada eats no meat.")
        memory = await service.app.state.memory.get("ada", "diet")
        assert (memory.source, memory.protected, memory.trusted) == (Source.AGENT, False, True)


async def test_what_is_not_confirmed_is_marked(open_service: Callable[..., Any]) -> None:
    async with open_service() as service, talking(service) as client:
        scope = Scope(ScopeKind.USER, "ada")
        ports = service.app.state.memory.ports
        edit = SetMemory("job", "Ada is the queen.", 5, source=Source.TOOL, trusted=False)
        await ports.store.apply(scope, [edit], limits=hands.limits(ports, scope), now=ports.clock())
        [listed] = (await told(client, "list_memories"))["memories"]
        assert listed["unconfirmed"] is True
        assert (await told(client, "search_memory", query="Ada is the queen."))["memories"] == []


async def test_errors_say_what_to_do(open_service: Callable[..., Any]) -> None:
    extra = "validKeys: [diet, home]\ncharLimit: 30\ntokenLimit: 8"
    async with open_service(extra=extra) as service, talking(service) as client:
        [schema] = [
            tool.input_schema for tool in (await client.list_tools()).tools if tool.name == "set_memory"
        ]
        assert schema["properties"]["key"]["enum"] == ["diet", "home"]
        await told(client, "set_memory", key="diet", value="Ada eats no meat.")

        assert "diet, home" in await refused(client, "set_memory", key="pets", value="Ada has a cat.")
        assert "30 characters" in await refused(client, "set_memory", key="home", value="x" * 31)
        assert "delete_memory" in await refused(client, "set_memory", key="home", value="Porto, by the sea.")
        assert "`diet`" in await refused(client, "delete_memory", key="home")
        assert "value" in await refused(client, "set_memory", key="home")
        assert "search_memory" in await refused(client, "forget_everything")


async def test_a_user_is_nobody_elses(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        await service.app.state.memory.put("bob", "diet", "Bob eats everything.")
        async with talking(service, "ada") as client:
            assert (await told(client, "list_memories"))["memories"] == []
            assert "no memory" in await refused(client, "delete_memory", key="diet")


async def test_tools_are_listed_before_anybody_is_there_and_called_by_nobody(
    open_service: Callable[..., Any],
) -> None:
    # LibreChat asks for the tools at its start, when no user stands in the placeholder's place.
    async with open_service() as service, talking(service, "{{LIBRECHAT_USER_ID}}") as client:
        assert len((await client.list_tools()).tools) == 4
        assert USER_HEADER in await refused(client, "list_memories")


async def test_a_key_for_reading_does_not_write(open_service: Callable[..., Any]) -> None:
    async with open_service() as service, talking(service, key="read") as client:
        assert (await told(client, "list_memories"))["memories"] == []
        assert "`write`" in await refused(client, "set_memory", key="diet", value="Ada eats no meat.")


async def test_without_a_credential_there_is_no_protocol(open_service: Callable[..., Any]) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    async with open_service() as service:
        accept = {"Accept": "application/json, text/event-stream"}
        for headers in ({}, {"Authorization": "Bearer mk_unknown", USER_HEADER: "ada"}):
            answer = await service.client(**accept, **headers).post("/mcp", json=call)
            assert answer.status_code == 401
        assert (await service.as_user("ada").get("/mcp")).status_code == 405


async def test_a_user_who_switched_memory_off_has_none_here(open_service: Callable[..., Any]) -> None:
    async with open_service() as service, talking(service) as client:
        await told(client, "set_memory", key="diet", value="Ada eats no meat.")
        await service.app.state.memory.set_personalization("ada", on=False)
        for tool, arguments in {
            "search_memory": {"query": "meat"},
            "list_memories": {},
            "set_memory": {"key": "pets", "value": "Ada has a cat."},
        }.items():
            assert "switched" in await refused(client, tool, **arguments)
        assert await told(client, "delete_memory", key="diet") == {"deleted": "diet"}


async def test_a_store_that_is_away_is_said_in_words(
    open_service: Callable[..., Any], tmp_path: Path
) -> None:
    redis = await EmbeddedRedis.open(tmp_path / "own")
    async with open_service(environ={"MEMAGENT_REDIS_URL": redis.url}) as service, talking(service) as client:
        await told(client, "set_memory", key="diet", value="Ada eats no meat.")
        await redis.close()
        assert "go on without it" in await refused(client, "search_memory", query="meat")
        redis = await EmbeddedRedis.open(tmp_path / "own")
    await redis.close()


async def test_over_stdio_it_serves_one_user(tmp_path: Path, redis_url: str) -> None:
    config = tmp_path / "librechat.yaml"
    config.write_text("version: '1.3.17'\nmemory:\n  disabled: false\n")
    environ = {
        "MEMAGENT_REDIS_URL": redis_url,
        "MEMAGENT_KEY_PREFIX": "t-mcp-stdio",
        "MEMAGENT_EMBEDDER": "hashed",
    }
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "memagent", "mcp", "--config", str(config), "--user", "juno"],
        env=environ,
    )
    async with Client(command) as client:
        assert len((await client.list_tools()).tools) == 4
        await told(client, "set_memory", key="cat", value="Juno's cat is called Mochi.")
        [found] = (await told(client, "search_memory", query="Juno's cat"))["memories"]
        assert found["value"] == "Juno's cat is called Mochi."
        await told(client, "delete_memory", key="cat")
