"""The two routes of OpenAI's that a chat needs."""

from __future__ import annotations

import base64
import logging
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from memagent.api.auth import May, Principal, Proven, named
from memagent.api.gateway import VIA, Gateway
from memagent.api.gateway.chat import read, turn_of
from memagent.api.gateway.kinds import Kind, kind_of
from memagent.api.gateway.passage import Passage
from memagent.api.scopes import BY_USER
from memagent.config.environment import Environment
from memagent.config.placeholders import USER_FIELDS, BodyIds, UserFields
from memagent.errors import BadRequest, Forbidden, ModelRefused, NotFound, Unauthenticated
from memagent.turn import MAX_ID_CHARS

log = logging.getLogger("memagent.gateway")

FIELD_HEADER = "X-LibreChat-User-"
"""Before the name of one of LibreChat's user fields: what the endpoint's own headers, and prompts, may know of the user."""


class OpenAIFault(BaseModel):
    message: str
    type: str = Field(examples=["invalid_request_error"])
    param: str | None = None
    code: str = Field(examples=["unauthenticated"])
    retryable: bool = False


class OpenAIFaultView(BaseModel):
    """A fault of the gateway itself; a fault of the endpoint comes as the endpoint says it."""

    error: OpenAIFault


router = APIRouter(
    prefix="/v1",
    tags=["gateway"],
    responses={"default": {"model": OpenAIFaultView, "description": "A fault, as OpenAI shapes it"}},
)

CHAT_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object", "description": "OpenAI's chat completions request."},
                "example": {
                    "model": "gpt-4o",
                    "messages": [{"role": "user", "content": "Hello"}],
                    "stream": True,
                },
            }
        },
    }
}
ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The endpoint's own answer, byte for byte.",
        "content": {"application/json": {"schema": {}}, "text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.post(
    "/chat/completions",
    summary="A chat with memory",
    response_class=Response,
    responses=ANSWER,
    openapi_extra=CHAT_BODY,
)
async def chat(request: Request, caller: Proven) -> Response:
    """Memories go in, the request goes on to MEMAGENT_UPSTREAM, the answer comes back, and the turn is learned from.

    Who chats, where, and which message it is comes in headers. Without the id of a message, and for titles, summaries
    and memory agents, the request goes on as it came.
    """
    gateway, options = _gateway(request, caller), request.app.state.options
    user = _user(request, caller, options)
    ids = _ids(request, options)
    given = read(await request.body())
    kind = kind_of(given, message_id=ids.message_id, side_prompts=gateway.side_prompts)
    fields = _fields(request)
    upstream = gateway.upstream(UserFields(user, fields), ids)
    content, turn = given.raw, None
    if kind is Kind.TURN:
        turn = turn_of(
            given,
            user=user,
            message_id=ids.message_id,
            conversation_id=ids.conversation_id,
            user_fields=fields,
        )
        found = await gateway.context(turn)
        content = given.with_memories(found.prefix, found.tail)
    gateway.passed_on(kind)

    def over() -> None:
        if turn is not None:
            gateway.hand_over(turn)

    passed = gateway.request(upstream, "/chat/completions", headers=request.headers, content=content)
    return Passage(gateway.client, passed, over=over)


@router.get("/models", summary="The models behind the gateway", response_class=Response, responses=ANSWER)
async def models(request: Request, caller: Proven) -> Response:
    """Those of librechat.yaml, or the endpoint's own list where the file says `fetch: true`. No user is needed."""
    gateway = _gateway(request, caller)
    listed = gateway.models()
    if listed is not None:
        data = [{"id": each, "object": "model", "created": 0, "owned_by": "memagent"} for each in listed]
        return JSONResponse({"object": "list", "data": data})
    upstream = gateway.upstream(UserFields(), BodyIds())
    passed = gateway.request(upstream, "/models", headers=request.headers)
    return Passage(gateway.client, passed, over=lambda: None)


def _gateway(request: Request, caller: Principal) -> Gateway:
    if May.TURNS not in caller.may:
        raise Forbidden(
            "this credential may not `turns`: use an API key that `memagent key --may turns` made"
        )
    if VIA in (each.strip() for each in request.headers.get("via", "").split(",")):
        raise ModelRefused(
            "the endpoint behind the gateway leads back to it: let its `baseURL` be the model's own"
        )
    gateway: Gateway | None = request.app.state.gateway
    if gateway is None:
        raise NotFound("there is no gateway here: set MEMAGENT_UPSTREAM to the name of a custom endpoint")
    return gateway


def _user(request: Request, caller: Principal, options: Environment) -> str:
    header = options.gateway_user_header
    said = named(request.headers.get(header))
    if caller.via in BY_USER and said not in {None, caller.user}:
        raise Forbidden("a user's own credential chats for that user only")
    user = said or caller.user
    if user is None:
        raise Unauthenticated(
            f"no user is named: send `{header}: {{{{LIBRECHAT_USER_ID}}}}` with the API key"
        )
    if len(user) > MAX_ID_CHARS:
        raise BadRequest(f"`{header}` has more than {MAX_ID_CHARS} characters")
    return user


def _ids(request: Request, options: Environment) -> BodyIds:
    message = named(request.headers.get(options.gateway_message_header))
    conversation = named(request.headers.get(options.gateway_conversation_header))
    return BodyIds(conversation or "", message or "")


def _fields(request: Request) -> dict[str, str]:
    """The user fields that a caller tells; LibreChat encodes what a header cannot carry (spec/librechat.md §3.5)."""
    told = {name: request.headers.get(f"{FIELD_HEADER}{name}") for name in USER_FIELDS if name != "id"}
    return {name: _decoded(value) for name, value in told.items() if named(value) and value is not None}


def _decoded(value: str) -> str:
    encoded = value.removeprefix("b64:")
    if encoded == value:
        return value
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except ValueError:
        return value
