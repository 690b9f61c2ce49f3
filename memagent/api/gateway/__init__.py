"""OpenAI's chat completions with memory: LibreChat, unchanged, has a custom endpoint here (docs/librechat-setup.md)."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx

from memagent.config.endpoints import resolve_upstream
from memagent.config.placeholders import BodyIds, UserFields
from memagent.errors import ConfigUnusable, MemagentError
from memagent.service import Context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from memagent.config.endpoints import Upstream
    from memagent.turn import Turn
    from memagent.turns.queue import TurnQueue

log = logging.getLogger("memagent.gateway")

VIA = "1.1 memagent"
"""In the `Via` header of what is passed on (RFC 9110 §7.6.3): what comes back with it runs in a circle."""

PASSED_ON = (
    "accept",
    "accept-encoding",
    "content-type",
    "idempotency-key",
    "openai-beta",
    "traceparent",
    "tracestate",
)
"""Headers of a caller that reach the endpoint; the others are about the caller and this service."""

CONNECT_S = 10.0
WRITE_S = 60.0
KEPT_CONNECTIONS = 100
HANDOVER_S = 5.0
"""For one try to hand a turn over; by then the answer is with the caller, and nobody waits."""

PAUSES_S = (0.5, 2.0, 8.0)
"""Before each further try, while the fault is one that may pass."""

MAX_HANDOVERS = 1_000
"""Turns that wait in this process to be handed over, while Redis is away."""


class Gateway:
    """The way to one endpoint, and memory beside it, which may fail without anybody who chats taking notice."""

    def __init__(self, queue: TurnQueue, client: httpx.AsyncClient, name: str) -> None:
        self.client = client
        self._ports = queue.memory.ports
        self._queue = queue
        self._name = name
        self._handovers: set[asyncio.Task[None]] = set()

    @property
    def side_prompts(self) -> tuple[str, ...]:
        return self._ports.settings.side_prompts

    def upstream(self, user: UserFields, body: BodyIds) -> Upstream:
        """Where this user's request goes; raises `ModelRefused` for a header that HTTP cannot carry."""
        return resolve_upstream(
            self._ports.settings, self._name, environ=self._ports.environ, user=user, body=body
        )

    def models(self) -> tuple[str, ...] | None:
        """The models of the file; None where the endpoint is asked for its own."""
        entry = next(each for each in self._ports.settings.endpoints if each.provider_name == self._name)
        return None if entry.fetch_models and not entry.direct_endpoint else entry.models

    def request(
        self, upstream: Upstream, path: str, *, headers: Mapping[str, str], content: bytes | None = None
    ) -> httpx.Request:
        """The request to the endpoint: the file's headers over what a caller may say for itself."""
        sent = httpx.Headers(encoding="latin-1")
        # httpx would otherwise ask for encodings that the caller may not read.
        sent.update({"accept-encoding": "identity"})
        sent.update({name: headers[name] for name in PASSED_ON if name in headers})
        sent.update({"authorization": f"Bearer {upstream.api_key}", "via": VIA})
        for name, value in upstream.headers.items():
            sent[name] = value
        url = upstream.base_url if upstream.direct else upstream.base_url + path
        return self.client.build_request(
            "GET" if content is None else "POST", url, content=content, headers=sent
        )

    async def context(self, turn: Turn) -> Context:
        """Memories for the answer; nothing, counted and logged, where memory fails in whatever way."""
        try:
            return await self._queue.context(turn)
        except Exception as error:  # noqa: BLE001  a chat goes on without memory, come what may
            code = error.code if isinstance(error, MemagentError) else "internal_error"
            log.warning("a chat goes on without memory", extra={"code": code, "kind": type(error).__name__})
            self._queue.meters.fail_opens.labels(code).inc()
            return Context()

    def passed_on(self, kind: str) -> None:
        self._queue.meters.passed_on.labels(kind).inc()

    def hand_over(self, turn: Turn) -> None:
        """Hand a turn over in the background, a few times if it must be."""
        if len(self._handovers) >= MAX_HANDOVERS:
            self._lost("busy")
            return
        task = asyncio.create_task(self._hand_over(turn))
        self._handovers.add(task)
        task.add_done_callback(self._handovers.discard)

    async def _hand_over(self, turn: Turn) -> None:
        code = ""
        for pause in (0.0, *PAUSES_S):
            await asyncio.sleep(pause)
            code, passes = await self._try(turn)
            if not code:
                return
            if not passes:
                break
        self._lost(code)

    async def _try(self, turn: Turn) -> tuple[str, bool]:
        """The code of what went wrong, empty if nothing did, and whether it may pass."""
        try:
            async with asyncio.timeout(HANDOVER_S):
                await self._queue.accept(turn)
        except TimeoutError:
            return "timeout", True
        except MemagentError as fault:
            return fault.code, fault.retryable
        except Exception as error:  # noqa: BLE001  nobody else would hear of it
            log.warning("a bug", extra={"kind": type(error).__name__})
            return "internal_error", False
        return "", False

    def _lost(self, code: str) -> None:
        log.warning("a turn of the gateway is lost", extra={"code": code})
        self._queue.meters.lost.labels(code).inc()

    async def drain(self, *, seconds: float) -> None:
        """Wait for the turns that are being handed over; those left then are lost."""
        if self._handovers:
            _, left = await asyncio.wait(self._handovers, timeout=seconds)
            for task in left:
                task.cancel()
                self._lost("shutdown")


@asynccontextmanager
async def open_gateway(queue: TurnQueue) -> AsyncIterator[Gateway | None]:
    """The gateway to MEMAGENT_UPSTREAM for as long as the block runs; None without one.

    Raises `ConfigUnusable` where file and environment do not say how to reach it.
    """
    options = queue.memory.ports.options
    if options.upstream is None:
        yield None
        return
    timeout = httpx.Timeout(options.gateway_timeout_s, connect=CONNECT_S, write=WRITE_S, pool=CONNECT_S)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS)
    async with httpx.AsyncClient(timeout=timeout, limits=limits, follow_redirects=False) as client:
        gateway = Gateway(queue, client, options.upstream)
        try:
            gateway.upstream(UserFields(), BodyIds())
        except MemagentError as fault:
            raise ConfigUnusable(f"MEMAGENT_UPSTREAM cannot be used: {fault}") from None
        yield gateway
        await gateway.drain(seconds=options.drain_s)
