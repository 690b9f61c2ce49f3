"""Reading a request, putting memories into it, and the turn it stands for, whatever a client sends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.api.gateway.chat import read, turn_of
from memagent.api.gateway.kinds import Kind, kind_of
from memagent.errors import BadRequest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ROLES = st.sampled_from(["user", "assistant", "system", "developer", "tool", "function"])
MESSAGES = st.lists(
    JSON
    | st.fixed_dictionaries(
        {"role": ROLES | JSON},
        optional={"content": JSON, "tool_calls": JSON, "name": JSON, "tool_call_id": JSON, "extra": JSON},
    ),
    max_size=5,
)


def chat_of(messages: Any, **rest: Any) -> Any:
    return read(json.dumps({"messages": messages, **rest}).encode())


def turn(chat: Any) -> Any:
    return turn_of(chat, user="ada", message_id="m1", conversation_id="c1")


@settings(max_examples=150, deadline=None)
@given(MESSAGES, JSON, JSON)
def test_whatever_comes_is_judged_and_read_without_a_fault(messages: Any, tools: Any, shape: Any) -> None:
    chat = chat_of(messages, tools=tools, response_format=shape)
    kind = kind_of(chat, message_id="m1", side_prompts=("Title: {convo}",))
    if kind is Kind.TURN:
        assert turn(chat).messages[-1].role == "user"
    put = json.loads(chat.with_memories("PREFIX", "TAIL"))
    assert len(put["messages"]) - len(messages) in {0, 1}
    assert {name: value for name, value in put.items() if name != "messages"} == {
        name: value for name, value in chat.body.items() if name != "messages"
    }


def test_without_memories_the_bytes_stay() -> None:
    raw = b'{ "messages" : [ {"role":"user","content":"h\\u00e9"} ], "n":1.0 }'
    assert read(raw).with_memories("", "") is raw


def test_what_came_back_stands_before_the_newest_message_of_the_user_and_in_it() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "user", "content": [picture, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": "three"},
        {"role": "tool", "tool_call_id": "1", "content": "four"},
    ]
    put = json.loads(chat_of(messages).with_memories("", "TAIL"))["messages"]
    assert put[2]["content"] == [{"type": "text", "text": "TAIL\n\n"}, *messages[2]["content"]]
    assert [*put[:2], *put[3:]] == [*messages[:2], *messages[3:]]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_memories_go_before_the_words_of_a_leading_message(role: str) -> None:
    for content, after in (
        ("Be kind.", "PREFIX\n\nBe kind."),
        (None, "PREFIX"),
        (
            [{"type": "text", "text": "x"}],
            [{"type": "text", "text": "PREFIX\n\n"}, {"type": "text", "text": "x"}],
        ),
    ):
        messages = [{"role": role, "content": content}, {"role": "user", "content": "Hi"}]
        put = json.loads(chat_of(messages).with_memories("PREFIX", ""))["messages"]
        assert put == [{"role": role, "content": after}, messages[1]]


def test_half_a_surrogate_pair_goes_on_as_it_came_and_is_learned_without() -> None:
    chat = read(b'{"messages": [{"role": "user", "content": "caf\\u00e9 \\ud83d"}]}')
    assert b"\\ud83d" in chat.with_memories("PREFIX", "")
    assert turn(chat).messages[-1].content == "café \ufffd"


def test_a_turn_ends_with_the_newest_message_of_the_user_and_has_its_id() -> None:
    first = chat_of([{"role": "user", "content": "Rain?"}])
    call = {"id": "1", "type": "function", "index": 0, "function": {"name": "weather", "arguments": "{}"}}
    later = chat_of(
        [
            {"role": "user", "content": "Rain?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "rain"},
        ]
    )
    assert turn(first) == turn(later)
    assert turn(first).messages[-1].id == "m1"


def test_the_loop_of_an_earlier_turn_stays_in_sight() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None},
        {"role": "tool", "tool_call_id": "1", "content": "rain"},
        {"role": "user", "content": "And here?"},
    ]
    read_messages = turn(chat_of(messages)).messages
    assert read_messages[1].tool_calls[0].name == "weather"
    assert read_messages[2].tool_call_id == "1"


def test_a_picture_stays_out_of_the_turn() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [{"type": "text", "text": "What is this?"}, picture]
    [message] = turn(chat_of([{"role": "user", "content": content}])).messages
    assert message.content == ({"type": "text", "text": "What is this?"}, {"type": "image_url"})


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b'"x"', b"{", b"\xff", b'{"a": NaN}', b"[" * 100_000])
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(BadRequest):
        read(raw)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Provide a concise, 5-word-or-less title for …", Kind.ASIDE),
        ("Why does LibreChat say: Provide a concise, 5-word-or-less title for …", Kind.TURN),
        ("Analyze this conversation and provide:\n… A concise title in the detected language …", Kind.ASIDE),
        ("Analyze this conversation and provide the mood.", Kind.TURN),
        ("Gib einen Titel: User: Hallo. Kurz!", Kind.ASIDE),
        ("Gib einen Titel für mein Buch.", Kind.TURN),
    ],
)
def test_a_prompt_is_known_by_how_it_begins_and_by_all_of_its_words(text: str, kind: Kind) -> None:
    chat = chat_of([{"role": "user", "content": text}])
    assert kind_of(chat, message_id="m1", side_prompts=("Gib einen Titel: {convo} Kurz!",)) is kind


def test_a_streamed_answer_in_the_form_of_a_title_is_a_turn() -> None:
    shape = {"type": "json_schema", "json_schema": {"schema": {"properties": {"title": {}}}}}
    for streams, kind in ((True, Kind.TURN), (False, Kind.ASIDE)):
        chat = chat_of([{"role": "user", "content": "Hi"}], response_format=shape, stream=streams)
        assert kind_of(chat, message_id="m1") is kind
