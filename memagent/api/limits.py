"""What a request may cost: its body, the time until it answers, how many a minute. Plain ASGI, so that streams pass as they are."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from memagent.api.auth import SESSION_COOKIE, USER_HEADER, digest_of
from memagent.api.faults import body as fault_body
from memagent.api.faults import shaped
from memagent.errors import Busy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from memagent.config.environment import Environment

MAX_CALLERS = 10_000
"""Callers whose rate is remembered at a time; the one unheard of the longest is forgotten first."""

CHAT_PATH = "/v1/chat/completions"
"""Whole chats with their images come here, and a model takes its time."""

GRACE_S = 5.0
"""Longer than the gateway waits for its endpoint, so that it is the gateway that says so."""

WITHOUT_LIMIT = ("/health", "/ready", "/metrics")
"""Paths that a monitor asks, however busy the service is."""


def install(app: FastAPI, options: Environment) -> None:
    """Put the limits around `app`, the cheapest refusal outermost."""
    chats = {CHAT_PATH: options.gateway_body_limit_kb * 1024}
    app.add_middleware(BodyLimit, limit=options.body_limit_kb * 1024, others=chats)
    waits = {CHAT_PATH: max(options.gateway_timeout_s, options.request_timeout_s) + GRACE_S}
    app.add_middleware(Deadline, seconds=options.request_timeout_s, others=waits)
    if options.rate_limit:
        names = (USER_HEADER, options.gateway_user_header)
        app.add_middleware(RateLimit, per_minute=options.rate_limit, user_headers=names)


class BodyLimit:
    """Refuse a body over `limit` bytes, or what `others` say for a path, with 413, by its header if it has one, else as soon as it is past."""

    def __init__(self, app: ASGIApp, *, limit: int, others: Mapping[str, int]) -> None:
        self.app = app
        self.limit = limit
        self.others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        limit = self.others.get(scope["path"], self.limit)
        setting = (
            "MEMAGENT_GATEWAY_BODY_LIMIT_KB" if scope["path"] in self.others else "MEMAGENT_BODY_LIMIT_KB"
        )
        words = f"the body is larger than {limit // 1024:,} kB ({setting})"
        announced = _header(scope, b"content-length")
        if announced.isdigit() and int(announced) > limit:
            return await answer(scope, send, 413, fault_body("too_large", words))
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > limit:
                raise HTTPException(413, words)
            return message

        return await self.app(scope, counted, send)


class Deadline:
    """A request that has not begun to answer in time gets 504; what streams has begun."""

    def __init__(self, app: ASGIApp, *, seconds: float, others: Mapping[str, float]) -> None:
        self.app = app
        self.seconds = seconds
        self.others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        seconds = self.others.get(scope["path"], self.seconds)
        limit = asyncio.timeout(seconds)
        started = False

        async def begun(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                limit.reschedule(None)
            await send(message)

        try:
            async with limit:
                await self.app(scope, receive, begun)
        except TimeoutError:
            if started or not limit.expired():
                raise
            setting = (
                "MEMAGENT_GATEWAY_TIMEOUT_S" if seconds != self.seconds else "MEMAGENT_REQUEST_TIMEOUT_S"
            )
            words = f"no answer within {seconds:g} s ({setting})"
            await answer(scope, send, 504, fault_body("timeout", words, retryable=True))
        return None


class RateLimit:
    """A bucket per caller: `per_minute` requests, all at once or spread; then 429 with the time until the next."""

    def __init__(self, app: ASGIApp, *, per_minute: int, user_headers: tuple[str, ...]) -> None:
        self.app = app
        self.per_minute = per_minute
        self.user_headers = tuple(name.lower().encode() for name in user_headers)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in WITHOUT_LIMIT:
            return await self.app(scope, receive, send)
        wait = self._wait(self._caller(scope))
        if wait:
            words = f"more than {self.per_minute:,} requests a minute (MEMAGENT_RATE_LIMIT)"
            seconds = str(math.ceil(wait))
            return await answer(
                scope, send, 429, fault_body(Busy.code, words, retryable=True), retry_after=seconds
            )
        return await self.app(scope, receive, send)

    def _wait(self, caller: str) -> float:
        """Seconds until this caller may ask again; 0 takes one request out of the bucket."""
        now = monotonic()
        level, at = self._buckets.pop(caller, (float(self.per_minute), now))
        level = min(self.per_minute, level + (now - at) * self.per_minute / 60)
        wait = 0.0 if level >= 1 else (1 - level) * 60 / self.per_minute
        self._buckets[caller] = (level if wait else level - 1, now)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        return wait

    def _caller(self, scope: Scope) -> str:
        """Who asks, before anything is proven: the credential and the user it names, else the address."""
        credential = _header(scope, b"authorization")
        cookie = _header(scope, b"cookie")
        if not credential and SESSION_COOKIE in cookie:
            credential = cookie
        client = scope.get("client")
        who = credential or (client[0] if client else "")
        users = "\n".join(_header(scope, name) for name in self.user_headers)
        return digest_of(f"{who}\n{users}")


def _header(scope: Scope, name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value).decode("latin-1")
    return ""


async def answer(
    scope: Scope, send: Send, status: int, content: dict[str, object], *, retry_after: str = ""
) -> None:
    """Send one JSON answer."""
    from starlette.responses import JSONResponse  # noqa: PLC0415  only when something is refused

    headers = {"Retry-After": retry_after} if retry_after else {}
    await JSONResponse(shaped(scope["path"], status, content), status, headers)(
        {"type": "http"}, _nothing, send
    )


async def _nothing() -> Message:
    return {"type": "http.disconnect"}
