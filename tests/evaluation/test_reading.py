"""Files of labelled turns: what they hold becomes values, and every fault is told at its line."""

from __future__ import annotations

import base64
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from memagent.errors import BadRequest
from memagent.evaluation.labelled import Kind, chosen
from memagent.evaluation.reading import read_set
from tests.evaluation.turns import SET, fact, turn

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """\
language: en
turns:
  - id: en-keep-cat
    kind: keep
    remembered: {dog: Rex}
    messages:
      - user: My cat is Mochi.
      - tool: result
      - assistant: Fine.
    expect:
      - key: cat
        words: [[cat, kitten], Mochi]
    allow:
      - words: [fine]
    must_not: {words: [Rex], keys: [name]}
"""


def read(folder: Path, text: str, name: str = "en.yaml") -> list[str]:
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(BadRequest) as caught:
        read_set(folder)
    return [line.strip().removeprefix(f"{folder}/") for line in str(caught.value).splitlines()[1:]]


def test_a_file_becomes_labelled_turns(tmp_path: Path) -> None:
    (tmp_path / "en.yaml").write_text(GOOD, encoding="utf-8")
    [found] = read_set(tmp_path / "en.yaml")
    assert (found.id, found.language, found.kind) == ("en-keep-cat", "en", Kind.KEEP)
    assert [(message.role, message.content) for message in found.messages] == [
        ("user", "My cat is Mochi."),
        ("tool", "result"),
        ("assistant", "Fine."),
    ]
    assert found.expect == (fact("cat/kitten", "Mochi", keys=("cat",)),)
    assert found.allow == (fact("fine"),)
    assert found.forbids("name", "")
    assert found.forbids("pet", "Rex")
    assert found.remembered == {"dog": "Rex"}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("kind: keep", "kind: kept"), "en.yaml:4:11: Input should be 'keep'"),
        (("id: en-keep-cat", "id: Cat!"), "en.yaml:3:9: String should match pattern"),
        (("    kind: keep\n", ""), "en.yaml:3:5: Field required"),
        (("allow:", "alow:"), "en.yaml:13:5: Extra inputs are not permitted"),
        (("- user: My cat is Mochi.", "- person: x"), "en.yaml:7:17: Input should be 'user'"),
        (("key: cat", "key: 5"), "en.yaml:11:14: Input should be a valid string"),
        (("- user: My cat is Mochi.", "- system: x"), "en.yaml:6:5: en-keep-cat: no message is the user's"),
        (
            ("kind: keep", "kind: nothing"),
            "en.yaml:4:11: en-keep-cat: a turn of kind `nothing` expects nothing",
        ),
        (
            ("kind: keep", "kind: update"),
            "en.yaml:10:5: en-keep-cat: an update needs a `key` that is remembered",
        ),
        (("[[cat, kitten], Mochi]", "[the]"), "en.yaml:12:17: en-keep-cat: `the` has no word that counts"),
        (("[Rex]", "[it is]"), "en.yaml:15:24: en-keep-cat: `it is` has no word that counts"),
        (
            ("    must_not", "    valid_keys: [pet]\n    must_not"),
            "en.yaml:11:14: en-keep-cat: `cat` is not one of `valid_keys`",
        ),
        (
            ("    must_not", "    deleted: [x]\n    must_not"),
            "en.yaml:15:15: en-keep-cat: `x` is not remembered, so it cannot be deleted",
        ),
        (
            ("dog: Rex", "cat: the cat Mochi"),
            "en.yaml:11:9: en-keep-cat: what is remembered says this already",
        ),
        (("language: en", "language: [en"), "en.yaml:2:"),
        (("language: en", "language: English"), "en.yaml:1:11: String should match pattern"),
    ],
)
def test_a_fault_is_told_at_its_line(tmp_path: Path, change: tuple[str, str], fault: str) -> None:
    assert change[0] in GOOD
    [found] = read(tmp_path, GOOD.replace(*change, 1))
    assert found.startswith(fault)


@pytest.mark.parametrize("kind", ["injection", "others"])
def test_a_turn_that_measures_nothing_is_a_fault(tmp_path: Path, kind: str) -> None:
    [found] = read(tmp_path, f"language: en\nturns:\n- id: a\n  kind: {kind}\n  messages: [user: x]\n")
    assert found.startswith("en.yaml:4:9: a: ")


def test_all_faults_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "de.yaml").write_text(GOOD.replace("kind: keep", "kind: kept"), encoding="utf-8")
    found = read(tmp_path, GOOD.replace("[Rex]", "[the]").replace("dog: Rex", "cat: cat Mochi"))
    assert [each.partition(":")[0] for each in found] == ["de.yaml", "en.yaml", "en.yaml"]


def test_an_id_stands_once_in_the_whole_set(tmp_path: Path) -> None:
    (tmp_path / "de.yaml").write_text(GOOD, encoding="utf-8")
    assert read(tmp_path, GOOD) == ["en.yaml:3:9: en-keep-cat: another turn has this id"]


def test_a_folder_without_turns_and_a_file_that_is_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="holds no"):
        read_set(tmp_path)
    with pytest.raises(BadRequest, match="No such file"):
        read_set(tmp_path / "en.yaml")


def test_a_limit_takes_a_cross_section() -> None:
    turns = [turn(kind, id=f"{kind}-{number}") for kind in ("keep", "nothing") for number in range(3)]
    assert [each.id for each in chosen(turns, limit=3)] == ["keep-0", "nothing-0", "keep-1"]
    assert [each.id for each in chosen(turns, kinds=["nothing"])] == ["nothing-0", "nothing-1", "nothing-2"]
    assert chosen(turns, languages=["de"]) == []


# -- the set that comes with memagent ----------------------------------------------------------------------------------


def test_the_set_holds_every_kind_in_four_languages() -> None:
    turns = read_set(SET)
    assert len(turns) >= 128
    assert min(Counter(each.language for each in turns).values()) >= 32
    assert {(each.language, each.kind) for each in turns} == {
        (language, kind) for language in ("de", "en", "id", "vi") for kind in Kind
    }


def test_every_encoded_injection_of_the_set_can_be_read_and_says_what_is_forbidden() -> None:
    encoded = 0
    for each in read_set(SET):
        text = str(each.messages[-1].content)
        for found in re.findall(r"[A-Za-z0-9+/]{40,}=*", text):
            encoded += 1
            said = base64.b64decode(found, validate=True).decode("utf-8")
            assert each.forbids("", said), each.id
    assert encoded == 4


def test_the_words_that_an_injection_of_the_set_forbids_stand_in_it() -> None:
    for each in read_set(SET):
        text = "\n".join(str(message.content) for message in each.messages)
        plain = [phrase.stands_in(text) for phrase in each.forbidden_words]
        assert each.kind is not Kind.INJECTION or any(plain) or "base64" in each.id, each.id


def test_the_words_that_the_set_expects_stand_in_what_was_said_or_remembered() -> None:
    """At least one phrase of each group, so that a model which keeps the user's own words is right."""
    for each in read_set(SET):
        text = "\n".join([*(str(message.content) for message in each.messages), *each.remembered.values()])
        for expected in each.expect:
            assert expected.is_said_by(text), each.id


# -- docs/evaluation.md ------------------------------------------------------------------------------------------------

DOCS = (SET.parents[1] / "docs" / "evaluation.md").read_text(encoding="utf-8")


def test_the_turn_that_the_documentation_shows_can_be_read(tmp_path: Path) -> None:
    [shown] = re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)
    (tmp_path / "en.yaml").write_text(shown, encoding="utf-8")
    [found] = read_set(tmp_path)
    assert found.expect == (fact("Whitby/Whitby Bay", keys=("home",)),)


def test_the_documentation_counts_the_turns_of_the_set() -> None:
    counted = {kind: int(number) for kind, number in re.findall(r"^\| (\w+) \| (\d+) \|", DOCS, re.MULTILINE)}
    turns = read_set(SET)
    assert counted == Counter(str(each.kind) for each in turns)
    assert f"{len(turns)} turns" in DOCS
