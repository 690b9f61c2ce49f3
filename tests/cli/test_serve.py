"""`serve`, `worker`, `key` and `link` from the command line, the first two as processes that are told to stop."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import uuid
from typing import TYPE_CHECKING, Any

import httpx
from click.testing import CliRunner

from memagent.api.auth import LINK_AUDIENCE, Credentials, May, digest_of, opened, parse_keys
from memagent.cli import cli, run
from memagent.llm.script import Script, calling
from memagent.llm.scripted import ScriptedServer
from memagent.memory import Scope, ScopeKind
from memagent.service.receipt import whole
from memagent.store.connection import connect
from memagent.store.queues import Queues
from memagent.store.redis import RedisStore
from memagent.wiring import utc_now
from tests.api.conftest import SESSION_SECRET, configuration

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from memagent.llm.script import Answer


def invoke(*arguments: str, **environ: str) -> Any:
    return CliRunner().invoke(cli, list(arguments), obj=environ)


def test_a_key_is_shown_once_and_its_row_is_what_the_service_takes() -> None:
    made = invoke("key", "--name", "librechat", "--may", "turns", "--may", "read")
    key = made.stdout.strip()
    [row] = parse_keys(made.stderr.strip().splitlines()[-1])

    assert (row.name, row.may) == ("librechat", {May.TURNS, May.READ})
    assert row.digest == digest_of(key)
    assert key not in made.stderr


def test_a_name_that_would_break_a_row_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key", "--name", "a:b", "--may", "read"]) == 2
    assert "not a name for a key" in capsys.readouterr().err


def test_a_single_person_is_served_on_loopback_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--user", "ada", "--host", "0.0.0.0"]) == 2
    assert "127.0.0.1" in capsys.readouterr().err


def test_a_service_that_nobody_could_enter_does_not_start(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MEMAGENT_API_KEYS", "JWT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    assert run(["serve"]) == 2
    assert "memagent key" in capsys.readouterr().err


def test_a_link_lets_that_user_in() -> None:
    environ = {
        "MEMAGENT_SESSION_SECRET": SESSION_SECRET,
        "MEMAGENT_PUBLIC_URL": "https://memory.example.org/",
    }
    printed = invoke("link", "--user", "ada", **environ).stdout.strip()
    base, _, token = printed.partition("/login?token=")

    assert base == "https://memory.example.org"
    assert (
        opened(token, Credentials(session_secret=SESSION_SECRET), audience=LINK_AUDIENCE, now=utc_now())
        == "ada"
    )


def test_a_link_wants_the_secret_that_the_service_has() -> None:
    assert "MEMAGENT_SESSION_SECRET" in str(invoke("link", "--user", "ada").exception)


async def test_a_stop_waits_for_the_turn_that_is_being_learned_from(redis_url: str, tmp_path: Path) -> None:
    slow: Answer = calling("set_memory", key="diet", value="Ada eats no meat.")
    prefix = f"t-{uuid.uuid4().hex[:12]}"
    server = Gate(Script.of(slow))
    async with server:
        config = tmp_path / "librechat.yaml"
        config.write_text(configuration(base_url=server.base_url))
        environ = {
            "MEMAGENT_CONFIG": str(config),
            "MEMAGENT_REDIS_URL": redis_url,
            "MEMAGENT_KEY_PREFIX": prefix,
            "MEMAGENT_EMBEDDER": "hashed",
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "memagent", "serve", "--user", "ada", "--port", "0"),
            env=environ,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            address = await _listening(process)
            async with httpx.AsyncClient(base_url=f"http://{address}", timeout=60) as client:
                turn = {
                    "message_id": "m1",
                    "messages": [{"role": "user", "content": "I stopped eating meat."}],
                }
                accepted = await client.post("/v1/turns", json=turn)
                assert accepted.status_code == 202
                await asyncio.to_thread(server.asked.wait, 60)
                process.send_signal(signal.SIGTERM)
                server.go_on.set()
            assert await asyncio.wait_for(process.wait(), 60) == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        client = connect(redis_url)
        row = await Queues(client, prefix=prefix).turn("ada", accepted.json()["id"])
        store = RedisStore(client, prefix=prefix, index=None)
        kept = await store.receipt(Scope(ScopeKind.USER, "ada"), "m1")
        assert row is not None
        assert kept is not None
        assert (row["status"], whole(kept).set) == ("done", ("diet",))
        async for key in client.scan_iter(match=f"{prefix}[:-]*", count=1000):
            await client.unlink(key)
        await client.aclose()


class Gate(ScriptedServer):
    """A model that answers when it is told to."""

    def __init__(self, script: Script) -> None:
        import threading

        super().__init__(script)
        self.asked, self.go_on = threading.Event(), threading.Event()
        play = script.play

        def gated(user: str, *, offers_tools: bool) -> Answer:
            self.asked.set()
            self.go_on.wait(60)
            return play(user, offers_tools=offers_tools)

        script.play = gated  # type: ignore[method-assign]


async def _listening(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(60):
        async for line in process.stderr:
            said = json.loads(line)
            if said["event"] == "listening":
                return str(said["address"])
    raise AssertionError("the service ended before it listened")
