"""Reading YAML: what js-yaml makes of it (recorded answers), where everything stands, and what is said when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memagent.config.document import (
    MAX_BYTES,
    Date,
    Document,
    Mapping,
    Node,
    Scalar,
    Sequence,
    parse,
    plain,
)
from memagent.config.findings import LibreChat
from memagent.config.scalars import number_text
from memagent.config.zod import property_names

CASES = json.loads((Path(__file__).parent.parent / "cases" / "yaml.json").read_text(encoding="utf-8"))
RECURSIVE = "MEM005"


def read(text: str) -> Document:
    return parse(text.encode("utf-8"), "f.yaml")


def shown(value: Any) -> Any:
    """A value as the recorded answers write it."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return {"number": number_text(value)}
    if isinstance(value, Date):
        return {"date": value.epoch_ms}
    if isinstance(value, bytes):
        return {"bytes": list(value)}
    if isinstance(value, list):
        return [shown(item) for item in value]
    return {"object": [[name, shown(value[name])] for name in property_names(value)]}


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["text"])[:50])
def test_a_text_means_what_js_yaml_makes_of_it(case: dict[str, Any]) -> None:
    document = read(case["text"])
    if "error" in case:
        assert document.root is None
    elif case["value"] is None:
        assert document.root is None
        assert document.findings[0].code == "MEM006"
    elif document.root is None:
        assert document.findings[0].code == RECURSIVE, (
            "only aliases to themselves are read by js-yaml and not by us"
        )
    else:
        assert shown(plain(document.root)) == case["value"]


def nodes(node: Node) -> list[Node]:
    below: list[Node] = [node]
    if isinstance(node, Sequence):
        for item in node.items:
            below += nodes(item)
    if isinstance(node, Mapping):
        for entry in node.entries.values():
            below += nodes(entry.value)
    return below


TOKENS = [
    "a",
    "b: ",
    "- ",
    "\n",
    "\n  ",
    '"',
    "'",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ">",
    "&x ",
    "*x",
    "!!str ",
    "? ",
    ": ",
    "#",
    "\t",
    "<<: ",
    "---",
    "1.5",
    "é",
    "😀",
    "\x00",
    "\r\n",
    "\\",
    "%",
    "@",
    "|",
]
TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(TOKENS), max_size=20).map("".join))


@given(st.one_of(st.binary(max_size=60), TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_bytes_never_raise_and_an_unreadable_file_has_one_finding(data: bytes) -> None:
    document = parse(data, "f.yaml")
    assert (document.root is None) == (len(document.findings) == 1)
    for finding in document.findings:
        assert finding.message == finding.message.strip()
        assert finding.code.startswith("MEM")
    if document.root is not None:
        for node in nodes(document.root):
            assert 0 <= node.start <= node.end <= len(document.text) + 1
            assert node.span.start <= node.span.end


@given(TEXTS)
def test_a_byte_order_mark_changes_nothing(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    if data.startswith(b"\xef\xbb\xbf"):
        return
    bare, marked = parse(data, "f"), parse(b"\xef\xbb\xbf" + data, "f")
    assert bare.text == marked.text
    assert [finding.message for finding in bare.findings] == [finding.message for finding in marked.findings]
    assert marked.bom


def test_places_count_lines_and_columns_in_code_points_from_one() -> None:
    document = read('é: "😀"\r\nmemory:\r  tokenLimit: 2000 # so much\n')
    assert isinstance(document.root, Mapping)
    value = document.node_at(("memory", "tokenLimit"))
    assert isinstance(value, Scalar)
    assert (value.raw, value.plain) == ("2000", True)
    assert (value.span.start.line, value.span.start.column) == (3, 15)
    assert (value.span.end.line, value.span.end.column) == (3, 19)
    emoji = document.node_at(("é",))
    assert isinstance(emoji, Scalar)
    assert (emoji.span.start.column, emoji.span.end.column, emoji.raw, emoji.plain) == (4, 7, '"😀"', False)


def test_the_smallest_span_is_a_scalar_or_a_key_or_what_stands_next_to_it() -> None:
    document = read("memory:\n  validKeys: [a, b]\n  text: |\n    one\n    two\n")

    def place(*path: str | int) -> str:
        span = document.span_at(path)
        assert span is not None
        return document.text[span.start.offset : span.end.offset]

    assert place("memory", "validKeys", 1) == "b"
    assert place("memory", "validKeys") == "validKeys"
    assert place("memory", "validKeys", 7) == "validKeys"
    assert place("memory", "text") == "|"
    assert place("nothing") == "memory:"
    assert document.node_at(("memory", 0)) is None
    assert document.span_at(("memory", "agent", "id")) == document.span_at(("memory",))


def test_an_alias_stands_where_it_is_written_and_a_merged_key_where_it_was_set() -> None:
    document = read("a: &x {p: 1}\nb: *x\nc:\n  <<: *x\n  q: 2\n")
    assert isinstance(document.root, Mapping)
    alias = document.root.entries["b"].value
    assert (alias.span.start.line, alias.span.start.column, alias.span.end.column) == (2, 4, 6)
    merged = document.root.entries["c"].value
    assert isinstance(merged, Mapping)
    assert [(name, entry.merged, entry.key_span.start.line) for name, entry in merged.entries.items()] == [
        ("p", True, 1),
        ("q", False, 5),
    ]


FAULTS = [
    ("a: 1\n\tb: 2\n", "MEM007", (2, 1), "tab"),
    ('a: "x\nb: 2\n', "MEM008", (1, 4), "never closed"),
    ("a: 'x\nb: 2\n", "MEM008", (1, 4), "never closed"),
    ("a: @x\n", "MEM009", (1, 4), "`@` cannot start"),
    ("a: `x`\n", "MEM009", (1, 4), "``` cannot start"),
    ("a: %x\n", "MEM009", (1, 4), "`%` cannot start"),
    ("a: !env X\n", "MEM010", (1, 4), "unknown tag `!env`"),
    ("a: !!int x\n", "MEM010", (1, 4), "not what its tag"),
    ("a: *nobody\n", "MEM011", (1, 4), "`*nobody` names no anchor"),
    ("a: 1\n---\nb: 2\n", "MEM012", (2, 1), "more than one document"),
    ("a: x\x07y\n", "MEM013", (1, 5), "control character"),
    ("a: x\0y\n", "MEM013", (1, 5), "NUL"),
    ("a: 1\nb: {{ .Values.x | quote }}x\n", "MEM014", (2, 4), "template"),
    ("{% if x %}\na: 1\n{% endif %}\n", "MEM014", (1, 1), "template"),
    ("a: 1\nb: 2\na: 3\n", "MEM102", (3, 1), "duplicate key `a`"),
    ("a: &x {b: *x}\n", "MEM005", (1, 11), "inside of what it names"),
    ("[" * 101, "MEM004", (1, 100), "levels of nesting"),
    ("", "MEM006", (1, 1), "empty"),
    ("# nothing\n", "MEM006", (1, 1), "comments"),
    ("a: b: c\n", "MEM001", (1, 5), "a second `: `"),
    ("a:b\nc: 1\n", "MEM001", (1, 2), "space is missing"),
    ("a: 1\nb:2\nc: 3\n", "MEM001", (2, 2), "space is missing"),
    ("a: 1\nb\nc: 3\n", "MEM001", (2, 1), "colon is missing"),
    ("a: [1 2, 3\n", "MEM001", (1, 4), "never closed"),
    ("a: [1\nb: 2]\n", "MEM001", (2, 1), "comma is missing"),
    ("a: [1,, 2]\n", "MEM001", (1, 7), "comma with nothing"),
    ("a:\n   b: 1\n  c: 2\n", "MEM001", (3, 3), "bad indentation"),
    ("- a\n b: c\n", "MEM001", (2, 2), "continues the value above"),
    ("a: 'it's'\n", "MEM001", (1, 8), "behind the closing quote"),
    ('a: "\\d+"\n', "MEM001", (1, 5), "escape"),
    ("a: |x\n", "MEM001", (1, 5), "behind `|`"),
    ("<<: 1\n", "MEM001", (1, 1), "`<<` wants a mapping"),
]


@pytest.mark.parametrize(
    ("text", "code", "place", "words"), FAULTS, ids=[repr(row[0])[:40] for row in FAULTS]
)
def test_a_fault_is_named_in_words_at_the_place_to_look_at(
    text: str, code: str, place: tuple[int, int], words: str
) -> None:
    document = read(text)
    assert document.root is None
    (finding,) = document.findings
    assert finding.span is not None
    assert (finding.code, (finding.span.start.line, finding.span.start.column)) == (code, place)
    assert words in finding.message


def test_a_duplicate_key_points_at_the_first_one() -> None:
    (finding,) = read("memory:\n  tokenLimit: 1\n  tokenLimit: 2\n").findings
    (label,) = finding.labels
    assert (label.text, label.span.start.line, label.span.start.column, label.span.end.column) == (
        "first set here",
        2,
        3,
        13,
    )
    assert finding.librechat is LibreChat.REJECTS


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a: \xe9\n", "byte 0xe9"),
        ("a: 1\n".encode("utf-16"), "UTF-16"),
        ("a: 1\n".encode("utf-32"), "UTF-32"),
        (b"a: \xed\xa0\x80\n", "byte 0xed"),
    ],
)
def test_other_encodings_are_named(data: bytes, words: str) -> None:
    document = parse(data, "f.yaml")
    assert document.root is None
    assert document.findings[0].code == "MEM002"
    assert words in document.findings[0].message


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"a" * (MAX_BYTES + 1), "MEM003"),
        (b"[" + b"a," * 200_000 + b"]", "MEM003"),
        (b"- a\n" * 200_000, "MEM003"),
        (b"- " * 10_000, "MEM004"),
        (b"a: &a [" + b"x," * 9 + b"]\n" + b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(98, 110)), "MEM005"),
        (b"a0: &a0 {x: 1}\n" + b"".join(b"a%d: &a%d {y: *a%d}\n" % (n, n, n - 1) for n in range(1, 300)), "MEM005"),
        (b"a: &a {" + b",".join(b"k%d: 1" % n for n in range(9000)) + b"}\nb: {<<: *a}\nc: {<<: *a}\n", "MEM005"),
    ],
    ids=["bytes", "flow", "block", "nesting", "laughs", "chain", "merges"],
)  # fmt: skip
def test_what_is_no_configuration_any_more_is_refused(data: bytes, code: str) -> None:
    document = parse(data, "f.yaml")
    assert document.root is None
    assert [finding.code for finding in document.findings] == [code]


def test_a_file_of_just_the_allowed_size_is_read() -> None:
    text = b"a: " + b"x" * (MAX_BYTES - 4) + b"\n"
    assert len(text) == MAX_BYTES
    assert parse(text, "f").root is not None


def test_nothing_that_a_node_shows_of_itself_holds_a_value() -> None:
    document = read("endpoints: {custom: [{apiKey: sk-hidden}]}\n")
    assert "sk-hidden" not in repr(document.root)
