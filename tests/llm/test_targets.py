"""Every kind of provider, from its name in the file to the request on the wire, against a server on loopback."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from memagent.config.agents import AgentSpec
from memagent.config.azure import read_deployments
from memagent.config.endpoints import resolve_target
from memagent.config.placeholders import BodyIds, UserFields
from memagent.config.settings import CustomEndpoint, MemorySettings, Settings
from memagent.llm import ToolSpec
from memagent.llm.gateway import Gateway
from memagent.memory import Message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
COMPLETION = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}],
    "usage": USAGE,
}
ANSWERS: dict[str, dict[str, Any]] = {
    "/messages": {
        "id": "x",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    ":generateContent": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    },
    "/converse": {
        "output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 1},
    },
}
TOOL = ToolSpec("set_memory", "Keep.", {"type": "object", "properties": {"key": {"type": "string"}}})
USER = UserFields("u1", {"name": "Zoë", "email": "juno@example.org"})


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Provider(BaseHTTPRequestHandler):
    requests: list[Request]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.requests.append(Request(self.path, headers, body))
        answer = next((each for end, each in ANSWERS.items() if self.path.endswith(end)), COMPLETION)
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        pass


@dataclass
class World:
    url: str
    requests: list[Request]
    gateway: Gateway

    async def ask(self, case: Case) -> Request:
        """Make the one call of a case, and return what arrived."""
        entry = {name: self._here(value) for name, value in case.entry.items()}
        settings = Settings(
            MemorySettings(),
            (CustomEndpoint(**entry),) if entry else (),
            azure=read_deployments(self._here(case.azure)),
        )
        target = resolve_target(
            settings,
            agent=AgentSpec(case.provider, case.model, model_parameters=case.parameters),
            environ={name: self._here(value) for name, value in case.environ.items()},
            user=USER,
            body=BodyIds("c1", "m1"),
            timeout_s=20,
        )
        messages = [Message("user", "hello")]
        reply = await self.gateway.model(target).complete(messages, tools=[TOOL])
        assert reply.text == "hi"
        (request,) = self.requests
        return request

    def _here(self, value: Any) -> Any:
        return json.loads(json.dumps(value).replace("HERE", self.url)) if value else value


@pytest.fixture
async def world() -> AsyncIterator[World]:
    requests: list[Request] = []
    handler = type("Recorder", (Provider,), {"requests": requests})
    gateway = Gateway()
    for server in serving(handler):
        yield World(f"http://127.0.0.1:{server.server_port}", requests, gateway)
    await gateway.close()


def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@dataclass(frozen=True)
class Case:
    provider: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    model: str = "house-model"
    parameters: dict[str, Any] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    entry: dict[str, Any] = field(default_factory=dict)
    azure: dict[str, Any] = field(default_factory=dict)


ENTRY = {"name": "Gateway", "api_key": "${KEY}", "base_url": "HERE/v1"}
BEARER = {"authorization": "Bearer k"}
AZURE = {
    "AZURE_API_KEY": "k",
    "AZURE_OPENAI_BASEURL": "HERE",
    "AZURE_OPENAI_API_VERSION": "2024-06-01",
    "AZURE_OPENAI_API_DEPLOYMENT_NAME": "dep",
}
BEDROCK_MODEL = "us.anthropic.claude-3-7-sonnet-20250219-v1:0"

CASES = {
    "custom": Case(
        "Gateway",
        "/v1/chat/completions",
        BEARER | {"x-name": "Zoë", "x-mail": "juno@example.org", "x-turn": "m1"},
        {"temperature": 0.4, "max_tokens": 9, "verbosity": "low", "user": "u1"},
        parameters={"max_tokens": 9, "verbosity": "low"},
        entry=ENTRY
        | {
            "headers": {
                "X-Name": "{{LIBRECHAT_USER_NAME}}",
                "X-Mail": "{{LIBRECHAT_USER_EMAIL}}",
                "X-Turn": "{{LIBRECHAT_BODY_MESSAGEID}}",
            }
        },
    ),
    "custom gpt-5": Case(
        "Gateway",
        "/v1/chat/completions",
        BEARER,
        {"max_completion_tokens": 9, "temperature": None},
        model="gpt-5-mini",
        parameters={"max_tokens": 9, "temperature": 0.2},
        entry=ENTRY,
    ),
    "custom o3": Case(
        "Gateway",
        "/v1/chat/completions",
        BEARER,
        {"stop": "x", "temperature": None, "top_p": None},
        model="o3-mini",
        parameters={"stop": "x", "top_p": 1},
        entry=ENTRY,
    ),
    "custom, whole address": Case(
        "Gateway",
        "/answer?v=1",
        BEARER,
        {"model": "house-model"},
        entry=ENTRY | {"base_url": "HERE/answer?v=1", "direct_endpoint": True},
    ),
    "custom, added and dropped": Case(
        "Gateway",
        "/v1/chat/completions",
        BEARER,
        {"temperature": 1, "deep": {"a": [1]}, "user": None},
        entry=ENTRY | {"add_params": {"temperature": 1, "deep": {"a": [1]}}, "drop_params": ("user",)},
    ),
    "custom, Anthropic's messages": Case(
        "Gateway",
        "/v1/messages",
        {"x-api-key": "k"},
        {"top_k": 4, "temperature": 0.4, "user": None},
        parameters={"topK": 4},
        entry=ENTRY | {"provider": "anthropic"},
    ),
    "xai": Case(
        "xai",
        "/v1/chat/completions",
        BEARER,
        {"stop": "x"},
        "grok-4",
        {"stop": "x"},
        {},
        ENTRY | {"name": "xai"},
    ),
    "deepseek": Case(
        "DeepSeek",
        "/v1/chat/completions",
        BEARER,
        {"max_tokens": 9},
        "deepseek-chat",
        {"max_tokens": 9},
        {},
        ENTRY | {"name": "deepseek"},
    ),
    "moonshot": Case(
        "moonshot",
        "/v1/chat/completions",
        BEARER,
        {"model": "kimi-k2"},
        "kimi-k2",
        {},
        {},
        ENTRY | {"name": "Moonshot"},
    ),
    "openrouter": Case(
        "openrouter",
        "/v1/chat/completions",
        BEARER,
        {"model": "a/b", "temperature": 0.4},
        "a/b",
        {},
        {},
        ENTRY | {"name": "OpenRouter"},
    ),
    "openAI": Case(
        "openAI",
        "/v1/chat/completions",
        BEARER | {"openai-organization": "org"},
        {"temperature": 0.1},
        parameters={"temperature": 0.1},
        environ={"OPENAI_API_KEY": "k", "OPENAI_REVERSE_PROXY": "HERE/v1", "OPENAI_ORGANIZATION": "org"},
    ),
    "anthropic": Case(
        "anthropic",
        "/v1/messages",
        {"x-api-key": "k"},
        {"thinking": {"type": "enabled", "budget_tokens": 2000}, "temperature": None},
        model="claude-sonnet-4-5",
        parameters={"thinking": True, "maxTokens": 4000},
        environ={"ANTHROPIC_API_KEY": "k", "ANTHROPIC_REVERSE_PROXY": "HERE"},
    ),
    "google": Case(
        "google",
        "/models/gemini-2.5-flash:generateContent",
        {"x-goog-api-key": "k", "authorization": "Bearer k"},
        {},
        model="gemini-2.5-flash",
        parameters={"maxOutputTokens": 9, "topK": 3},
        environ={"GOOGLE_KEY": "k", "GOOGLE_REVERSE_PROXY": "HERE", "GOOGLE_AUTH_HEADER": "true"},
    ),
    "azure": Case(
        "azureOpenAI",
        "/openai/deployments/dep/chat/completions?api-version=2024-06-01",
        {"api-key": "k"},
        {"temperature": 0.4, "user": "u1"},
        environ=AZURE,
    ),
    "azure, serverless": Case(
        "azureOpenAI",
        "/v1/chat/completions?api-version=v1",
        {"api-key": "k"},
        {"model": "house-model"},
        azure={
            "groups": [
                {
                    "group": "g",
                    "apiKey": "k",
                    "serverless": True,
                    "version": "v1",
                    "baseURL": "HERE/v1",
                    "models": {"house-model": True},
                }
            ]
        },
    ),
    "bedrock": Case(
        "bedrock",
        f"/model/{BEDROCK_MODEL.replace(':', '%3A')}/converse",
        {"authorization": "Bearer k"},
        {"inferenceConfig": {"temperature": 1, "maxTokens": 4000}},
        model=BEDROCK_MODEL,
        parameters={"thinking": True, "maxTokens": 4000},
        environ={"BEDROCK_AWS_BEARER_TOKEN": "k", "BEDROCK_REVERSE_PROXY": "HERE"},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_provider_gets_its_address_its_key_and_its_parameters(world: World, case: Case) -> None:
    request = await world.ask(Case(**{**vars(case), "environ": {"KEY": "k", **case.environ}}))

    assert request.path == case.path
    assert {name: request.headers.get(name) for name in case.headers} == case.headers
    assert {name: request.body.get(name) for name in case.body} == case.body
