"""A whole service for a test: the application in process, real Redis, a scripted model, keys, and a clock that stands still."""

from __future__ import annotations

import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from memagent.api.app import create_app
from memagent.api.auth import USER_HEADER, May, new_key
from memagent.llm.script import Answer, Rule, Script
from memagent.llm.scripted import ScriptedModel
from memagent.store.connection import cluster_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from fastapi import FastAPI

CONFIG = """
version: '1.3.17'
endpoints:
  custom:
    - name: Gateway
      apiKey: APIKEY
      baseURL: BASEURL
      models: {default: [small], fetch: false}
memory:
  EXTRA
  agent: {enabled: true, provider: Gateway, model: small}
"""
JWT_SECRET = "librechat's own secret, which is long enough"
SESSION_SECRET = "a session secret that is long enough to be one"


def configuration(
    *, extra: str = "disabled: false", base_url: str = "http://127.0.0.1:1/v1", api_key: str = "key"
) -> str:
    text = CONFIG.replace("EXTRA", extra.replace("\n", "\n  "))
    return text.replace("BASEURL", base_url).replace("APIKEY", api_key)


@dataclass
class Service:
    """One running service; `as_user` is a backend's client in the name of a user."""

    app: FastAPI
    model: ScriptedModel
    keys: dict[str, str]
    now: list[datetime]
    said: int = 0
    open_clients: list[httpx.AsyncClient] = field(default_factory=list)

    def client(self, **headers: str) -> httpx.AsyncClient:
        made = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="http://memagent", headers=headers, timeout=60
        )
        self.open_clients.append(made)
        return made

    def as_user(self, user: str, *, key: str = "backend") -> httpx.AsyncClient:
        return self.client(Authorization=f"Bearer {self.keys[key]}", **{USER_HEADER: user})

    def admin(self) -> httpx.AsyncClient:
        return self.client(Authorization=f"Bearer {self.keys['admin']}")

    def later(self, **step: float) -> None:
        self.now[0] += timedelta(**step)

    def turn(self, text: str, *, message_id: str | None = None, **rest: Any) -> dict[str, Any]:
        self.said += 1
        messages = [{"role": "user", "content": text}]
        return {
            "message_id": message_id or f"m{self.said}",
            "conversation_id": "c1",
            "messages": messages,
            **rest,
        }


@pytest.fixture
def open_service(redis_url: str, tmp_path: Path) -> Callable[..., Any]:
    """Open a service: `async with open_service(answer, …, extra="tokenLimit: 20", environ={…}) as service`."""

    @asynccontextmanager
    async def opened(
        *answers: Answer,
        rules: list[Rule] | None = None,
        extra: str = "disabled: false",
        api_key: str = "key",
        environ: Any = None,
        **how: Any,
    ) -> AsyncIterator[Service]:
        prefix = f"t-{uuid.uuid4().hex[:12]}"
        config = tmp_path / f"{prefix}.yaml"
        config.write_text(configuration(extra=extra, api_key=api_key))
        script = Script(rules) if rules is not None else Script.of(*answers)
        made = {
            "backend": frozenset({May.TURNS, May.READ, May.WRITE}),
            "admin": frozenset({May.ADMIN}),
            "turns": frozenset({May.TURNS}),
            "read": frozenset({May.READ}),
            "all": frozenset(May),
        }
        keys, rows = {}, []
        for name, may in made.items():
            keys[name], row = new_key(name, may)
            rows.append(row)
        now = [datetime(2026, 3, 2, 9, 0, tzinfo=UTC)]
        settings = {
            "MEMAGENT_REDIS_URL": redis_url,
            "MEMAGENT_KEY_PREFIX": prefix,
            "MEMAGENT_EMBEDDER": "hashed",
            "MEMAGENT_RECALL_BUDGET_MS": "5000",
            "MEMAGENT_API_KEYS": "\n".join(rows),
            "MEMAGENT_SESSION_SECRET": SESSION_SECRET,
            "JWT_SECRET": JWT_SECRET,
            "MEMAGENT_TURN_BACKOFF_S": "0.01",
            **(environ or {}),
        }
        model = ScriptedModel(script)
        app = create_app(settings, config=config, clock=lambda: now[0], models=lambda _: model, **how)
        async with app.router.lifespan_context(app):
            service = Service(app, model, keys, now)
            yield service
            for client in service.open_clients:
                await client.aclose()
            await clean(app.state.memory.ports.store.client, prefix)

    return opened


async def clean(client: Any, prefix: str) -> None:
    cluster = cluster_of(client)
    for server in await cluster.primaries() if cluster else [client]:
        for name in await server.execute_command("FT._LIST"):
            if name.decode().startswith(f"{prefix}:"):
                await server.execute_command("FT.DROPINDEX", name)
        async for key in server.scan_iter(match=f"{prefix}:*", count=1000):
            await server.unlink(key)
