"""Passing a request on and its answer back, byte for byte as it comes; whoever goes away takes the request along."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import httpx
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from memagent.api import faults
from memagent.errors import ModelFault, ModelRefused, ModelUnavailable

log = logging.getLogger("memagent.gateway")

NOT_PASSED_ON = frozenset(
    {
        # between two neighbours only (RFC 9110 §7.6.1)
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        # about the endpoint's own site, or written anew here
        "alt-svc",
        "date",
        "server",
        "set-cookie",
        "strict-transport-security",
    }
)
"""Headers of an answer that end here."""


class Passage(Response):
    """The answer to `request`, fetched when it is sent; `over` is called once, however it ends."""

    def __init__(
        self, client: httpx.AsyncClient, request: httpx.Request, *, over: Callable[[], None]
    ) -> None:
        super().__init__()
        self._client = client
        self._request = request
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        passing = asyncio.create_task(self._pass(scope, receive, send))
        leaving = asyncio.create_task(_gone(receive))
        try:
            await asyncio.wait({passing, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not passing.done():
                log.info("a caller went away; the endpoint is not asked any further")
        finally:
            left = passing.cancel()
            leaving.cancel()
            await asyncio.gather(passing, leaving, return_exceptions=True)
            self._over()
        if not left:
            passing.result()

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._client.send(self._request, stream=True)
        except httpx.HTTPError as error:
            await self._refuse(_fault(error), scope, receive, send)
            return
        try:
            if answer.is_redirect:
                # Following it would carry the key and the user's headers to another address.
                fault = ModelRefused(
                    "the endpoint redirects elsewhere: write the address that it names as `baseURL`"
                )
                await self._refuse(fault, scope, receive, send)
                return
            await send(_start(answer))
            async for chunk in answer.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except httpx.HTTPError as error:
            # The status is out: an answer that ends before its end is all that can still be said.
            log.warning("an endpoint broke off its answer", extra={"kind": type(error).__name__})
        finally:
            await answer.aclose()

    async def _refuse(self, fault: ModelFault, scope: Scope, receive: Receive, send: Send) -> None:
        log.warning("an endpoint did not answer", extra={"code": fault.code})
        await faults.response(fault, path=scope["path"])(scope, receive, send)


def _start(answer: httpx.Response) -> Message:
    named = {name.strip().lower() for name in answer.headers.get("connection", "").split(",")}
    headers = [
        (name.lower(), value)
        for name, value in answer.headers.raw
        if name.decode("latin-1").lower() not in NOT_PASSED_ON | named
    ]
    return {"type": "http.response.start", "status": answer.status_code, "headers": headers}


def _fault(error: httpx.HTTPError) -> ModelFault:
    if isinstance(error, httpx.TimeoutException):
        return ModelUnavailable("the endpoint did not answer in time (MEMAGENT_GATEWAY_TIMEOUT_S)")
    return ModelUnavailable(
        "the endpoint cannot be reached: look at the `baseURL` of MEMAGENT_UPSTREAM's entry"
    )


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
