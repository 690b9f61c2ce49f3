"""zod in small: clean, dirty and aborted values, and the order and words of issues."""

from __future__ import annotations

from typing import Any

import pytest

from memagent.config import zod
from memagent.config.scalars import Date
from memagent.config.zod import INVALID, Run, Schema, property_names


def read(schema: Schema, value: Any) -> tuple[Any, list[tuple[Any, str, str]]]:
    run = Run({})
    out = schema.read(value, (), run)
    return out, [(issue.path, issue.code, issue.message) for issue in run.issues]


def test_a_broken_bound_is_dirty_and_a_broken_type_aborts_what_is_around() -> None:
    schema = zod.Refined(
        zod.Object(a=zod.Needed(zod.Number(min=1)), b=zod.TEXT), zod.rule(lambda _value: False, "rule ran")
    )
    assert read(schema, {"a": 0}) == (
        {"a": 0},
        [(("a",), "too_small", "Number must be greater than or equal to 1"), ((), "custom", "rule ran")],
    )
    assert read(schema, {"a": "x"}) == (
        INVALID,
        [(("a",), "invalid_type", "Expected number, received string")],
    )


def test_absent_is_not_null() -> None:
    schema = zod.Object(a=zod.TEXT, b=zod.Needed(zod.TEXT), c=zod.Nullable(zod.TEXT), d=zod.ON)
    assert read(schema, {"b": "x", "c": None}) == ({"b": "x", "c": None, "d": True}, [])
    assert read(schema, {"a": None})[1] == [
        (("a",), "invalid_type", "Expected string, received null"),
        (("b",), "invalid_type", "Required"),
    ]


def test_issues_come_in_the_order_of_the_schema_and_unknown_keys_last_in_javascripts_order() -> None:
    schema = zod.Strict(a=zod.NUMBER, b=zod.NUMBER)
    assert read(schema, {"z": 1, "10": 1, "b": "x", "2": 1, "a": "y"})[1] == [
        (("a",), "invalid_type", "Expected number, received string"),
        (("b",), "invalid_type", "Expected number, received string"),
        ((), "unrecognized_keys", "Unrecognized key(s) in object: '2', '10', 'z'"),
    ]


def test_a_union_takes_the_first_clean_option_then_the_first_dirty_one() -> None:
    schema = zod.Union(zod.Number(max=1), zod.Number(max=5), zod.TEXT)
    assert read(schema, 3) == (3, [])
    assert read(schema, 9) == (9, [((), "too_big", "Number must be less than or equal to 1")])
    assert read(schema, None) == (INVALID, [((), "invalid_union", "Invalid input")])


def test_a_change_sees_clean_values_only_and_a_pipe_passes_dirty_ones_by() -> None:
    short = zod.Text(max=1)
    assert read(zod.Transformed(short, lambda text, _run: text + "!"), "a") == ("a!", [])
    assert read(zod.Transformed(short, lambda text, _run: text + "!"), "ab")[0] is INVALID
    assert read(zod.Piped(short, zod.Literal("b")), "ab")[0] == "ab"
    assert read(zod.Piped(short, zod.Literal("b")), "a")[0] is INVALID


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("x", "string"), (1, "number"), (1.5, "number"), (float("nan"), "nan"), (True, "boolean"), (None, "null"),
        ([], "array"), ({}, "object"), (b"x", "object"), (Date(0), "date"),
    ],
)  # fmt: skip
def test_types_have_zods_names(value: Any, name: str) -> None:
    assert read(zod.ABSENT, value)[1] == [((), "invalid_type", f"Expected undefined, received {name}")]


def test_truth_is_no_number_and_numbers_are_no_choice() -> None:
    assert read(zod.NUMBER, True)[0] is INVALID
    assert read(zod.FLAG, 1)[0] is INVALID
    assert read(zod.Choice(0, 1, native=True), True)[0] is INVALID
    assert read(zod.Choice(0, 1, native=True), 1.0) == (1.0, [])
    assert read(zod.Choice("a"), 1)[1] == [((), "invalid_type", "Expected 'a', received number")]


def test_texts_are_as_long_as_javascript_counts() -> None:
    assert read(zod.Text(max=1), "é")[1] == []
    assert read(zod.Text(max=1), "😀")[1] == [((), "too_big", "String must contain at most 1 character(s)")]


def test_infinity_is_no_integer_and_a_whole_float_is() -> None:
    whole = zod.Number(int=True)
    assert read(whole, 3.0) == (3.0, [])
    assert read(whole, float("inf"))[1] == [((), "invalid_type", "Expected integer, received float")]


def test_bytes_are_an_object_with_numbered_keys() -> None:
    assert read(zod.Record(zod.NUMBER), b"ab") == ({"0": 97, "1": 98}, [])
    assert read(zod.Strict(), b"a")[1] == [((), "unrecognized_keys", "Unrecognized key(s) in object: '0'")]


def test_array_indices_come_first_and_look_alikes_do_not() -> None:
    names = ["b", "01", "4294967295", "4294967294", "7", "-1", "1.0", "a"]
    assert property_names(dict.fromkeys(names)) == [
        "7",
        "4294967294",
        "b",
        "01",
        "4294967295",
        "-1",
        "1.0",
        "a",
    ]
