"""`memagent memories` as people call it: review, accept, import, export, forget-me, against a real Redis."""

from __future__ import annotations

import asyncio
import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from memagent import wiring
from memagent.cli import ExitCode, cli
from memagent.errors import BadRequest, NoSuchMemory
from memagent.memory import Scope, ScopeKind, Source
from memagent.store import Limits, SetMemory
from tests.service.conftest import CONFIG

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from click.testing import Result

    from memagent.service import Memagent


@dataclass
class Shell:
    """A command line with an environment of its own."""

    config: Path
    environ: dict[str, str]

    def memories(self, *arguments: str, stdin: str | None = None, user: str = "juno") -> Result:
        command, *rest = arguments
        line = ["memories", command, "--config", str(self.config), "--user", user, *rest]
        return CliRunner().invoke(cli, line, obj=self.environ, input=stdin)

    def json(self, *arguments: str, **how: Any) -> Any:
        result = self.memories(*arguments, "--json", **how)
        assert result.exit_code == ExitCode.OK, result.output
        return json.loads(result.stdout)

    def inside(self, work: Callable[[Memagent], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            async with wiring.open(self.config, environ=self.environ) as memory:
                return await work(memory)

        return asyncio.run(run())


@pytest.fixture
def shell(redis_url: str, tmp_path: Path) -> Iterator[Shell]:
    config = tmp_path / "librechat.yaml"
    config.write_text(CONFIG.replace("EXTRA", "disabled: false"))
    environ = {
        "MEMAGENT_REDIS_URL": redis_url,
        "MEMAGENT_KEY_PREFIX": f"t-{uuid.uuid4().hex[:12]}",
        "MEMAGENT_EMBEDDER": "none",
        "MEMAGENT_DATA_DIR": str(tmp_path / "data"),
    }
    opened = Shell(config, environ)
    yield opened

    async def clean(memory: Memagent) -> None:
        client = memory.ports.store.client  # type: ignore[attr-defined]
        async for key in client.scan_iter(match=f"{environ['MEMAGENT_KEY_PREFIX']}:*", count=1000):
            await client.unlink(key)

    opened.inside(clean)


async def rumour(memory: Memagent) -> None:
    """What a tool brought in."""
    edit = SetMemory("rumour", "The [bold]moon[/bold] is cheese", 6, source=Source.TOOL, trusted=False)
    scope = Scope(ScopeKind.USER, "juno")
    await memory.ports.store.apply(scope, [edit], limits=Limits(), now=memory.ports.clock())


def test_what_waits_is_listed_with_its_words_and_accepted(shell: Shell) -> None:
    assert "nothing waits" in shell.memories("review").output
    shell.inside(rumour)
    assert "[bold]moon[/bold]" in shell.memories("review").output
    assert [each["key"] for each in shell.json("review")] == ["rumour"]
    assert shell.json("accept", "rumour")["trusted"] is True
    assert shell.json("review") == []
    missing = shell.memories("accept", "nobody")
    assert isinstance(missing.exception, NoSuchMemory)


def test_an_import_is_rehearsed_reported_and_done(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "MEMORY.md"
    file.write_text("# Memory\n\n- Ada eats no meat\n- Ada has a cat\n\n```\ncode\n```\n", encoding="utf-8")
    rehearsal = shell.memories("import", "--dry-run", str(file))
    assert "openclaw: 2 would be taken in, 0 known already, 1 refused" in rehearsal.output
    assert shell.json("list") == []
    assert len(shell.json("import", str(file))["taken"]) == 2
    assert {each["value"] for each in shell.json("list")} == {"Ada eats no meat", "Ada has a cat"}


def test_an_import_takes_its_format_and_its_owner_by_name_and_from_stdin(shell: Shell) -> None:
    rows = [
        {"key": name, "value": f"{name} of {user}", "userId": user}
        for user in ("aa", "bb")
        for name in ("tea", "cat")
    ]
    text = "\n".join(json.dumps(row) for row in rows)
    assert isinstance(shell.memories("import", "-", stdin=text).exception, BadRequest)
    report = shell.json("import", "--from", "librechat", "--owner", "bb", "-", stdin=text)
    assert (report["taken"], report["format"]) == (["tea", "cat"], "librechat")
    wrong = shell.memories("import", "--from", "mem0", "-", stdin=text)
    assert isinstance(wrong.exception, BadRequest)


def test_everything_goes_out_as_json_that_comes_back_and_as_markdown(shell: Shell) -> None:
    shell.memories("set", "tea", "Juno drinks oolong.")
    exported = shell.memories("export").stdout
    assert json.loads(exported)["memories"][0]["key"] == "tea"
    assert "- **tea**: Juno drinks oolong." in shell.memories("export", "--format", "markdown").stdout
    assert shell.json("import", "-", stdin=exported, user="kim")["taken"] == ["tea"]


def test_forgetting_a_user_asks_first_and_reports(shell: Shell) -> None:
    shell.memories("set", "tea", "Juno drinks oolong.")
    asked = shell.memories("forget-me", stdin="n\n")
    assert asked.exit_code != ExitCode.OK
    assert len(shell.json("list")) == 1
    report = shell.json("forget-me", "--yes", "--preferences")
    assert (report["erased"]["memories"], report["keys_left"]) == (1, 0)
    assert shell.json("list") == []
    table = shell.memories("forget-me", "--yes").output
    assert "nothing was kept" in table
    assert "BGREWRITEAOF" in table
