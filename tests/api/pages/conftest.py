"""Visitors of the pages: a browser's cookies without a browser, and a real Chromium where there is one."""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import asynccontextmanager
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memagent.api.auth import LINK_AUDIENCE, signed
from memagent.lexicon import terms
from memagent.memory import Evidence, Scope, ScopeKind, Source
from memagent.service.embedding import embed_unsearched
from memagent.store import Limits, SetMemory
from memagent.tokens import count_tokens
from tests.api.conftest import SESSION_SECRET, Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

CHROMIUM = Path("/usr/bin/chromium")
CHROMIUM_ARGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Text(HTMLParser):
    """A page as its reader gets it: text, tags with attributes, the fields of its forms."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.text = "".join(self.parts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def values(self, name: str) -> list[str]:
        """What the fields of this name hold."""
        return [
            str(found.get("value"))
            for tag, found in self.tags
            if tag == "input" and found.get("name") == name
        ]

    @property
    def token(self) -> str:
        return self.values("token")[0]


def link(service: Service, user: str, *, minutes: int = 10) -> str:
    expires = service.now[0] + timedelta(minutes=minutes)
    return f"/login?token={signed(user, SESSION_SECRET, audience=LINK_AUDIENCE, expires=expires)}"


async def visitor(service: Service, user: str | None, **headers: str) -> httpx.AsyncClient:
    """A browser without scripts, signed in as this user, or not."""
    client = service.client(Accept="text/html,*/*;q=0.5", **headers)
    client.follow_redirects = True
    if user is not None:
        await client.get(link(service, user))
    return client


async def post(client: httpx.AsyncClient, path: str, **fields: str) -> httpx.Response:
    """Send a form of the page, with the token that stands in it."""
    token = Text((await client.get("/")).text).token
    return await client.post(path, data={"token": token, **fields})


async def remember(
    service: Service,
    user: str,
    key: str,
    value: str,
    *,
    quote: str = "",
    source: Source = Source.AGENT,
    trusted: bool = True,
    agent: str = "",
) -> None:
    """As if the memory agent had extracted it."""
    ports = service.app.state.memory.ports
    edit = SetMemory(
        key,
        value,
        count_tokens(value),
        source=source,
        evidence=Evidence("conversation-1", "message-1", quote),
        terms=terms(value),
        trusted=trusted,
    )
    scope = Scope(ScopeKind.USER, user, agent)
    await ports.store.apply(scope, [edit], limits=Limits(), now=ports.clock())
    await embed_unsearched(ports, scope)


def classes_of(html: str) -> set[str]:
    return set(re.findall(r'class="([^"]+)"', html))


@asynccontextmanager
async def served(service: Service) -> AsyncIterator[str]:
    """The service over real HTTP on loopback."""
    import uvicorn

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(service.app, lifespan="off", log_config=None, access_log=False)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            await task


@pytest.fixture
async def chromium() -> AsyncIterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip("no /usr/bin/chromium: apt-get install chromium")
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=CHROMIUM_ARGS)
        yield browser
        await browser.close()
