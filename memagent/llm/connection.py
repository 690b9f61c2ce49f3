"""The way to an OpenAI-compatible endpoint: what its configuration asks of HTTP and the SDK does not offer.

Header values in Latin-1 (spec/librechat.md §3.5), a base URL that is the whole address, and no redirects: they would carry
the headers, which name a user, to another host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from memagent.config.endpoints import ModelTarget


NO_KEY = "none"
"""Sent where no key is configured: without one the SDK would take the environment's key for OpenAI to any address."""


class Connection:
    """One pool of connections for all endpoints; belongs to the event loop that first used it."""

    def __init__(self) -> None:
        self._pool: httpx.AsyncClient | None = None
        self._last: tuple[ModelTarget, Any] | None = None

    def client(self, target: ModelTarget) -> Any:
        """Return an SDK client for calls to `target`; it holds nothing that needs closing.

        It is the last one as long as the same target asks, as an embedder's does: making one takes longer than a call.
        """
        if self._last is None or self._last[0] is not target:
            self._last = (target, self._made(target))
        return self._last[1]

    def _made(self, target: ModelTarget) -> Any:
        from openai import AsyncOpenAI  # noqa: PLC0415  loaded by litellm anyway, and as slow

        if self._pool is None:
            self._pool = httpx.AsyncClient(follow_redirects=False)
        # The SDK takes any client of this shape, whatever the package it names in its types.
        http: Any = _Endpoint(self._pool, target)
        return AsyncOpenAI(
            api_key=target.api_key or NO_KEY, base_url=target.base_url, max_retries=0, http_client=http
        )

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()
            self._pool = self._last = None


class _Endpoint(httpx.AsyncClient):
    """Makes requests for one target and hands them to the pool, which alone has connections: there is nothing to close."""

    def __init__(self, pool: httpx.AsyncClient, target: ModelTarget) -> None:
        super().__init__(transport=httpx.AsyncBaseTransport())
        self._pool = pool
        self._target = target

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        request.headers.encoding = "latin-1"
        for name, value in self._target.headers.items():
            request.headers[name] = value
        if self._target.direct and self._target.base_url is not None:
            request.url = httpx.URL(self._target.base_url)
        return await self._pool.send(request, **options)
