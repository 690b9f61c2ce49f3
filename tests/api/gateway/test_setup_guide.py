"""The snippets of docs/librechat-setup.md, word for word: checked as LibreChat and as memagent do, and chatted through."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx2
import openai
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from memagent.api.app import create_app
from memagent.api.auth import May, new_key
from memagent.config.agents import AgentSpec
from memagent.config.check import check
from memagent.config.document import parse, plain
from memagent.config.endpoints import resolve_target
from memagent.config.findings import Level
from memagent.config.librechat.verdict import verdict
from memagent.config.placeholders import BodyIds, UserFields, render_headers
from memagent.config.settings import load_settings
from memagent.llm.script import Answer, Rule, Script, calling
from memagent.llm.scripted import ScriptedModel, ScriptedServer
from tests.api.conftest import SESSION_SECRET, clean
from tests.api.gateway.conftest import Door, listening, serving

GUIDE = (Path(__file__).parents[3] / "docs" / "librechat-setup.md").read_text(encoding="utf-8")
CHAT, TOOLS = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
OURS = "127.0.0.1:8900"
THEIRS = "https://gateway.example.org/v1"
ADA = UserFields("ada-id", {"name": "Čapek", "email": "ada@example.org"})
KNOWN = {"TEAM_GATEWAY_KEY": "team-key", "MEMORY_GATEWAY_KEY": "mk", "MEMORY_TOOLS_KEY": "mk"}


def test_the_snippets_are_right_for_librechat_and_for_memagent() -> None:
    for text, codes in ((CHAT, {"MEM305"}), (TOOLS, set())):
        document = parse(text.encode(), "librechat.yaml")
        assert verdict(document, {}).ok
        findings = check(document, environ=KNOWN, check_env=True)
        assert not [finding for finding in findings if finding.level is Level.ERROR]
        # MEM305 says what the guide says: memagent's agent runs, LibreChat's does not.
        assert {finding.code for finding in findings if finding.level is Level.WARNING} == codes


async def test_a_chat_set_up_by_the_guide_has_memory(redis_url: str, tmp_path: Path) -> None:
    rules = [
        Rule(
            (calling("set_memory", key="diet", value="Ada eats no meat."),), tools=True, user="I eat no meat"
        ),
        Rule((Answer("Noted."),)),
    ]
    script = Script(rules)
    chat_key, row = new_key("librechat", frozenset({May.TURNS}))
    tools_key, tools_row = new_key("librechat-tools", frozenset({May.READ, May.WRITE}))
    async with ScriptedServer(script, api_key="team-key") as behind:
        with listening() as (bound, address):
            text = CHAT.replace(OURS, address.removeprefix("http://")).replace(THEIRS, behind.base_url)
            config = tmp_path / "librechat.yaml"
            config.write_text(text, encoding="utf-8")
            prefix = f"t-{tmp_path.name}"[:30]
            environ = {
                "MEMAGENT_REDIS_URL": redis_url,
                "MEMAGENT_KEY_PREFIX": re.sub(r"[^A-Za-z0-9-]", "-", prefix),
                "MEMAGENT_EMBEDDER": "hashed",
                "MEMAGENT_RECALL_BUDGET_MS": "5000",
                "MEMAGENT_UPSTREAM": "Team Gateway",
                "MEMAGENT_API_KEYS": f"{row} {tools_row}",
                "MEMAGENT_SESSION_SECRET": SESSION_SECRET,
                "TEAM_GATEWAY_KEY": "team-key",
            }
            model = ScriptedModel(script)
            app = create_app(environ, config=config, models=lambda _: model)
            async with serving(app, bound):
                door = Door(app, address, behind, {})
                await librechat(config, "I eat no meat.", key=chat_key, message="m1")
                assert (await door.learned("ada-id", "m1")).receipt["set"] == ["diet"]
                await librechat(config, "What can I cook?", key=chat_key, message="m2")
                await door.learned("ada-id", "m2")
                first, second = behind.requests
                assert [each["role"] for each in first.body["messages"]] == ["user"]
                assert "Ada eats no meat." in second.body["messages"][0]["content"]
                assert second.headers["x-user-email"] == "ada@example.org"
                await tools(TOOLS.replace(OURS, address.removeprefix("http://")), key=tools_key)
                await clean(app.state.memory.ports.store.client, environ["MEMAGENT_KEY_PREFIX"])


async def librechat(config: Path, text: str, *, key: str, message: str) -> None:
    """One message as LibreChat sends it to the endpoint with memory."""
    settings = load_settings(config.read_bytes())
    target = resolve_target(
        settings,
        agent=AgentSpec(provider="Team Gateway with memory", model="gpt-4o"),
        environ={"MEMORY_GATEWAY_KEY": key},
        user=ADA,
        body=BodyIds("c1", f"answer-to-{message}", message),
    )
    async with openai.AsyncOpenAI(api_key=target.api_key, base_url=target.base_url, max_retries=0) as client:
        assert [model.id async for model in client.models.list()] == ["gpt-4o-mini", "gpt-4o"]
        stream = await client.chat.completions.create(
            model="gpt-4o",
            messages=[{"role": "user", "content": text}],
            stream=True,
            extra_headers=target.headers,
        )
        said = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
    assert "".join(said) == "Noted."


async def tools(text: str, *, key: str) -> None:
    """The memories of the chat, by the tools."""
    entry: dict[str, Any] = plain(parse(text.encode(), "librechat.yaml").root)["mcpServers"]["memory"]
    headers = render_headers(entry["headers"], environ={"MEMORY_TOOLS_KEY": key}, user=ADA, body=BodyIds())
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(entry["url"], http_client=http), mode="legacy") as client,
    ):
        listed = await client.call_tool("list_memories", {})
        assert [each["key"] for each in listed.structured_content["memories"]] == ["diet"]
