"""`memagent sessions` as people call it: a folder of sessions in, tables or JSON out."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from memagent.cli import ExitCode, cli, run
from memagent.errors import NoSuchSession
from memagent.llm.script import Answer, Rule, Script
from memagent.llm.scripted import ScriptedServer
from memagent.memory import Message, ToolCall
from memagent.sessions.archive import archives
from memagent.sessions.service import Said, Sessions, SessionSettings

if TYPE_CHECKING:
    from pathlib import Path

MAIN, OTHER = "agent:main:main", "agent:main:direct:ada"
LONG_AGO = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder whose agent `main` has two sessions, one of them unused for long, and one that was reset."""

    async def talk() -> None:
        for key, at in ((OTHER, LONG_AGO), (MAIN, datetime.now(UTC))):
            sessions = Sessions(
                tmp_path / "sessions" / "main", clock=lambda at=at: at, settings=SessionSettings(sync=False)
            )
            await sessions.receive(key, "xin chào [bold]Größe[/bold]")
            call = Message("assistant", None, tool_calls=(ToolCall("1", "look_up", '{"q":"tea"}'),))
            answers = [
                Said(call),
                Said(Message("tool", "found", tool_call_id="1")),
                Said(Message("assistant", "hello")),
            ]
            await sessions.record(key, answers)
        await sessions.receive(MAIN, "/new again")

    asyncio.run(talk())
    return tmp_path


def sessions(data: Path, *arguments: str, environ: dict[str, str] | None = None) -> Any:
    given = {"MEMAGENT_DATA_DIR": str(data), **(environ or {})}
    result = CliRunner().invoke(cli, ["sessions", *arguments], obj=given)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def as_json(data: Path, *arguments: str) -> Any:
    return json.loads(sessions(data, *arguments, "--json").stdout)


def test_list_shows_the_latest_used_first(data: Path) -> None:
    rows = as_json(data, "list")
    assert [row["key"] for row in rows] == [MAIN, OTHER]
    assert rows[1]["kind"] == "direct"
    table = sessions(data, "list").stdout
    assert table.index(MAIN) < table.index(OTHER)


def test_list_of_archived_sessions(data: Path) -> None:
    (row,) = as_json(data, "list", "--archived")
    assert row["reason"] == "reset"
    assert row["sessionId"] in sessions(data, "list", "--archived").stdout


def test_another_agent_has_sessions_of_its_own(data: Path) -> None:
    assert as_json(data, "list", "--agent", "Ops Team!") == []
    assert "there are no sessions" in sessions(data, "list", "--agent", "ops").stdout


def test_show_by_key_by_id_and_of_an_archived_session(data: Path) -> None:
    by_key = as_json(data, "show", OTHER.upper())
    assert [message["role"] for message in by_key["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert as_json(data, "show", by_key["sessionId"]) == by_key
    assert as_json(data, "show", by_key["sessionId"][:8]) == by_key
    assert "0 in, 0 out" in sessions(data, "show", OTHER).stdout
    (ended,) = as_json(data, "list", "--archived")
    assert as_json(data, "show", ended["sessionId"])["messages"][-1]["text"] == "hello"
    assert as_json(data, "show", ended["sessionId"])["totals"]["input"] == 0
    assert as_json(data, "show", MAIN)["parentSession"] == ended["sessionId"]
    assert len(as_json(data, "show", OTHER, "--last", "1")["messages"]) == 1


def test_show_takes_what_was_said_as_text_not_as_markup(data: Path) -> None:
    assert "[bold]Größe[/bold]" in sessions(data, "show", OTHER).stdout


def test_a_session_that_is_not_there_is_named_with_exit_code_1(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMAGENT_DATA_DIR", str(data))
    for command in (["show", "nobody"], ["export", "nobody"], ["reset", "agent:a:b"], ["pin", "agent:a:b"]):
        assert run(["sessions", *command]) == ExitCode.FINDINGS
        assert "no_such_session" in capsys.readouterr().err
    with pytest.raises(NoSuchSession):
        sessions(data, "show", "../../etc/passwd")


def test_export_in_three_forms(data: Path) -> None:
    document = sessions(data, "export", OTHER).stdout
    assert "## user, 2026-01-01T12:00:00" in document
    assert 'calls `look_up` with `{"q":"tea"}`' in document
    session_id = as_json(data, "show", OTHER)["sessionId"]
    raw = (data / "sessions" / "main" / f"{session_id}.jsonl").read_bytes()
    assert sessions(data, "export", OTHER, "--format", "jsonl").stdout_bytes == raw
    assert json.loads(sessions(data, "export", OTHER, "--format", "json").stdout)["sessionId"] == session_id


def test_reset_archives_and_begins_anew(data: Path) -> None:
    before = as_json(data, "show", MAIN)["sessionId"]
    done = as_json(data, "reset", MAIN)
    assert done["sessionId"] != before
    assert as_json(data, "show", MAIN)["parentSession"] == before
    assert before in [row["sessionId"] for row in as_json(data, "list", "--archived")]


def test_cleanup_is_rehearsed_first_and_archives_when_applied(data: Path) -> None:
    folder = data / "sessions" / "main"
    os.utime(folder, (LONG_AGO.timestamp(),) * 2)
    plan = as_json(data, "cleanup")
    assert [(row["why"], row["key"], row["erased"]) for row in plan["victims"]] == [("unused", OTHER, False)]
    assert "--apply carries it out" in sessions(data, "cleanup").stdout
    assert len(as_json(data, "list")) == 2
    done = as_json(data, "cleanup", "--apply")
    assert (done["applied"], done["done"]) == (True, 1)
    assert [row["key"] for row in as_json(data, "list")] == [MAIN]
    assert "deleted" in [str(each.reason) for each in archives(folder)]
    assert "nothing to clean up" in sessions(data, "cleanup").stdout


def test_cleanup_spares_what_is_pinned_or_said_to_be_active(data: Path) -> None:
    spared = as_json(data, "cleanup", "--active", OTHER.upper())
    assert (spared["victims"], len(spared["warnings"])) == ([], 1)
    as_json(data, "pin", OTHER)
    assert as_json(data, "cleanup", "--apply")["done"] == 0
    assert "pinned" in sessions(data, "list").stdout
    as_json(data, "pin", OTHER, "--off")
    assert as_json(data, "cleanup", "--apply")["done"] == 1


def test_cleanup_by_cap_and_by_days(data: Path) -> None:
    days = (datetime.now(UTC) - LONG_AGO + timedelta(days=2)).days
    assert as_json(data, "cleanup", "--days", str(days))["victims"] == []
    (victim,) = as_json(data, "cleanup", "--days", str(days), "--cap", "1")["victims"]
    assert (victim["why"], victim["key"]) == ("over_cap", OTHER)


CONFIG = """
version: '1.3.17'
endpoints:
  custom:
    - name: Gateway
      apiKey: key
      baseURL: {url}
      models: {{default: [small], fetch: false}}
memory:
  agent: {{enabled: true, provider: Gateway, model: small}}
"""


def test_compact_learns_then_summarises_with_the_memory_agents_model(data: Path, redis_url: str) -> None:
    script = Script(
        [Rule((Answer("nothing new"),), tools=True), Rule((Answer("they said hello"),), tools=False)]
    )
    server = ScriptedServer(script)
    server.start()
    try:
        config = data / "librechat.yaml"
        config.write_text(CONFIG.format(url=server.base_url))
        environ = {
            "MEMAGENT_REDIS_URL": redis_url,
            "MEMAGENT_KEY_PREFIX": f"t-{os.getpid()}-compact",
            "MEMAGENT_EMBEDDER": "none",
        }
        arguments = ("compact", OTHER, "--config", str(config), "--user", "juno")
        short = sessions(data, *arguments, environ=environ)
        assert "fewer than 10" in short.stdout

        async def more() -> None:
            desk = Sessions(
                data / "sessions" / "main", clock=lambda: LONG_AGO, settings=SessionSettings(sync=False)
            )
            for n in range(6):
                await desk.receive(OTHER, f"question {n}")
                await desk.record(OTHER, [Said(Message("assistant", f"answer {n}"))])

        asyncio.run(more())
        done = json.loads(sessions(data, *arguments, "--json", environ=environ).stdout)
    finally:
        server.stop()
    assert done["status"] == "compacted"
    found = as_json(data, "show", OTHER)
    assert (found["summary"], found["sessionId"]) == ("they said hello", done["sessionId"])
    assert found["messages"][-1]["text"] == "answer 5"
    assert any(request.body.get("tools") for request in server.requests)
