"""Chats through the gateway: what reaches the endpoint, what comes back, and what is learned from."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest

from memagent.api.app import create_app
from memagent.errors import ConfigUnusable, NoSuchTurn, StoreUnavailable
from memagent.llm.script import Answer, Rule, calling
from memagent.store.embedded import EmbeddedRedis
from tests.api.conftest import configuration
from tests.api.gateway.conftest import RawEndpoint

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from openai.types.chat import ChatCompletionMessageParam

HELLO = Answer("Hello, Ada.")
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}
REMEMBERS = Rule(
    (calling("set_memory", key="diet", value="Ada eats no meat."),), tools=True, user="I eat no meat"
)
SAYS = Rule((Answer("Noted."),))


def said(*texts: str, system: str = "") -> list[ChatCompletionMessageParam]:
    """A chat: a user and an assistant in turn."""
    roles = ("user", "assistant")
    messages: list[Any] = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return [{"role": "system", "content": system}, *messages] if system else messages


async def test_an_answer_streams_through_and_its_turn_is_learned_from(open_door: Callable[..., Any]) -> None:
    async with open_door(rules=[REMEMBERS, SAYS]) as door:
        stream = await door.client().chat.completions.create(
            model="small",
            messages=said("I eat no meat."),
            stream=True,
            extra_headers=door.headers("ada", "m1"),
        )
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
        receipt = (await door.learned("ada", "m1")).receipt

        assert text == "Noted."
        assert receipt is not None
        assert receipt["set"] == ["diet"]
        assert door.count("memagent_gateway_requests_total", kind="turn") == 1


async def test_memories_stand_in_front_of_the_system_message_and_stay_byte_for_byte_from_turn_to_turn(
    open_door: Callable[..., Any],
) -> None:
    async with open_door(HELLO, HELLO, HELLO) as door:
        await door.remember("ada", diet="Ada eats no meat.")
        for number, chat in enumerate(
            [said("Hi", system="Be kind."), said("Hi", "Hello, Ada.", "What can I cook?", system="Be kind.")]
        ):
            await door.client().chat.completions.create(
                model="small", messages=chat, extra_headers=door.headers(message=f"m{number}")
            )
            await door.learned("ada", f"m{number}")

        first, second = [body["messages"] for body in door.bodies if "tools" not in body]
        assert first[0] == second[0]
        assert first[0]["role"] == "system"
        assert "Ada eats no meat." in first[0]["content"]
        assert first[0]["content"].endswith("\n\nBe kind.")
        assert [each["content"] for each in second[1:]] == ["Hi", "Hello, Ada.", "What can I cook?"]


async def test_without_a_system_message_memories_are_one(open_door: Callable[..., Any]) -> None:
    async with open_door(HELLO) as door:
        await door.remember("ada", diet="Ada eats no meat.")
        await door.client().chat.completions.create(
            model="small", messages=said("Hi"), extra_headers=door.headers()
        )

        [body] = [body for body in door.bodies if "tools" not in body]
        assert [each["role"] for each in body["messages"]] == ["system", "user"]


async def test_a_tool_call_and_its_result_pass_and_the_loop_is_one_turn(
    open_door: Callable[..., Any],
) -> None:
    rules = [Rule((calling("weather", place="Berlin"), Answer("It rains.")), user="weather")]
    async with open_door(rules=rules) as door:
        client, headers = door.client(), door.headers()
        chat: list[Any] = said("What is the weather?")
        first = await client.chat.completions.create(
            model="small", messages=chat, tools=[WEATHER], extra_headers=headers
        )
        [call] = first.choices[0].message.tool_calls
        assert json.loads(call.function.arguments) == {"place": "Berlin"}
        chat += [
            first.choices[0].message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": "rain"},
        ]
        second = await client.chat.completions.create(
            model="small", messages=chat, tools=[WEATHER], extra_headers=headers
        )
        await door.learned("ada", "m1")

        assert second.choices[0].message.content == "It rains."
        passed = [body for body in door.bodies if body.get("tools") == [WEATHER]]
        assert [each["role"] for each in passed[1]["messages"]] == ["user", "assistant", "tool"]
        assert passed[1]["messages"][1]["tool_calls"][0]["function"]["name"] == "weather"


async def test_a_tool_call_streams_through(open_door: Callable[..., Any]) -> None:
    async with open_door(calling("weather", place="Berlin")) as door:
        stream = await door.client().chat.completions.create(
            model="small", messages=said("Rain?"), tools=[WEATHER], stream=True, extra_headers=door.headers()
        )
        arguments = ""
        async for chunk in stream:
            for call in (chunk.choices[0].delta.tool_calls or []) if chunk.choices else []:
                arguments += call.function.arguments or ""
        assert json.loads(arguments) == {"place": "Berlin"}


async def test_a_large_picture_passes_as_it_is(open_door: Callable[..., Any]) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 6_000_000}}
    async with open_door(HELLO) as door:
        await door.remember("ada", diet="Ada eats no meat.")
        content = [{"type": "text", "text": "What is this?"}, picture]
        await door.client().chat.completions.create(
            model="small", messages=[{"role": "user", "content": content}], extra_headers=door.headers()
        )

        assert door.bodies[0]["messages"][-1]["content"] == content


@pytest.mark.parametrize("chunked", [True, False])
async def test_every_byte_of_the_answer_comes_as_the_endpoint_sent_it(
    open_door: Callable[..., Any], chunked: bool
) -> None:
    body = b'data: {"odd":\t1}\r\n\r\n: a comment \xf0\x9f\x90\x88\n\ndata: [DONE]\n\n\x00\xff tail without an end'
    head = (
        b"HTTP/1.1 207 Odd\r\nContent-Type: text/event-stream; odd=1\r\nX-RateLimit-Remaining-Tokens: 7\r\n"
    )
    gone = (
        b"Set-Cookie: a=b\r\nServer: odd\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nConnection: close, X-Hop\r\n"
    )
    if chunked:
        parts = [body[:7], body[7:40], body[40:]]
        sent = [
            head + gone + b"Transfer-Encoding: chunked\r\n\r\n",
            *(b"%x\r\n%s\r\n" % (len(p), p) for p in parts),
        ]
        sent.append(b"0\r\n\r\n")
    else:
        sent = [head + gone + b"Content-Length: %d\r\n\r\n" % len(body), body]
    async with RawEndpoint(*sent) as base, open_door(base=base) as door, httpx.AsyncClient() as client:
        headers = door.headers(Authorization=f"Bearer {door.keys['turns']}")
        chat = {"model": "small", "messages": said("Hi"), "stream": True}
        answer = await client.post(f"{door.address}/v1/chat/completions", json=chat, headers=headers)

        assert answer.status_code == 207
        assert answer.content == body
        assert answer.headers["content-type"] == "text/event-stream; odd=1"
        assert answer.headers["x-ratelimit-remaining-tokens"] == "7"
        assert not {"set-cookie", "server", "x-hop", "keep-alive"} & set(answer.headers)
        assert len(answer.headers.get_list("date")) == 1


async def test_a_compressed_answer_stays_compressed(open_door: Callable[..., Any]) -> None:
    import gzip

    packed = gzip.compress(b'{"id": "1"}')
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    endpoint = RawEndpoint(head % len(packed), packed)
    async with endpoint as base, open_door(base=base) as door, httpx.AsyncClient() as client:
        headers = door.headers(Authorization=f"Bearer {door.keys['turns']}", **{"Accept-Encoding": "gzip"})
        url = f"{door.address}/v1/chat/completions"
        async with client.stream("POST", url, json={"messages": said("Hi")}, headers=headers) as answer:
            assert b"".join([piece async for piece in answer.aiter_raw()]) == packed
        assert b"accept-encoding: gzip\r\n" in endpoint.request.lower()


async def test_the_endpoint_gets_its_own_key_and_headers_and_nothing_of_the_callers(
    open_door: Callable[..., Any],
) -> None:
    entry = (
        "      headers:\n"
        "        X-Team: '${TEAM}'\n"
        "        X-User: '{{LIBRECHAT_USER_ID}}'\n"
        "        X-Name: '{{LIBRECHAT_USER_NAME}}'\n"
        "        X-Chat: '{{LIBRECHAT_BODY_CONVERSATIONID}}'\n"
    )
    async with open_door(HELLO, entry=entry, environ={"TEAM": "blue"}) as door:
        name = {"X-LibreChat-User-Name": "b64:xZp1a2E="}
        await door.client().chat.completions.create(
            model="small", messages=said("Hi"), extra_headers=door.headers(Cookie="a=b", **name)
        )
        sent = door.behind.requests[0].headers
        assert sent["authorization"] == "Bearer upstream-key"
        assert (sent["x-team"], sent["x-user"], sent["x-chat"]) == ("blue", "ada", "c1")
        assert sent["x-name"] == "b64:xZp1a2E="
        assert sent["via"] == "1.1 memagent"
        assert not {"cookie", "x-user-identifier", "x-message-identifier", "x-stainless-lang"} & set(sent)
        assert not any(door.keys["turns"] in value for value in sent.values())


async def test_a_header_in_latin_1_arrives_in_latin_1(open_door: Callable[..., Any]) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    endpoint, entry = RawEndpoint(answer), "      headers: {X-Name: '{{LIBRECHAT_USER_NAME}}'}\n"
    async with endpoint as base, open_door(base=base, entry=entry) as door, httpx.AsyncClient() as client:
        headers: Any = [(name.encode(), value.encode()) for name, value in door.headers().items()]
        headers += [(b"Authorization", f"Bearer {door.keys['turns']}".encode())]
        headers += [(b"X-LibreChat-User-Name", "Zoë".encode("latin-1"))]
        await client.post(
            f"{door.address}/v1/chat/completions", json={"messages": said("Hi")}, headers=headers
        )
        assert b"x-name: Zo\xeb\r\n" in endpoint.request.replace(b"X-Name", b"x-name")


async def test_with_redis_killed_the_chat_goes_on_without_memory(
    open_door: Callable[..., Any], tmp_path: Path
) -> None:
    redis = await EmbeddedRedis.open(tmp_path / "own")
    async with open_door(HELLO, HELLO, redis=redis.url, environ={"MEMAGENT_RECALL_BUDGET_MS": "500"}) as door:
        await door.remember("ada", diet="Ada eats no meat.")
        await redis.close()
        answer = await door.client().chat.completions.create(
            model="small", messages=said("Hi"), extra_headers=door.headers()
        )

        assert answer.choices[0].message.content == "Hello, Ada."
        assert door.bodies[0]["messages"] == said("Hi")
        codes = ("store_unavailable", "over_budget")
        assert sum(door.count("memagent_recall_fail_opens_total", code=code) for code in codes) == 1


async def test_a_memory_that_fails_in_an_unknown_way_does_not_stop_the_chat(
    open_door: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_door(HELLO) as door:

        async def broken(*_: object) -> None:
            raise KeyError("surprise")

        monkeypatch.setattr(door.app.state.queue.memory, "context", broken)
        answer = await door.client().chat.completions.create(
            model="small", messages=said("Hi"), extra_headers=door.headers()
        )
        assert answer.choices[0].message.content == "Hello, Ada."
        assert door.count("memagent_recall_fail_opens_total", code="internal_error") == 1


@pytest.mark.parametrize(("failures", "lost"), [(3, 0), (4, 1)])
async def test_a_turn_is_handed_over_again_while_redis_is_away_and_counted_when_it_is_lost(
    open_door: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, failures: int, lost: int
) -> None:
    monkeypatch.setattr("memagent.api.gateway.PAUSES_S", (0.0, 0.0, 0.0))
    async with open_door(HELLO) as door:
        queue, left = door.app.state.queue, [failures]
        accept = queue.accept

        async def failing(turn: Any) -> Any:
            left[0] -= 1
            if left[0] >= 0:
                raise StoreUnavailable("Redis is away")
            return await accept(turn)

        monkeypatch.setattr(queue, "accept", failing)
        await door.client().chat.completions.create(
            model="small", messages=said("Hi"), extra_headers=door.headers()
        )
        while left[0] > 0 or door.app.state.gateway._handovers:  # noqa: ASYNC110  nothing tells of what runs behind
            await asyncio.sleep(0.005)
        assert door.count("memagent_gateway_turns_lost_total", code="store_unavailable") == lost
        if not lost:
            assert (await door.learned("ada", "m1")).over


async def test_a_user_who_switched_memory_off_is_neither_told_nor_kept(open_door: Callable[..., Any]) -> None:
    async with open_door(HELLO) as door:
        await door.remember("ada", diet="Ada eats no meat.")
        await door.app.state.memory.set_personalization("ada", on=False)
        body = b'{"model": "small",  "messages": [{"role": "user", "content": "I moved to Porto."}]}'
        headers = door.headers(
            Authorization=f"Bearer {door.keys['turns']}", **{"Content-Type": "application/json"}
        )
        async with httpx.AsyncClient() as client:
            await client.post(f"{door.address}/v1/chat/completions", content=body, headers=headers)
        receipt = (await door.learned("ada", "m1")).receipt

        assert door.bodies == [json.loads(body)]
        assert receipt is not None
        assert (receipt["decision"], receipt["reason"]) == ("skipped", "opted_out")
        client = door.app.state.memory.ports.store.client
        kept = [key async for key in client.scan_iter(match=f"{door.app.state.options.key_prefix}*")]
        dumped = [await client.dump(key) for key in kept]
        assert not any(b"Porto" in (value or b"") for value in dumped)


TITLE = {
    "role": "user",
    "content": "Provide a concise, 5-word-or-less title for the conversation, using …\n\nUser: Hi",
}
SIDES: dict[str, dict[str, Any]] = {
    "title": {"messages": [TITLE]},
    "structured title": {
        "messages": [{"role": "user", "content": "Entitle this, in Icelandic."}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "extract", "schema": {"properties": {"title": {}, "language": {}}}},
        },
    },
    "title as a function": {
        "messages": [{"role": "user", "content": "Entitle this, in Icelandic."}],
        "tools": [
            {"type": "function", "function": {"name": "extract", "parameters": {"properties": {"title": {}}}}}
        ],
    },
    "title of the file": {"messages": [{"role": "user", "content": "Ein Titel für: User: Hi\nDanke!"}]},
    "summary": {
        "messages": [
            *said("Hi", "Hello"),
            {"role": "user", "content": "Hold on again, update your checkpoint. …"},
        ]
    },
    "memory agent": {
        "messages": said("# Current Chat:\n\nHuman: Hi"),
        "tools": [
            {"type": "function", "function": {"name": name}} for name in ("set_memory", "delete_memory")
        ],
    },
}


@pytest.mark.parametrize("side", SIDES)
async def test_what_a_program_asks_on_the_side_goes_on_as_it_came_and_is_no_turn(
    open_door: Callable[..., Any], side: str
) -> None:
    entry = "      titlePrompt: 'Ein Titel für: {convo} Danke!'\n"
    async with open_door(HELLO, entry=entry) as door:
        await door.remember("ada", diet="Ada eats no meat.")
        await door.client().chat.completions.create(
            model="small", **SIDES[side], extra_headers=door.headers()
        )

        assert door.bodies == [{"model": "small", **SIDES[side]}]
        with pytest.raises(NoSuchTurn):
            await door.ticket("ada", "m1")
        assert door.count("memagent_gateway_requests_total", kind="turn") == 0


@pytest.mark.parametrize("message", ["", "{{LIBRECHAT_BODY_PARENTMESSAGEID}}"])
async def test_without_the_id_of_a_message_nothing_is_a_turn(
    open_door: Callable[..., Any], message: str
) -> None:
    async with open_door(HELLO) as door:
        await door.remember("ada", diet="Ada eats no meat.")
        await door.client().chat.completions.create(
            model="small", messages=said("Hi"), extra_headers=door.headers(message=message)
        )
        assert door.bodies[0]["messages"] == said("Hi")
        assert door.count("memagent_gateway_requests_total", kind="unnamed") == 1


async def test_a_chat_with_librechats_inline_memory_tools_is_a_turn(open_door: Callable[..., Any]) -> None:
    async with open_door(HELLO) as door:
        stream = await door.client().chat.completions.create(
            model="small", **SIDES["memory agent"], stream=True, extra_headers=door.headers()
        )
        assert [chunk async for chunk in stream]
        assert (await door.learned("ada", "m1")).over


async def test_memagents_own_agent_may_go_through_the_gateway_and_is_never_a_turn(
    open_door: Callable[..., Any],
) -> None:
    # Its requests carry the ids of the turn that it learns from, and its endpoint is the gateway itself.
    async with open_door(rules=[REMEMBERS, SAYS], loop=True, litellm=True) as door:
        await door.remember("ada", job="Ada is a baker.")
        await door.client().chat.completions.create(
            model="small", messages=said("I eat no meat."), extra_headers=door.headers()
        )
        receipt = (await door.learned("ada", "m1")).receipt

        assert receipt is not None
        assert receipt["set"] == ["diet"]
        assert door.count("memagent_gateway_requests_total", kind="turn") == 1
        assert door.count("memagent_gateway_requests_total", kind="memory") == receipt["cost"]["calls"] == 1
        assert len(door.bodies) == 2


async def test_an_endpoint_that_leads_back_to_the_gateway_is_refused(open_door: Callable[..., Any]) -> None:
    async with open_door() as door:
        with pytest.raises(openai.APIStatusError) as refused:
            await door.client().chat.completions.create(
                model="small", messages=said("Hi"), extra_headers=door.headers(Via="1.0 other, 1.1 memagent")
            )
        assert refused.value.status_code == 502
        assert "leads back" in refused.value.message


async def test_who_goes_away_ends_the_request_to_the_endpoint(open_door: Callable[..., Any]) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n"
    for pieces in ((head,), ()):  # in the middle of an answer, and before it begins
        endpoint = RawEndpoint(*pieces, hold=True)
        async with endpoint as base, open_door(base=base) as door:
            chat = {"model": "small", "messages": said("Hi"), "stream": True}
            headers = door.headers(Authorization=f"Bearer {door.keys['turns']}")

            async def leave(url: str, **how: Any) -> None:
                async with httpx.AsyncClient() as client, client.stream("POST", url, **how) as answer:
                    await anext(answer.aiter_raw())

            asking = asyncio.create_task(
                leave(f"{door.address}/v1/chat/completions", json=chat, headers=headers)
            )
            await endpoint.asked.wait()
            if pieces:
                await asking
            else:
                asking.cancel()
            await endpoint.left.wait()
            assert (await door.learned("ada", "m1")).message_id == "m1"


async def test_an_answer_that_breaks_off_breaks_off_here_too(open_door: Callable[..., Any]) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n"
    async with RawEndpoint(head) as base, open_door(base=base) as door, httpx.AsyncClient() as client:
        headers = door.headers(Authorization=f"Bearer {door.keys['turns']}")
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(
                f"{door.address}/v1/chat/completions", json={"messages": said("Hi")}, headers=headers
            )


async def test_the_endpoints_own_fault_comes_as_the_endpoint_says_it(open_door: Callable[..., Any]) -> None:
    async with open_door(
        Answer(status=418, body='{"error": {"message": "a teapot", "code": "tea"}}')
    ) as door:
        with pytest.raises(openai.APIStatusError) as refused:
            await door.client().chat.completions.create(
                model="small", messages=said("Hi"), extra_headers=door.headers()
            )
        assert (refused.value.status_code, refused.value.code) == (418, "tea")


async def refused(door: Any, status: int, code: str, *, key: str = "turns", **headers: str) -> str:
    """What the gateway says, in OpenAI's shape."""
    async with httpx.AsyncClient() as client:
        sent = {"Authorization": f"Bearer {door.keys.get(key, key)}", **headers}
        answer = await client.post(
            f"{door.address}/v1/chat/completions", json={"messages": said("Hi")}, headers=sent
        )
    assert answer.status_code == status, answer.text
    fault = answer.json()["error"]
    assert set(fault) >= {"message", "type", "param", "code"}
    assert fault["code"] == code
    return fault["message"]


async def test_the_gateways_own_faults_have_openais_shape(open_door: Callable[..., Any]) -> None:
    async with open_door(
        base="http://127.0.0.1:1/v1", environ={"MEMAGENT_GATEWAY_BODY_LIMIT_KB": "1"}
    ) as door:
        named = door.headers()
        await refused(door, 401, "unauthenticated", key="mk_unknown", **named)
        await refused(door, 403, "forbidden", key="read", **named)
        assert "X-User-Identifier" in await refused(door, 401, "unauthenticated")
        await refused(door, 401, "unauthenticated", **door.headers(user="{{LIBRECHAT_USER_ID}}"))
        await refused(door, 400, "bad_request", **door.headers(user="u" * 257))
        assert "baseURL" in await refused(door, 503, "model_unavailable", **named)
        async with httpx.AsyncClient(
            headers={"Authorization": f"Bearer {door.keys['turns']}", **named}
        ) as client:
            for body, status in ((b"[]", 400), (b"{", 400), (b'{"a": NaN}', 400), (b" " * 2000, 413)):
                answer = await client.post(f"{door.address}/v1/chat/completions", content=body)
                assert answer.status_code == status
                assert set(answer.json()["error"]) >= {"message", "type", "param", "code"}


async def test_an_endpoint_that_redirects_is_not_followed(open_door: Callable[..., Any]) -> None:
    async with open_door(Answer(status=307, location="http://127.0.0.1:1/")) as door:
        assert "redirects" in await refused(door, 502, "model_refused", **door.headers())


async def test_an_endpoint_that_says_nothing_is_given_up(open_door: Callable[..., Any]) -> None:
    async with (
        RawEndpoint(hold=True) as base,
        open_door(base=base, environ={"MEMAGENT_GATEWAY_TIMEOUT_S": "0.1"}) as door,
    ):
        assert "in time" in await refused(door, 503, "model_unavailable", **door.headers())


async def test_models_are_the_files_or_the_endpoints_own(open_door: Callable[..., Any]) -> None:
    async with open_door() as door:
        assert [model.id async for model in door.client().models.list()] == ["small"]
        assert door.behind.requests == []
    async with open_door(fetch=True) as door:
        assert [model.id async for model in door.client().models.list()] == ["scripted"]
        assert door.behind.requests[0].headers["authorization"] == "Bearer upstream-key"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"MEMAGENT_UPSTREAM": "gateway"}, "case counts"),
        ({"MEMAGENT_UPSTREAM": "openAI"}, "built-in"),
        ({"UPSTREAM_KEY": ""}, "apiKey"),
    ],
)
async def test_an_upstream_that_cannot_be_used_stops_the_start(
    redis_url: str, tmp_path: Path, environ: dict[str, str], words: str
) -> None:
    config = tmp_path / "librechat.yaml"
    config.write_text(configuration(api_key="${UPSTREAM_KEY}"))
    settings = {"UPSTREAM_KEY": "key", "MEMAGENT_UPSTREAM": "Gateway", "MEMAGENT_EMBEDDER": "none"}
    settings |= {
        "MEMAGENT_REDIS_URL": redis_url,
        "MEMAGENT_KEY_PREFIX": f"t-{uuid.uuid4().hex[:12]}",
        **environ,
    }
    app = create_app(settings, config=config)
    with pytest.raises(ConfigUnusable, match=words):
        async with app.router.lifespan_context(app):
            pass


async def test_without_an_upstream_the_gateway_says_so(open_door: Callable[..., Any]) -> None:
    async with open_door(environ={"MEMAGENT_UPSTREAM": " "}) as door:
        assert "MEMAGENT_UPSTREAM" in await refused(door, 404, "not_found", **door.headers())


async def test_users_do_not_see_each_others_memories(open_door: Callable[..., Any]) -> None:
    async with open_door(HELLO) as door:
        await door.remember("ada", diet="Ada eats no meat.")
        await door.client().chat.completions.create(
            model="small", messages=said("Hi"), extra_headers=door.headers("bob")
        )
        assert door.bodies[0]["messages"] == said("Hi")


async def test_headers_can_have_other_names(open_door: Callable[..., Any]) -> None:
    environ = {"MEMAGENT_GATEWAY_USER_HEADER": "X-Who", "MEMAGENT_GATEWAY_MESSAGE_HEADER": "X-What"}
    async with open_door(HELLO, environ=environ) as door:
        await door.client().chat.completions.create(
            model="small", messages=said("Hi"), extra_headers={"X-Who": "ada", "X-What": "m9"}
        )
        assert (await door.learned("ada", "m9")).over
