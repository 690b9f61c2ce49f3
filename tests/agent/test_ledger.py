from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from memagent.agent.ledger import Ledger, normal_key
from memagent.agent.tools import ToolOutcome, ToolStatus, arguments, specs
from memagent.lexicon import fingerprint
from memagent.memory import Evidence, Source, ToolCall
from memagent.store import DeleteMemory, SetMemory
from tests.agent.remembered import ledger


def put(book: Ledger, key: Any, value: Any) -> ToolOutcome:
    return book.run(ToolCall("c", "set_memory", json.dumps({"key": key, "value": value})))


def drop(book: Ledger, key: Any) -> ToolOutcome:
    return book.run(ToolCall("c", "delete_memory", json.dumps({"key": key})))


def error(outcome: ToolOutcome) -> dict[str, Any]:
    assert outcome.artifact is not None
    assert outcome.artifact["key"] == "system"
    assert outcome.artifact["type"] == "error"
    return {**json.loads(outcome.artifact["value"]), "base": outcome.artifact["tokenCount"]}


# -- set ---------------------------------------------------------------------------------------------------------------


def test_a_set_is_an_edit_an_artifact_and_an_answer() -> None:
    book = ledger(said="I live in Hanoi now")
    outcome = put(book, "home", "The user lives in Hanoi.")
    assert outcome.text == 'Memory set for key "home" (5 tokens)'
    assert outcome.artifact == {
        "key": "home",
        "value": "The user lives in Hanoi.",
        "tokenCount": 5,
        "type": "update",
    }
    assert outcome.status is ToolStatus.SET
    assert book.edits == (
        SetMemory(
            "home",
            "The user lives in Hanoi.",
            5,
            source=Source.AGENT,
            evidence=Evidence("c1", "m1", "I live in Hanoi now"),
            terms=("live", "hanoi"),
        ),
    )
    assert book.total == 5


@pytest.mark.parametrize(("length", "refused"), [(1_000, False), (1_001, True)])
def test_a_key_of_1000_utf16_units_is_the_longest(length: int, *, refused: bool) -> None:
    outcome = put(ledger(), "k" * length, "x")
    assert (outcome.status is ToolStatus.KEY_TOO_LONG) == refused
    if refused:
        assert outcome.text == "Key exceeds maximum length of 1000 characters."
        assert outcome.artifact is None


def test_an_emoji_is_two_units_of_a_limit() -> None:
    assert put(ledger(char_limit=4), "k", "\U0001f600\U0001f600").status is ToolStatus.SET
    assert put(ledger(char_limit=3), "k", "\U0001f600\U0001f600").status is ToolStatus.VALUE_TOO_LONG


@pytest.mark.parametrize(("limit", "refused"), [(5, False), (4, True), (None, False), (0, False), (-1, True)])
def test_the_char_limit_holds_for_the_agent_too(limit: int | None, *, refused: bool) -> None:
    outcome = put(ledger(char_limit=limit), "k", "12345")
    assert (outcome.status is ToolStatus.VALUE_TOO_LONG) == refused
    if refused:
        assert outcome.text == f"Value exceeds maximum length of {limit} characters."


def test_b02_a_key_outside_the_valid_ones_is_refused_with_the_list() -> None:
    book = ledger({"old": "x"}, valid_keys=("home", "Work Place"))
    assert put(book, "homes", "x").text == 'Invalid key "homes". Must be one of: home, Work Place'
    assert drop(book, "old").text == 'Invalid key "old". Must be one of: home, Work Place'
    assert put(book, "work place", "x").status is ToolStatus.INVALID_KEY
    assert put(book, "Work Place", "y").key == "Work Place"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("home", "home"),
        ("Home Town", "home_town"),
        ("Größe (cm)", "grosse_cm"),
        ("Sở thích", "so_thich"),
        ("__a--b__", "a_b"),
        ("食べ物2", "2"),
        ("食べ物", ""),
        ("", ""),
    ],
)
def test_without_valid_keys_the_agents_keys_are_normalised(written: str, kept: str) -> None:
    assert normal_key(written) == kept
    outcome = put(ledger(), written, "x y")
    assert outcome.status is (ToolStatus.SET if kept else ToolStatus.KEY_UNUSABLE)
    assert outcome.key == (kept or written)


def test_a_key_that_exists_is_kept_as_it_is() -> None:
    book = ledger({"Home Town": "Hue"})
    assert put(book, "Home Town", "Hanoi").key == "Home Town"
    assert drop(book, "Home Town").status is ToolStatus.DELETED


@pytest.mark.parametrize("key", ["nothing", " Nothing ", "NOTHING"])
def test_b12_the_key_nothing_is_refused(key: str) -> None:
    assert put(ledger(), key, "x").status is ToolStatus.KEY_UNUSABLE


@pytest.mark.parametrize("value", ["", " \n\t"])
def test_t50_a_blank_value_is_refused(value: str) -> None:
    assert put(ledger(), "k", value).status is ToolStatus.VALUE_EMPTY


def test_the_first_fault_in_librechats_order_is_told() -> None:
    long = "k" * 1_001
    assert put(ledger(valid_keys=("a",), char_limit=1), long, "xx").status is ToolStatus.KEY_TOO_LONG
    assert put(ledger(valid_keys=("a",), char_limit=1), "b", "xx").status is ToolStatus.VALUE_TOO_LONG
    assert (
        put(ledger({"a": "x x"}, valid_keys=("a",), token_limit=1), "b", "x").status is ToolStatus.INVALID_KEY
    )


# -- limits ------------------------------------------------------------------------------------------------------------


def test_b03_landing_exactly_on_the_limit_is_allowed_and_one_more_is_not() -> None:
    assert put(ledger({"a": "1 2 3"}, token_limit=5), "b", "4 5").status is ToolStatus.SET
    outcome = put(ledger({"a": "1 2 3"}, token_limit=5), "b", "4 5 6")
    assert outcome.status is ToolStatus.WOULD_EXCEED
    assert outcome.text == "Memory storage would exceed limit. Cannot save this memory."
    assert error(outcome) == {
        "errorType": "would_exceed",
        "tokenCount": 1,
        "totalTokens": 6,
        "tokenLimit": 5,
        "base": 3,
    }


@pytest.mark.parametrize(("held", "over"), [("1 2 3 4 5", 0), ("1 2 3 4 5 6 7", 2)])
def test_b03_a_total_at_or_over_the_limit_refuses_everything_new(held: str, over: int) -> None:
    outcome = put(ledger({"a": held}, token_limit=5), "b", "1")
    assert outcome.status is ToolStatus.ALREADY_EXCEEDED
    assert outcome.text == "Memory storage exceeded. Cannot save new memories."
    assert error(outcome) == {
        "errorType": "already_exceeded",
        "tokenCount": over,
        "totalTokens": 5 + over,
        "tokenLimit": 5,
        "base": 5 + over,
    }


def test_b04_a_rewrite_gives_the_old_value_back_first() -> None:
    book = ledger({"a": "1 2 3 4 5"}, token_limit=5)
    assert put(book, "a", "6 7 8 9 0").status is ToolStatus.SET
    assert put(book, "a", "6 7 8 9 0 1").status is ToolStatus.WOULD_EXCEED
    assert book.total == 5


def test_b05_calls_of_one_answer_cannot_exceed_the_limit_together() -> None:
    book = ledger(token_limit=5)
    assert [put(book, f"k{number}", f"{number} x x").status for number in range(3)] == [
        ToolStatus.SET,
        ToolStatus.WOULD_EXCEED,
        ToolStatus.WOULD_EXCEED,
    ]


def test_a_delete_makes_room_for_what_was_refused() -> None:
    book = ledger({"a": "1 2 3 4 5"}, token_limit=5)
    assert put(book, "b", "new").status is ToolStatus.ALREADY_EXCEEDED
    assert drop(book, "a").status is ToolStatus.DELETED
    assert put(book, "b", "new").status is ToolStatus.SET
    assert [type(edit) for edit in book.edits] == [DeleteMemory, SetMemory]


@pytest.mark.parametrize("limit", [None, 0])
def test_no_limit_is_no_limit(limit: int | None) -> None:
    assert put(ledger(token_limit=limit), "a", "x " * 10_000).status is ToolStatus.SET


@pytest.mark.parametrize("limit", [-1, -0.5, float("-inf")])
def test_a_negative_limit_is_always_passed(limit: float) -> None:
    assert put(ledger(token_limit=limit), "a", "x").status is ToolStatus.ALREADY_EXCEEDED


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, max_size=4).map(" ".join)
CALLS = st.lists(st.tuples(KEYS, VALUES | st.none()), max_size=12)


@given(st.dictionaries(KEYS, VALUES), CALLS, st.integers(1, 9))
@settings(max_examples=200)
def test_the_plan_never_adds_and_passes_the_limit(
    held: dict[str, str], calls: list[tuple[str, str | None]], limit: int
) -> None:
    book = ledger(held, token_limit=limit)
    model = dict(held)
    for key, value in calls:
        before = book.total
        outcome = drop(book, key) if value is None else put(book, key, value)
        assert book.total <= max(before, limit)
        for edit in outcome.edits:
            if isinstance(edit, DeleteMemory):
                del model[edit.key]
            else:
                model[edit.key] = edit.value
    assert book.total == sum(len(value.split()) for value in model.values())
    replayed = dict(held)
    for edit in book.edits:
        if isinstance(edit, DeleteMemory):
            del replayed[edit.key]
        else:
            replayed[edit.key] = edit.value
    assert replayed == model


# -- delete ------------------------------------------------------------------------------------------------------------


def test_a_delete_is_an_edit_an_artifact_and_an_answer() -> None:
    book = ledger({"home": "x"})
    outcome = drop(book, "home")
    assert outcome.text == 'Memory deleted for key "home"'
    assert outcome.artifact == {"key": "home", "type": "delete"}
    assert book.edits == (DeleteMemory("home"),)
    assert book.total == 0


def test_a_delete_of_what_is_not_there_is_missing() -> None:
    outcome = drop(ledger(), "home")
    assert (outcome.status, outcome.text, outcome.edits) == (
        ToolStatus.MISSING,
        'Failed to delete memory for key "home"',
        (),
    )


# -- the loop guard ----------------------------------------------------------------------------------------------------


def test_words_remembered_under_another_key_are_not_remembered_twice() -> None:
    book = ledger({"home": "The user lives in Hanoi."}, said="yes, I live in Hanoi")
    outcome = put(book, "city", "the user lives in Hanoi")
    assert (outcome.status, outcome.key) == (ToolStatus.REFRESHED, "home")
    assert outcome.text == 'Already remembered under key "home".'
    assert [(edit.key, getattr(edit, "value", None)) for edit in book.edits] == [
        ("home", "The user lives in Hanoi.")
    ]


@pytest.mark.parametrize("key", ["home", "city"])
def test_an_echo_of_what_is_remembered_makes_nothing_fresh(key: str) -> None:
    book = ledger({"home": "The user lives in Hanoi."}, said="tell me about food")
    assert put(book, key, "The user lives in Hanoi.").status is ToolStatus.REFRESHED
    assert book.edits == ()


def test_the_same_words_from_the_user_make_a_memory_fresh() -> None:
    book = ledger({"home": "The user lives in Hanoi."}, said="I live in Hanoi")
    assert put(book, "home", "The user lives in Hanoi.").status is ToolStatus.REFRESHED
    assert len(book.edits) == 1


def test_what_was_recalled_from_elsewhere_is_not_learned_here() -> None:
    shared = "The team meets on Monday."
    book = ledger(said="when do we meet?", injected={fingerprint(shared): "meeting"})
    outcome = put(book, "team_meeting", shared)
    assert (outcome.status, outcome.key, book.edits) == (ToolStatus.REFRESHED, "meeting", ())


def test_a_rename_by_set_and_delete_keeps_the_words() -> None:
    book = ledger({"home": "The user lives in Hanoi."}, said="rename it", token_limit=5)
    assert put(book, "city", "The user lives in Hanoi.").status is ToolStatus.REFRESHED
    assert drop(book, "home").status is ToolStatus.DELETED
    assert [(type(edit), edit.key) for edit in book.edits] == [(DeleteMemory, "home"), (SetMemory, "city")]
    assert book.total == 5


def test_a_rename_by_delete_and_set_keeps_the_words() -> None:
    book = ledger({"home": "The user lives in Hanoi."})
    drop(book, "home")
    assert put(book, "city", "The user lives in Hanoi.").status is ToolStatus.SET


# -- bad calls ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "{",
        "[]",
        "null",
        '"key"',
        "{}",
        '{"key": "a"}',
        '{"key": 1, "value": "x"}',
        '{"key": "a", "value": null}',
        "[" * 100_000,
    ],
)
def test_malformed_arguments_are_an_outcome(arguments: str) -> None:
    book = ledger()
    outcome = book.run(ToolCall("c", "set_memory", arguments))
    assert outcome.status is ToolStatus.BAD_ARGUMENTS
    assert "set_memory" in outcome.text
    assert book.edits == ()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2)
)


@given(
    st.sampled_from(["set_memory", "delete_memory"]),
    st.dictionaries(st.sampled_from(["key", "value", "more"]), ANYTHING | st.text(max_size=5)) | ANYTHING,
)
def test_a_call_is_taken_exactly_when_it_fits_the_schema_that_the_model_was_shown(
    name: str, written: Any
) -> None:
    [spec] = [spec for spec in specs() if spec.name == name]
    schema = {**spec.parameters, "additionalProperties": True}
    taken = arguments(ToolCall("c", name, json.dumps(written)))
    assert isinstance(taken, dict) == Draft202012Validator(schema).is_valid(written)


def test_an_unknown_tool_is_an_outcome() -> None:
    outcome = ledger().run(ToolCall("c", "send_email", "{}"))
    assert outcome.status is ToolStatus.UNKNOWN_TOOL
    assert outcome.text == 'There is no tool "send_email". The tools are: set_memory, delete_memory.'


def test_the_very_same_call_is_repeated_and_changes_nothing() -> None:
    book = ledger(said="x")
    first, second = put(book, "a", "x"), put(book, "a", "x")
    assert (second.status, second.text, second.edits) == (ToolStatus.REPEATED, first.text, ())
    assert len(book.edits) == 1


def test_a_call_is_not_repeated_once_its_key_changed() -> None:
    book = ledger(said="x y")
    assert [put(book, "a", value).status for value in ("x", "y", "x")] == [ToolStatus.SET] * 3


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
@settings(max_examples=100)
def test_no_call_raises(name: str, key: str, value: str) -> None:
    book = ledger(said=value, token_limit=20, char_limit=20)
    for call in (name, "set_memory", "delete_memory"):
        book.run(ToolCall("c", call, json.dumps({"key": key, "value": value})))
        book.run(ToolCall("c", call, key))


def test_lone_surrogates_in_a_call_become_replacement_characters() -> None:
    book = ledger(said="x")
    outcome = put(book, "a", "x\ud800")
    assert outcome.artifact is not None
    assert outcome.artifact["value"] == "x\ufffd"
