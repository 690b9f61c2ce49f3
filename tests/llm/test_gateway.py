"""litellm, for real, against the scripted server on loopback."""

from __future__ import annotations

import asyncio
import inspect
import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from memagent.agent.evidence import Witnesses
from memagent.agent.extract import extract
from memagent.agent.ledger import Ledger, Rules
from memagent.agent.prompt import Budget, build
from memagent.config.endpoints import ModelTarget
from memagent.errors import EmbedderFault, ModelFault, ModelRefused, ModelReplyInvalid, ModelUnavailable
from memagent.llm import ToolSpec, Usage
from memagent.llm.faults import BY_STATUS, KINDS
from memagent.llm.gateway import Gateway
from memagent.llm.script import Answer, Rule, Script, calling
from memagent.llm.scripted import ScriptedServer, hash_vector
from memagent.memory import Message, ToolCall
from memagent.store import SetMemory
from memagent.tokens import count_tokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

KEY = "sk-very-secret-key"
WORDS = "my diagnosis is nobody's business"
TOOL = ToolSpec("set_memory", "Keep.", {"type": "object", "properties": {"key": {"type": "string"}}})


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    gateway = Gateway()
    yield gateway
    await gateway.close()


@pytest.fixture
def printed(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """Everything that was printed or logged meanwhile, at any level."""
    caplog.set_level(logging.DEBUG)
    return lambda: "".join(capfd.readouterr()) + caplog.text


def target(base_url: str | None, **given: Any) -> ModelTarget:
    given = {"model": "openai/gpt-4o-mini", "api_key": KEY, "timeout_s": 20.0} | given
    return ModelTarget(base_url=base_url, **given)


async def ask(gateway: Gateway, script: Script, **given: Any) -> tuple[Any, ScriptedServer]:
    async with ScriptedServer(script) as server:
        model = gateway.model(target(server.base_url, **given))
        return await model.complete([Message("user", WORDS)]), server


async def test_an_answer_with_text_and_calls_comes_back_whole(gateway: Gateway) -> None:
    calls = (ToolCall("a", "set_memory", '{"key": "x"}'), ToolCall("b", "set_memory", "{broken"))
    script = Script.of(Answer("Gespeichert.", calls, Usage(10, 2, cache_read_tokens=4)))
    async with ScriptedServer(script) as server:
        model = gateway.model(target(server.base_url))
        reply = await model.complete([Message("system", "s"), Message("user", "hi")], tools=[TOOL])
    assert reply.text == "Gespeichert."
    assert reply.tool_calls == calls
    assert reply.model == "gpt-4o-mini"
    assert reply.finish_reason == "tool_calls"
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.cache_read_tokens) == (10, 2, 4)
    assert reply.usage.cost_usd is not None
    assert reply.usage.cost_usd > 0


async def test_the_price_of_an_unknown_model_is_unknown(gateway: Gateway) -> None:
    reply, _ = await ask(gateway, Script.of(Answer("hi")), model="openai/house-model-7")
    assert reply.usage.cost_usd is None


async def test_what_is_sent_is_what_the_target_says(gateway: Gateway) -> None:
    _, server = await ask(
        gateway,
        Script.of(Answer("hi")),
        headers={"X-User": "u1", "X-Name": "J\u00fcrgen"},
        parameters={
            "temperature": 0.4,
            "max_tokens": 50,
            "top_p": 1,
            "stream": True,
            "num_retries": 9,
            "odd_one": 2,
        },
        extra={"plugin": {"a": [1]}, "verbosity": "low"},
        drop=("top_p", "verbosity"),
    )
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-user"] == "u1"
    assert request.headers["x-name"] == "J\u00fcrgen"
    assert request.body == {
        "model": "gpt-4o-mini",
        "messages": [{"role": "user", "content": WORDS}],
        "temperature": 0.4,
        "max_tokens": 50,
        "odd_one": 2,
        "plugin": {"a": [1]},
    }


async def test_without_a_key_the_environments_key_is_not_taken_elsewhere(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    _, server = await ask(gateway, Script.of(Answer("hi")), api_key=None)
    assert server.requests[0].headers["authorization"] == "Bearer none"


async def test_a_model_nobody_knows_gets_tools_and_parameters_all_the_same(gateway: Gateway) -> None:
    parameters = {
        "temperature": 0.4,
        "reasoning_effort": "low",
        "parallel_tool_calls": True,
        "max_completion_tokens": 9,
    }
    async with ScriptedServer(Script.of(Answer("hi"))) as server:
        there = target(server.base_url, model="openai/org/house-model:7b", parameters=parameters)
        await gateway.model(there).complete([Message("user", "hi")], tools=[TOOL])
    body = server.requests[0].body
    assert body["model"] == "org/house-model:7b"
    assert {name: body.get(name) for name in parameters} == parameters
    assert [tool["function"]["name"] for tool in body["tools"]] == ["set_memory"]


async def test_a_turn_goes_through_prompt_model_tools_and_back(gateway: Gateway) -> None:
    chat = [Message("user", "Nhớ giúp tôi: tôi sống ở Hà Nội.", id="m1")]
    rules = Rules(valid_keys=("home",))
    request = build(chat, [], rules=rules, budget=Budget(), count=count_tokens)
    book = Ledger({}, rules=rules, count=count_tokens, witnesses=Witnesses(request.window))
    wrong = calling("set_memory", key="city", value="Người dùng sống ở Hà Nội.")
    right = calling("set_memory", key="home", value="Người dùng sống ở Hà Nội.")
    async with ScriptedServer(Script([Rule((wrong, right), user="tôi sống ở", tools=True)])) as server:
        extraction = await extract(gateway.model(target(server.base_url)), request, book)
    assert [outcome.status.value for outcome in extraction.tool_outcomes] == ["invalid_key", "set"]
    (edit,) = extraction.edits
    assert isinstance(edit, SetMemory)
    assert (edit.key, edit.evidence.quote) == ("home", "Nhớ giúp tôi: tôi sống ở Hà Nội.")
    assert extraction.usage.cost_usd is not None
    told = server.requests[1].body["messages"][-1]
    assert told["content"] == 'Invalid key "city". Must be one of: home'


def test_importing_the_gateway_loads_no_heavy_part() -> None:
    heavy = "{'litellm', 'openai', 'httpx', 'numpy', 'bpe_openai', 'jinja2'}"
    code = f"import sys, memagent.llm.gateway, memagent.agent.extract, memagent.agent.prompt; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_an_account_goes_to_litellm_and_no_parameter_takes_its_place(gateway: Gateway) -> None:
    await gateway.warm()
    there = target(
        None,
        model="bedrock/claude",
        credentials={"aws_region_name": "eu-1"},
        parameters={"api_base": "http://x"},
    )
    arguments = gateway.arguments(there)
    assert arguments["aws_region_name"] == "eu-1"
    assert arguments["api_base"] is None
    assert (arguments["num_retries"], arguments["max_retries"]) == (0, 0)


async def test_a_refusal_goes_back_with_its_call(gateway: Gateway) -> None:
    call = ToolCall("call_1", "set_memory", '{"key": "x"}')
    chat = [
        Message("user", "remember"),
        Message("assistant", tool_calls=(call,)),
        Message("tool", "Invalid key", tool_call_id="call_1"),
    ]
    async with ScriptedServer(Script.of(Answer("ok"))) as server:
        await gateway.model(target(server.base_url)).complete(chat, tools=[TOOL])
    sent = server.requests[0].body["messages"]
    assert sent[1]["tool_calls"][0] == {
        "id": "call_1",
        "type": "function",
        "function": {"name": "set_memory", "arguments": '{"key": "x"}'},
    }
    assert sent[2] == {"role": "tool", "content": "Invalid key", "tool_call_id": "call_1"}
    assert server.requests[0].body["tools"][0]["function"]["name"] == "set_memory"


async def test_a_lone_surrogate_is_sent_as_a_replacement_character(gateway: Gateway) -> None:
    async with ScriptedServer(Script.of(Answer("ok"))) as server:
        await gateway.model(target(server.base_url)).complete([Message("user", "a\ud800b")])
    assert server.requests[0].body["messages"][0]["content"] == "a\ufffdb"


FAULTS = [
    (Answer(status=400), ModelRefused, "rejected the request with 400 (scripted_failure)"),
    (Answer(status=401), ModelRefused, "refused the API key with 401"),
    (Answer(status=403), ModelRefused, "refused the API key with 403"),
    (Answer(status=404), ModelRefused, "answered 404"),
    (Answer(status=422), ModelRefused, "rejected the request"),
    (Answer(status=418), ModelRefused, "rejected the request with 418"),
    (Answer(status=429), ModelUnavailable, "is rate limiting"),
    (Answer(status=500), ModelUnavailable, "failed with 500"),
    (Answer(status=503), ModelUnavailable, "failed with 503"),
    (Answer(status=500, body="not json"), ModelUnavailable, "failed with 500"),
    (Answer(drop=True), ModelUnavailable, "cannot be reached"),
    (Answer(body="<html>Welcome to the hotel's network</html>"), ModelReplyInvalid, "cannot be read"),
    (Answer(body="{}"), ModelReplyInvalid, "cannot be read"),
    (Answer(body='{"choices": []}'), ModelReplyInvalid, "cannot be read"),
    (Answer(body="[1]"), ModelReplyInvalid, "cannot be read"),
]


@pytest.mark.parametrize(("answer", "kind", "told"), FAULTS)
async def test_a_failing_endpoint_is_one_fault_and_one_request(
    gateway: Gateway, printed: Callable[[], str], answer: Answer, kind: type[ModelFault], told: str
) -> None:
    await gateway.warm()
    async with ScriptedServer(Script([Rule((answer,))])) as server:
        with pytest.raises(ModelFault) as raised:
            await gateway.model(target(server.base_url, headers={"X-Token": KEY})).complete(
                [Message("user", WORDS)]
            )
        place = server.base_url.removesuffix("/v1")
    assert type(raised.value) is kind
    assert str(raised.value).startswith(place)
    assert told in str(raised.value)
    assert len(server.requests) == 1
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    seen = printed() + repr(raised.value)
    assert KEY not in seen
    assert WORDS not in seen


async def test_a_slow_endpoint_is_unavailable(gateway: Gateway) -> None:
    with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.2 s"):
        await ask(gateway, Script.of(Answer(delay_s=30)), timeout_s=0.2)


async def test_an_endpoint_that_is_not_there_is_unavailable(gateway: Gateway) -> None:
    async with ScriptedServer(Script.of()) as server:
        gone = server.base_url
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        await gateway.model(target(gone)).complete([Message("user", WORDS)])


async def test_secrets_in_the_url_are_not_repeated(gateway: Gateway) -> None:
    async with ScriptedServer(Script.of(Answer(status=401))) as server:
        url = server.base_url.replace("http://", f"http://me:{KEY}@")
        with pytest.raises(ModelFault) as raised:
            await gateway.model(target(url)).complete([Message("user", "hi")])
    assert KEY not in str(raised.value)


async def test_a_provider_litellm_does_not_know_is_refused(gateway: Gateway) -> None:
    with pytest.raises(ModelRefused, match="provider no-such"):
        await gateway.model(target(None, model="no-such/model")).complete([Message("user", "hi")])


@pytest.mark.parametrize("value", ["a\r\nX-Admin: yes", "a\0b", "Đặng"])
async def test_a_header_value_that_http_cannot_carry_is_refused(gateway: Gateway, value: str) -> None:
    with pytest.raises(ModelRefused, match="X-User") as raised:
        await ask(gateway, Script.of(Answer("hi")), headers={"X-User": value})
    assert value not in str(raised.value)


async def test_headers_reach_a_provider_that_is_not_openai(gateway: Gateway) -> None:
    async with ScriptedServer(Script.of()) as server:
        there = target(server.base_url, model="anthropic/claude-x", headers={"X-User": "u1"})
        with pytest.raises(ModelRefused, match="answered 404"):
            await gateway.model(there).complete([Message("user", "hi")])
    assert server.requests[0].headers["x-user"] == "u1"
    assert server.requests[0].headers["x-api-key"] == KEY


async def test_a_direct_endpoint_is_called_at_its_very_address(gateway: Gateway) -> None:
    async with ScriptedServer(Script.of(Answer("hi"))) as server:
        address = f"{server.base_url}/chat/completions?tenant=7"
        reply = await gateway.model(target(address, direct=True)).complete([Message("user", "hi")])
    assert reply.text == "hi"
    assert server.requests[0].path == "/v1/chat/completions?tenant=7"


async def test_a_redirect_does_not_carry_the_headers_elsewhere(gateway: Gateway) -> None:
    async with ScriptedServer(Script.of(Answer("hi"))) as other:
        moved = Answer(status=307, location=f"{other.base_url}/chat/completions")
        with pytest.raises(ModelFault):
            await ask(gateway, Script.of(moved), headers={"X-Token": KEY})
    assert other.requests == []


async def test_embeddings_come_in_order(gateway: Gateway) -> None:
    texts = ["Ich wohne in Hanoi", "", "\ud800", "Tôi thích cà phê"]
    async with ScriptedServer(Script.of(), api_key=KEY) as server:
        vectors = await gateway.embed(target(server.base_url, model="openai/text-embedding-3-small"), texts)
    assert [len(vector) for vector in vectors] == [256] * 4
    assert vectors[0] == pytest.approx(hash_vector(texts[0]), abs=1e-6)
    assert vectors[3] == pytest.approx(hash_vector(texts[3]), abs=1e-6)


async def test_an_embedding_request_says_what_the_target_says(
    gateway: Gateway, printed: Callable[[], str]
) -> None:
    asked: dict[str, Any] = {
        "parameters": {"dimensions": 128},
        "extra": {"tenant": 7, "user": "u"},
        "drop": ("user",),
    }
    async with ScriptedServer(Script.of(), api_key=KEY) as server:
        vectors = await gateway.embed(
            target(server.base_url, model="openai/a/b", headers={"X-User": "Jürgen"}, **asked), [WORDS]
        )
    assert vectors[0] == pytest.approx(hash_vector(WORDS, 128), abs=1e-6)
    assert server.requests[0].body == {"model": "a/b", "input": [WORDS], "dimensions": 128, "tenant": 7}
    assert server.requests[0].headers["x-user"] == "Jürgen"
    seen = printed()
    assert KEY not in seen
    assert WORDS not in seen


@pytest.mark.parametrize("answer", [b"[]", b"{}", b"<html>", b'{"data": [{"index": 0}]}', b'{"data": 3}'])
async def test_an_answer_without_embeddings_is_an_embedders_fault(gateway: Gateway, answer: bytes) -> None:
    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + answer
        )
        writer.close()

    async with await asyncio.start_server(say, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(EmbedderFault, match="cannot be read") as raised:
            await gateway.embed(target(f"http://127.0.0.1:{port}/v1", model="openai/m"), [WORDS])
    assert raised.value.__context__ is None
    assert WORDS not in str(raised.value)


async def test_an_embedding_endpoint_that_is_not_there_is_an_embedders_fault(gateway: Gateway) -> None:
    async with ScriptedServer(Script.of()) as server:
        gone = server.base_url
    with pytest.raises(EmbedderFault, match="cannot be reached"):
        await gateway.embed(target(gone, model="openai/m"), ["x"])


async def test_nothing_to_embed_asks_nobody(gateway: Gateway) -> None:
    assert await gateway.embed(target("http://127.0.0.1:9"), []) == ()


async def test_a_failing_embedder_says_where(gateway: Gateway) -> None:
    async with ScriptedServer(Script.of(), api_key="another") as server:
        with pytest.raises(EmbedderFault, match="refused the API key with 401") as raised:
            await gateway.embed(target(server.base_url, model="openai/text-embedding-3-small"), ["x"])
    assert raised.value.__context__ is None


async def test_the_context_window_is_litellms_or_unknown(gateway: Gateway) -> None:
    assert await gateway.context_window("openai/gpt-4o-mini") == 128_000
    assert await gateway.context_window("openai/house-model-7") is None


async def test_every_exception_of_litellm_is_mapped_by_name(gateway: Gateway) -> None:
    await gateway.warm()
    import litellm.exceptions

    names = {
        name
        for name, kind in inspect.getmembers(litellm.exceptions, inspect.isclass)
        if issubclass(kind, Exception) and kind.__module__ == "litellm.exceptions"
    }
    assert names - set(KINDS) == set()
    assert {name for name, kind in KINDS.items() if kind is BY_STATUS} == {
        "APIError",
        "MockException",
        "OpenAIError",
    }
