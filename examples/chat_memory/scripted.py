"""The model of these examples: recorded answers behind a real HTTP endpoint, so that they run without a key.

For a real model put its name and key into the `ModelTarget`: `ModelTarget("openai/gpt-4o-mini", api_key=...)`.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memagent.config.endpoints import ModelTarget
from memagent.llm.gateway import Gateway
from memagent.llm.scripted import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from memagent.llm import ChatModel


@asynccontextmanager
async def scripted_model() -> AsyncIterator[ChatModel]:
    async with ScriptedServer.from_yaml(Path(__file__).with_name("answers.yaml")) as server:
        gateway = Gateway()
        try:
            yield gateway.model(ModelTarget("openai/scripted", base_url=server.base_url, api_key="none"))
        finally:
            await gateway.close()
