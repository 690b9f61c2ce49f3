"""The gateway as LibreChat meets it: a real server on loopback, a scripted endpoint behind it, the official client before it."""

from __future__ import annotations

import asyncio
import socket
import uuid
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import openai
import pytest
import uvicorn
from redis.exceptions import RedisError

from memagent.api.app import create_app
from memagent.api.auth import May, new_key
from memagent.errors import NoSuchTurn
from memagent.llm.script import Answer, Rule, Script
from memagent.llm.scripted import ScriptedModel, ScriptedServer
from memagent.turn import Turn
from memagent.turns.payload import turn_id
from tests.api.conftest import SESSION_SECRET, clean, configuration

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from fastapi import FastAPI

    from memagent.turns import Ticket

LOOP = """    - name: Loop
      apiKey: ${GATEWAY_KEY}
      baseURL: ${GATEWAY_URL}/v1
      models: {default: [small], fetch: false}
      headers:
        X-User-Identifier: '{{LIBRECHAT_USER_ID}}'
        X-Message-Identifier: '{{LIBRECHAT_BODY_MESSAGEID}}'
"""
"""An endpoint that leads to the gateway, as LibreChat's file has one."""


@contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    """A free port that is ours already, and its address."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound, f"http://127.0.0.1:{bound.getsockname()[1]}"


@asynccontextmanager
async def serving(app: Any, bound: socket.socket) -> AsyncIterator[None]:
    """A real server on that port."""
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, server_header=False))
    running = asyncio.create_task(server.serve([bound]))
    while not (server.started or running.done()):  # noqa: ASYNC110  uvicorn has no event for it
        await asyncio.sleep(0.005)
    assert server.started, "the server did not start"
    try:
        yield
    finally:
        app.state.queue.news.close()
        server.should_exit = True
        await running


@dataclass
class Door:
    """A running gateway. `behind` is the endpoint, whose `requests` are what came through."""

    app: FastAPI
    address: str
    behind: ScriptedServer
    keys: dict[str, str]
    clients: dict[str, openai.AsyncOpenAI] = field(default_factory=dict)

    def headers(self, user: str = "ada", message: str = "m1", **more: str) -> dict[str, str]:
        named = {
            "X-User-Identifier": user,
            "X-Conversation-Identifier": "c1",
            "X-Message-Identifier": message,
        }
        return {name: value for name, value in {**named, **more}.items() if value}

    def client(self, *, key: str = "turns") -> openai.AsyncOpenAI:
        if key not in self.clients:
            self.clients[key] = openai.AsyncOpenAI(
                base_url=f"{self.address}/v1", api_key=self.keys[key], max_retries=0, timeout=30
            )
        return self.clients[key]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [dict(each.body) for each in self.behind.requests if each.path.endswith("/chat/completions")]

    async def remember(self, user: str, **values: str) -> None:
        for key, value in values.items():
            await self.app.state.memory.put(user, key, value)

    async def ticket(self, user: str, message: str) -> Ticket:
        """A turn as it stands; raises `NoSuchTurn`."""
        return await self.app.state.queue.ticket(user, turn_id(Turn(user, message, ())))

    async def learned(self, user: str, message: str) -> Ticket:
        """A turn when it is over; it is handed over after the answer, so it may not be there yet."""
        while True:
            with suppress(NoSuchTurn):
                found = await self.ticket(user, message)
                return await self.app.state.queue.finished(user, found.id, timeout_s=30)
            await asyncio.sleep(0.005)

    async def close(self) -> None:
        for client in self.clients.values():
            await client.close()

    def count(self, name: str, **labels: str) -> float:
        return self.app.state.queue.meters.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def open_door(redis_url: str, tmp_path: Path) -> Callable[..., Any]:
    """Open a gateway: `async with open_door(answer, …, rules=[…], entry="headers: {…}", environ={…}) as door`."""

    @asynccontextmanager
    async def opened(
        *answers: Answer,
        rules: list[Rule] | None = None,
        extra: str = "disabled: false",
        entry: str = "",
        environ: dict[str, str] | None = None,
        base: str = "",
        redis: str | None = None,
        fetch: bool = False,
        loop: bool = False,
        litellm: bool = False,
    ) -> AsyncIterator[Door]:
        prefix = f"t-{uuid.uuid4().hex[:12]}"
        script = Script(rules) if rules is not None else Script.of(*answers)
        keys, rows = {}, []
        for name, may in {"turns": {May.TURNS}, "backend": set(May), "read": {May.READ}}.items():
            keys[name], row = new_key(name, frozenset(may))
            rows.append(row)
        async with ScriptedServer(script, api_key="upstream-key") as behind, AsyncExitStack() as stack:
            bound, address = stack.enter_context(listening())
            text = configuration(extra=extra, api_key="${UPSTREAM_KEY}", base_url=base or behind.base_url)
            text = text.replace("    - name: Gateway\n", f"    - name: Gateway\n{entry}")
            if fetch:
                text = text.replace("fetch: false", "fetch: true")
            if loop:
                text = text.replace("memory:", f"{LOOP}memory:").replace(
                    "provider: Gateway", "provider: Loop"
                )
            config = tmp_path / f"{prefix}.yaml"
            config.write_text(text)
            settings = {
                "UPSTREAM_KEY": "upstream-key",
                "GATEWAY_URL": address,
                "GATEWAY_KEY": keys["turns"],
                "MEMAGENT_UPSTREAM": "Gateway",
                "MEMAGENT_REDIS_URL": redis or redis_url,
                "MEMAGENT_KEY_PREFIX": prefix,
                "MEMAGENT_EMBEDDER": "hashed",
                "MEMAGENT_RECALL_BUDGET_MS": "5000",
                "MEMAGENT_API_KEYS": "\n".join(rows),
                "MEMAGENT_SESSION_SECRET": SESSION_SECRET,
                "MEMAGENT_TURN_BACKOFF_S": "0.01",
                "MEMAGENT_DRAIN_S": "2",
                **(environ or {}),
            }
            model = ScriptedModel(script)
            app = create_app(
                settings,
                config=config,
                clock=lambda: datetime(2026, 3, 2, 9, 0, tzinfo=UTC),
                models=None if litellm else lambda _: model,
            )
            await stack.enter_async_context(serving(app, bound))
            door = Door(app, address, behind, keys)
            stack.push_async_callback(door.close)
            yield door
            with suppress(RedisError):
                await clean(app.state.memory.ports.store.client, prefix)

    return opened


class RawEndpoint:
    """An endpoint that answers with exactly the bytes it was given, piece by piece, and knows when its caller left."""

    def __init__(self, *pieces: bytes, hold: bool = False) -> None:
        self.pieces = pieces
        self.hold = hold
        self.left = asyncio.Event()
        self.asked = asyncio.Event()
        self.request = b""
        self._open: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._open:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next((int(each[15:]) for each in lines if each.startswith(b"content-length:")), 0)
        self.request = head + await reader.readexactly(length)
        self.asked.set()
        for piece in self.pieces:
            writer.write(piece)
            await writer.drain()
        if self.hold:
            with suppress(ConnectionError):
                await reader.read()
            self.left.set()
        writer.close()
