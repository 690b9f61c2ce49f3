from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memagent.errors import BadRequest
from memagent.memory import Message
from memagent.report.machine import dump
from memagent.turn import Turn, parse_turn, turn_schema


def body(**changes: Any) -> dict[str, Any]:
    return {"user": "u", "message_id": "m", "messages": [{"role": "user", "content": "hello"}]} | changes


def test_a_turn_is_openai_messages_and_who_and_which() -> None:
    calls = [{"id": "t1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "hello there"}]},
        {"role": "assistant", "content": None, "tool_calls": calls, "refusal": None},
        {"role": "tool", "content": "42", "tool_call_id": "t1"},
    ]
    turn = parse_turn(json.dumps(body(messages=messages)))
    assert [message.role for message in turn.messages] == ["user", "assistant", "tool"]
    assert turn.messages[1].tool_calls[0].name == "search"
    assert turn.query == "hello there"


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"user": ""}, "user"),
        ({"user": None}, "user"),
        ({"message_id": 5}, "message_id"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
        ({"message": []}, "message"),
        ({"user_fields": {"email": 5}}, "user_fields.email"),
    ],
)
def test_a_fault_of_a_turn_is_named_by_its_path(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(BadRequest, match=path):
        parse_turn(body(**changes))


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(BadRequest) as fault:
        parse_turn({"user": "", "messages": []})
    assert all(name in str(fault.value) for name in ("user", "message_id", "messages"))


def test_a_fault_never_repeats_what_was_said() -> None:
    with pytest.raises(BadRequest) as fault:
        parse_turn(body(messages=[{"role": "user", "content": {"secret": "sesame"}}]))
    assert "sesame" not in str(fault.value)


@given(st.binary())
def test_bytes_of_any_kind_are_a_turn_or_a_clear_fault(data: bytes) -> None:
    with suppress(BadRequest):
        assert parse_turn(data).user


def test_deep_nesting_is_a_clear_fault() -> None:
    with pytest.raises(BadRequest):
        parse_turn("[" * 100_000)


def test_half_of_a_surrogate_pair_is_replaced_and_the_turn_kept() -> None:
    turn = parse_turn(
        '{"user": "u", "message_id": "m", "messages": [{"role": "user", "content": "ein \\ud83d Wort"}]}'
    )
    assert turn.messages[0].content == "ein � Wort"


@pytest.mark.parametrize(
    ("messages", "query"),
    [
        ((Message("user", "Ja"),), ""),
        ((Message("user", " ab\n"),), ""),
        ((Message("user", "abc"),), "abc"),
        ((Message("user", "first one"), Message("assistant", "an answer")), "first one"),
        ((Message("user", "first one"), Message("user", None)), ""),
        ((Message("system", "be nice"),), ""),
        ((Message("user", "x" * 2_000),), "x" * 1_000),
    ],
)
def test_t28_only_the_newest_user_message_is_searched_with(messages: tuple[Message, ...], query: str) -> None:
    assert Turn("u", "m", messages).query == query


def test_the_users_key_and_fields_stay_out_of_every_repr() -> None:
    turn = Turn("u", "m", (), user_fields={"email": "juno@example.org"}, user_key="sk-secret")
    assert "juno@" not in repr(turn)
    assert "sk-secret" not in repr(turn)


SCHEMA = Path(__file__).parent.parent / "schemas" / "turn.schema.json"


def test_the_committed_schema_is_the_generated_one() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == dump(turn_schema()), "run `make generate`"


def test_the_schema_is_a_schema_and_its_examples_are_turns() -> None:
    schema = turn_schema()
    Draft202012Validator.check_schema(schema)
    for example in schema["examples"]:
        assert Draft202012Validator(schema).is_valid(example)
        assert parse_turn(json.dumps(example)).query == "Good. Mine is called Mochi, please remember that."


def test_every_field_of_a_turn_says_what_it_is() -> None:
    schema = turn_schema()
    shapes = [schema, *schema["$defs"].values()]
    silent = [
        f"{shape['title']}.{name}"
        for shape in shapes
        for name, field in shape["properties"].items()
        if "description" not in field and "$ref" not in field
    ]
    assert silent == []


@pytest.mark.parametrize(
    ("changes", "fits"),
    [
        ({}, True),
        ({"user": ""}, False),
        ({"messages": []}, False),
        ({"messages": [{"role": "robot"}]}, False),
        ({"messages": [{"role": "user", "content": 5}]}, False),
        ({"messages": [{"role": "user", "refusal": None}]}, True),
        ({"message": []}, False),
        ({"shared": ["s"] * 17}, False),
        ({"user_fields": {"email": 5}}, False),
    ],
)
def test_the_schema_and_the_reader_agree(changes: dict[str, Any], fits: bool) -> None:
    assert Draft202012Validator(turn_schema()).is_valid(body(**changes)) is fits
    if fits:
        parse_turn(body(**changes))
    else:
        with pytest.raises(BadRequest):
            parse_turn(body(**changes))
