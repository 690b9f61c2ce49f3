"""`eval` from the command line: baselines, a real endpoint over HTTP, and its exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from memagent.cli import cli, run
from memagent.llm.script import Answer, Rule, Script, calling
from memagent.llm.scripted import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SET = """\
language: en
turns:
  - id: en-keep-cat
    kind: keep
    messages: [user: My cat is called Mochi.]
    expect: [{words: [Mochi]}]
  - id: en-nothing-sky
    kind: nothing
    messages: [user: Why is the sky blue?]
"""
CONFIG = """\
version: 1.3.17
endpoints:
  custom:
    - {name: Gate, apiKey: '${GATE_KEY}', baseURL: '${GATE_URL}', models: {default: [some]}}
memory:
  validKeys: [other]
  agent:
    provider: Gate
    model: some
    instructions: Keep what is said about cats.
    model_parameters: {temperature: 0.5}
"""


def invoke(*arguments: str, **environ: str) -> Any:
    return CliRunner().invoke(cli, ["eval", *arguments], obj=environ, standalone_mode=False)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    answers = (calling("set_memory", key="cat", value="The cat is called Mochi."),)
    played = ScriptedServer(
        Script([Rule(answers, user="mochi"), Rule((Answer(status=400),), user="sky", times=1)]), api_key="k"
    )
    played.start()
    yield played
    played.stop()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "set.yaml").write_text(SET)
    (tmp_path / "librechat.yaml").write_text(CONFIG)
    return tmp_path


def test_a_baseline_is_scored_on_the_set_that_comes_along() -> None:
    done = invoke("--scripted", "perfect", "--json")
    found = json.loads(done.stdout)
    assert done.return_value == 0
    assert found["overall"]["f1"] == 1.0
    assert found["turns"] >= 128
    assert list(found["by_language"]) == ["de", "en", "id", "vi"]
    assert found["wrong"] == found["faults"] == []


def test_languages_kinds_and_a_limit_choose_turns() -> None:
    chosen = ("--language", "vi", "--language", "de", "--kind", "injection", "--kind", "forget")
    found = json.loads(invoke("--scripted", "greedy", "--json", *chosen, "--limit", "6").stdout)
    assert found["turns"] == 6
    assert set(found["by_language"]) == {"vi", "de"}
    assert set(found["by_kind"]) == {"injection", "forget"}


def test_people_get_a_report_with_the_worst_misses() -> None:
    done = invoke("--scripted", "greedy", "--language", "en", "--misses", "2")
    assert "baseline greedy on eval: 35 of 35 turns answered" in done.stdout
    assert done.stdout.count("  said ") == 2
    assert "injection obeyed" in done.stdout


def test_the_model_of_a_file_is_asked_with_its_instructions(files: Path, server: ScriptedServer) -> None:
    arguments = ("--config", str(files / "librechat.yaml"), "--set", str(files / "set.yaml"), "--json")
    out = ("--out", str(files / "results.jsonl"))
    environ = {"GATE_URL": server.base_url, "GATE_KEY": "k"}

    first = invoke(*arguments, *out, **environ)
    found = json.loads(first.stdout)
    assert first.return_value == 1
    assert [fault["turn"] for fault in found["faults"]] == ["en-nothing-sky"]
    assert (found["overall"]["turns"], found["overall"]["recall"]["value"]) == (1, 1.0)
    body = server.requests[0].body
    assert str(body["messages"][0]["content"]).startswith("Keep what is said about cats.")
    assert (body["model"], body["temperature"]) == ("some", 0.5)
    assert "other" not in json.dumps(body["tools"]), "the set's own keys hold, not the file's"

    second = invoke(*arguments, *out, **environ)
    assert second.return_value == 0
    assert len(server.requests) == 3, "only the turn without an answer is asked again"
    assert json.loads(second.stdout)["faults"] == []


def test_another_model_takes_the_place_of_the_files_own(files: Path, server: ScriptedServer) -> None:
    arguments = ("--config", str(files / "librechat.yaml"), "--set", str(files / "set.yaml"), "--limit", "1")
    done = invoke(*arguments, "--model", "nobody/knows-this", "--json")
    assert done.return_value == 1
    found = json.loads(done.stdout)
    assert found["model"] == "nobody/knows-this"
    assert [fault["code"] for fault in found["faults"]] == ["model_refused"]
    assert server.requests == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "name what is measured"),
        (["--scripted", "perfect", "--model", "openai/x"], "name what is measured"),
        (["--scripted", "best"], "'best' is not one of"),
        (["--scripted", "perfect", "--language", "fr"], "no turn of"),
        (["--scripted", "perfect", "--set", "nowhere.yaml"], "cannot be read"),
        (["--config", "nowhere.yaml"], "cannot be read"),
    ],
)
def test_what_cannot_be_run_is_told_and_exits_2(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_a_file_without_an_agent_has_nothing_to_measure(files: Path) -> None:
    (files / "librechat.yaml").write_text("version: 1.3.17\nmemory: {}\n")
    assert run(["eval", "--config", str(files / "librechat.yaml")]) == 2
