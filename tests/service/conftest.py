"""A whole memory for a test: real Redis, a scripted model, an embedder of hashes, and a clock that the test moves."""

from __future__ import annotations

import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from memagent import wiring
from memagent.llm.script import Answer, Script
from memagent.llm.scripted import ScriptedModel
from memagent.memory import Message
from memagent.turn import Turn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from memagent.service import Memagent

CONFIG = """
version: '1.3.17'
endpoints:
  custom:
    - name: Gateway
      apiKey: key
      baseURL: http://127.0.0.1:1/v1
      models: {default: [small], fetch: false}
memory:
  EXTRA
  agent: {enabled: true, provider: Gateway, model: small}
"""


@dataclass
class World:
    """One opened memory, its clock and its script."""

    memory: Memagent
    model: ScriptedModel
    now: list[datetime] = field(default_factory=list)
    said: int = 0

    def later(self, **step: float) -> None:
        self.now[0] += timedelta(**step)

    def turn(self, text: Any, *, user: str = "juno", message_id: str | None = None, **rest: Any) -> Turn:
        self.said += 1
        given = text if isinstance(text, tuple) else (Message("user", text),)
        return Turn(user, message_id or f"m{self.said}", given, conversation_id="c1", **rest)


@pytest.fixture
def open_world(redis_url: str, tmp_path: Path) -> Callable[..., Any]:
    """Open a world: `async with open_world(answer, …, extra="tokenLimit: 20", environ={…}) as world`."""

    @asynccontextmanager
    async def opened(
        *answers: Answer,
        script: Script | None = None,
        extra: str = "disabled: false",
        environ: Any = None,
        clean: bool = True,
    ) -> AsyncIterator[World]:
        prefix = f"t-{uuid.uuid4().hex[:12]}"
        config = tmp_path / f"{prefix}.yaml"
        config.write_text(CONFIG.replace("EXTRA", extra.replace("\n", "\n  ")))
        model = ScriptedModel(script or Script.of(*answers))
        now = [datetime(2026, 3, 2, 9, 0, tzinfo=UTC)]
        settings = {
            "MEMAGENT_REDIS_URL": redis_url,
            "MEMAGENT_KEY_PREFIX": prefix,
            "MEMAGENT_EMBEDDER": "hashed",
            "MEMAGENT_RECALL_BUDGET_MS": "5000",
            **(environ or {}),
        }
        async with wiring.open(
            config, environ=settings, clock=lambda: now[0], models=lambda _: model
        ) as memory:
            yield World(memory, model, now)
            if clean:
                await _clean(memory, prefix)

    return opened


async def _clean(memory: Memagent, prefix: str) -> None:
    client = memory.ports.store.client  # type: ignore[attr-defined]
    for name in await client.execute_command("FT._LIST"):
        if name.decode().startswith(f"{prefix}:"):
            await client.execute_command("FT.DROPINDEX", name)
    async for key in client.scan_iter(match=f"{prefix}:*", count=1000):
        await client.unlink(key)
