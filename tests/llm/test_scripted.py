from __future__ import annotations

import asyncio
import http.client
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from memagent.errors import BadRequest, ModelRefused, ModelReplyInvalid, ModelUnavailable
from memagent.llm import ToolSpec, Usage
from memagent.llm.script import Answer, Rule, Script, call, calling
from memagent.llm.scripted import ScriptedModel, ScriptedServer, hash_vector
from memagent.memory import Message

if TYPE_CHECKING:
    from pathlib import Path

TOOL = ToolSpec("set_memory", "Keep.", {})


def post(server: ScriptedServer, path: str, body: Any, **headers: str) -> tuple[int, bytes]:
    url = urlsplit(server.base_url)
    connection = http.client.HTTPConnection(url.netloc, timeout=10)
    try:
        connection.request("POST", f"{url.path}{path}", json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def user(text: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


# -- which answer is played --------------------------------------------------------------------------------------------


def test_answers_are_played_in_order_and_then_nothing() -> None:
    script = Script.of(Answer("a"), Answer("b"))
    assert [script.play("x", offers_tools=False).text for _ in range(3)] == ["a", "b", ""]


def test_a_rule_without_end_repeats_its_last_answer() -> None:
    script = Script([Rule((Answer("a"), Answer("b")))])
    assert [script.play("x", offers_tools=False).text for _ in range(4)] == ["a", "b", "b", "b"]


def test_the_rule_whose_words_stand_nearest_to_the_end_is_meant() -> None:
    rules = [Rule((Answer("home"),), user="Berlin"), Rule((Answer("tea"),), user="tea"), Rule((Answer("?"),))]
    script = Script(rules)
    assert script.play("Human: I live in BERLIN\nHuman: I like tea", offers_tools=True).text == "tea"
    assert script.play("Human: I like tea\nHuman: I live in berlin", offers_tools=True).text == "home"
    assert script.play("Human: hello", offers_tools=True).text == "?"


def test_a_rule_may_ask_for_tools_or_for_none() -> None:
    script = Script([Rule((Answer("with"),), tools=True), Rule((Answer("without"),), tools=False)])
    assert script.play("x", offers_tools=True).text == "with"
    assert script.play("x", offers_tools=False).text == "without"


def test_recorded_answers_are_read_from_yaml(tmp_path: Path) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text(
        """
model: recorded
rules:
  - user: I live in
    tools: true
    times: 1
    answers:
      - calls: [{set_memory: {key: home, value: "Người dùng sống ở Hà Nội."}}]
        usage: {input_tokens: 900, output_tokens: 30}
      - status: 503
        delay_s: 0.5
  - answers: [{text: Hello}]
""",
        encoding="utf-8",
    )
    script = Script.from_yaml(path)
    assert script.model == "recorded"
    answer = script.play("I live in Hanoi", offers_tools=True)
    assert answer == Answer(
        calls=(call("set_memory", key="home", value="Người dùng sống ở Hà Nội."),), usage=Usage(900, 30)
    )
    assert script.play("I live in Hanoi", offers_tools=True) == Answer("Hello")


def test_recorded_answers_may_be_data_already() -> None:
    script = Script.from_data({"rules": [{"user": "tea", "answers": [{"text": "hi"}]}]})
    assert script.play("I like tea", offers_tools=True) == Answer("hi")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rules: [{answers: []}]", "rules.0.answers"),
        ("rules: [{anwsers: [{}]}]", "anwsers"),
        ("rules: [", "yaml"),
    ],
)
def test_a_faulty_file_of_answers_is_refused_with_the_place(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "answers.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadRequest, match=told):
        Script.from_yaml(path)


# -- in process --------------------------------------------------------------------------------------------------------


async def test_the_scripted_model_answers_and_remembers_what_it_was_asked() -> None:
    model = ScriptedModel(Script.of(calling("set_memory", key="home", value="x")))
    reply = await model.complete([Message("user", "hello world")], tools=[TOOL])
    assert [each.name for each in reply.tool_calls] == ["set_memory"]
    assert reply.tool_calls[0].id
    assert reply.finish_reason == "tool_calls"
    assert reply.usage.input_tokens == 2
    assert model.requests == [(Message("user", "hello world"),)]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(status=401), ModelRefused),
        (Answer(status=429), ModelUnavailable),
        (Answer(status=500), ModelUnavailable),
        (Answer(drop=True), ModelUnavailable),
        (Answer(body="{}"), ModelReplyInvalid),
    ],
)
async def test_the_scripted_model_fails_as_recorded(answer: Answer, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        await ScriptedModel(Script.of(answer)).complete([Message("user", "x")])


# -- over HTTP ---------------------------------------------------------------------------------------------------------


async def test_a_completion_has_openais_shape() -> None:
    answer = Answer("Hi", (call("set_memory", key="k"),), Usage(7, 3, cache_read_tokens=2))
    async with ScriptedServer(Script.of(answer)) as server:
        status, body = await asyncio.to_thread(
            post, server, "/chat/completions", user("x") | {"model": "m"}, **{"X-User": "J\u00fcrgen"}
        )
    assert status == 200
    assert json.loads(body) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Hi",
                    "tool_calls": [
                        {
                            "id": "call_1_1",
                            "type": "function",
                            "function": {"name": "set_memory", "arguments": '{"key": "k"}'},
                        }
                    ],
                },
                "finish_reason": "tool_calls",
                "logprobs": None,
            }
        ],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 3,
            "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 2},
        },
    }
    assert server.requests[0].headers["x-user"] == "J\u00fcrgen"
    assert server.requests[0].body["messages"][0]["content"] == "x"


async def test_a_streamed_answer_is_the_same_in_pieces() -> None:
    text = "Xin chào, đây là một câu trả lời dài hơn mười sáu ký tự."
    script = Script.of(Answer(text, (call("set_memory", key="k"),)))
    body = user([{"type": "text", "text": "x"}]) | {"stream": True, "stream_options": {"include_usage": True}}
    async with ScriptedServer(script) as server:
        _, raw = await asyncio.to_thread(post, server, "/chat/completions", body)
    events = [event.removeprefix("data: ") for event in raw.decode().split("\n\n") if event]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert chunks[-1]["usage"]["completion_tokens"] > 0
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    assert "".join(delta.get("content", "") for delta in deltas) == text
    assert len(deltas) > 4
    assert [delta["tool_calls"][0]["function"]["name"] for delta in deltas if "tool_calls" in delta] == [
        "set_memory"
    ]
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"


async def test_a_wrong_key_is_401_and_an_unknown_path_404() -> None:
    async with ScriptedServer(Script.of(Answer("x")), api_key="right") as server:
        wrong, _ = await asyncio.to_thread(
            post, server, "/chat/completions", user("x"), Authorization="Bearer no"
        )
        right, _ = await asyncio.to_thread(
            post, server, "/chat/completions", user("x"), Authorization="Bearer right"
        )
        lost, _ = await asyncio.to_thread(post, server, "/nowhere", {}, Authorization="Bearer right")
    assert (wrong, right, lost) == (401, 200, 404)


@pytest.mark.parametrize(
    "body", [[], {"messages": "x"}, {"messages": [1, {"role": "user"}]}, {"messages": None}]
)
async def test_a_malformed_request_is_still_answered(body: Any) -> None:
    async with ScriptedServer(Script.of(Answer("x"))) as server:
        status, _ = await asyncio.to_thread(post, server, "/chat/completions", body)
    assert status == 200


async def test_stopping_does_not_wait_for_an_answer_that_is_delayed() -> None:
    async with ScriptedServer(Script.of(Answer("x", delay_s=3_600))) as server:
        asked = asyncio.create_task(asyncio.to_thread(post, server, "/chat/completions", user("x")))
        while not server.requests:  # noqa: ASYNC110  the server runs in a thread and has no event of this loop
            await asyncio.sleep(0.01)
    with pytest.raises((OSError, http.client.HTTPException)):
        await asked


# -- vectors -----------------------------------------------------------------------------------------------------------


def cosine(one: str, other: str) -> float:
    return sum(a * b for a, b in zip(hash_vector(one), hash_vector(other), strict=True))


def test_texts_that_share_words_are_near_each_other() -> None:
    assert (
        cosine("Tôi thích cà phê sữa đá", "cà phê sữa")
        > cosine("Tôi thích cà phê sữa đá", "Straßenbahn fährt") + 0.3
    )
    assert cosine("東京に住む", "東京") > 0.4


@pytest.mark.parametrize("text", ["", "the", "...", "\ud800", "Đà Nẵng"])
def test_every_text_has_a_unit_vector(text: str) -> None:
    assert cosine(text, text) == pytest.approx(1)
    assert len(hash_vector(text, 7)) == 7
