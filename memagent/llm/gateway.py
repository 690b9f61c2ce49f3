"""Models behind litellm: the only place that imports it.

litellm is loaded at the first call, in a thread, for its import takes seconds. Nothing here retries: an extraction is
durable and is tried again as a whole.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from memagent.errors import EmbedderFault, ModelFault, ModelRefused, ModelReplyInvalid
from memagent.llm import ModelReply, Usage
from memagent.llm.faults import fault_of, place, timed_out
from memagent.memory import ToolCall
from memagent.tokens import well_formed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from memagent.config.endpoints import ModelTarget
    from memagent.llm import ChatModel, ToolSpec
    from memagent.llm.connection import Connection
    from memagent.memory import Message

_OURS = frozenset(
    [
        "model",
        "messages",
        "input",
        "tools",
        "tool_choice",
        "stream",
        "stream_options",
        "api_key",
        "api_base",
        "base_url",
        "timeout",
        "request_timeout",
        "num_retries",
        "max_retries",
        "retry_policy",
        "fallbacks",
        "extra_headers",
        "headers",
        "extra_body",
        "client",
        "mock_response",
        "callbacks",
        "drop_params",
        "metadata",
        "logger_fn",
        "caching",
        "custom_llm_provider",
    ]
)
"""Arguments of litellm's that memagent sets or that steer litellm itself: a model parameter of that name is not sent."""

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")


@cache
def _litellm() -> Any:
    # litellm's own switches; without the first its import goes to the network for prices.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm  # noqa: PLC0415  seconds of import that only a model call may cost

    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    litellm.telemetry = False
    litellm.drop_params = False
    for callbacks in (
        "callbacks",
        "input_callback",
        "success_callback",
        "failure_callback",
        "service_callback",
    ):
        setattr(litellm, callbacks, [])
    for name in _LOGGERS:
        # They print requests and provider answers, which hold what users said.
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.disabled = True
    # At INFO it logs every URL, and some providers want the key there.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    return litellm


class Gateway:
    """Chat and embedding models of every provider that litellm knows, and of any OpenAI-compatible endpoint."""

    def __init__(self) -> None:
        self._connection: Connection | None = None

    async def warm(self) -> None:
        """Load litellm without blocking the loop, before the first turn has to wait for it."""
        if not _litellm.cache_info().currsize:
            await asyncio.to_thread(_litellm)

    def model(self, target: ModelTarget) -> ChatModel:
        """Bind one chat model; no call is made."""
        return _BoundModel(self, target)

    async def embed(self, target: ModelTarget, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        """Embed texts, in order, as the provider returns them (not every one has unit length); raises `EmbedderFault`."""
        if not texts:
            return ()
        await self.warm()
        plain = [well_formed(text) for text in texts]
        try:
            rows = await _bounded(target, lambda: self._rows(target, plain))
            rows = sorted(rows, key=lambda row: row["index"])
            vectors = tuple(tuple(float(number) for number in row["embedding"]) for row in rows)
        except ModelFault as fault:
            message = str(fault)
        except (AttributeError, KeyError, TypeError, ValueError):
            message = f"{place(target)} sent embeddings that cannot be read (model {target.model})"
        else:
            if len(vectors) == len(texts):
                return vectors
            message = f"{place(target)} sent {len(vectors)} embeddings for {len(texts)} texts (model {target.model})"
        raise EmbedderFault(message)

    async def _rows(self, target: ModelTarget, texts: list[str]) -> Any:
        """The provider's rows, from an OpenAI-compatible endpoint without litellm.

        Recall waits for them before every answer, and litellm takes longer than the way there and back.
        """
        arguments = self.arguments(target)
        if "client" not in arguments or target.credentials:
            return (await _litellm().aembedding(**arguments, input=texts)).data
        import httpx  # noqa: PLC0415  loaded by the client

        body = _parameters(target)
        body |= body.pop("extra_body") | {"model": target.model.partition("/")[2], "input": texts}
        options = {"timeout": target.timeout_s}
        client = arguments["client"]
        answer = await client.post("/embeddings", body=body, cast_to=httpx.Response, options=options)
        return answer.json()["data"]

    async def context_window(self, model: str) -> int | None:
        """Return how many tokens a model can read, or None when litellm's table does not know it; never asks a server."""
        await self.warm()
        table = _litellm().model_cost
        row = table.get(model) or table.get(model.partition("/")[2]) or {}
        window = row.get("max_input_tokens") or row.get("max_tokens")
        return int(window) if isinstance(window, int | float) else None

    def arguments(self, target: ModelTarget) -> dict[str, Any]:
        """Say to litellm what a call of any kind to `target` takes; raises `ModelRefused` for a header nobody can send."""
        from memagent.llm.connection import NO_KEY, Connection  # noqa: PLC0415  httpx: nothing before a call needs it

        headers = _headers(target)
        common = _parameters(target) | {
            "model": target.model,
            "api_base": target.base_url,
            "api_key": target.api_key,
            "timeout": target.timeout_s,
            "num_retries": 0,
            "max_retries": 0,
        }
        if not (target.model.startswith("openai/") and target.base_url):
            return common | {"extra_headers": headers}
        if self._connection is None:
            self._connection = Connection()
        return common | {"client": self._connection.client(target), "api_key": target.api_key or NO_KEY}

    async def close(self) -> None:
        """Close every connection, litellm's own too if it was ever loaded."""
        if self._connection is not None:
            await self._connection.close()
        if _litellm.cache_info().currsize:
            from litellm.llms.custom_httpx.async_client_cleanup import (  # noqa: PLC0415  as lazy as litellm itself
                close_litellm_async_clients,
            )

            await close_litellm_async_clients()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class _BoundModel:
    gateway: Gateway
    target: ModelTarget

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> ModelReply:
        await self.gateway.warm()
        arguments = {
            **self.gateway.arguments(self.target),
            "messages": [_sent(message) for message in messages],
        }
        if tools:
            arguments["tools"] = [_offered(tool) for tool in tools]
        answer = await _bounded(self.target, lambda: _litellm().acompletion(**arguments))
        try:
            return _reply(answer, self.target)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            pass
        raise ModelReplyInvalid(
            f"{place(self.target)} sent an answer that cannot be read (model {self.target.model})"
        )


async def _bounded(target: ModelTarget, ask: Callable[[], Awaitable[Any]]) -> Any:
    """Await a call within the target's timeout, whatever trickles in meanwhile.

    The fault is raised outside of the handler: litellm's own exceptions quote requests and keys, and must not travel on
    as the context of ours.
    """
    try:
        async with asyncio.timeout(target.timeout_s):
            return await ask()
    except TimeoutError:
        fault: ModelFault = timed_out(target)
    except Exception as error:  # noqa: BLE001  litellm raises classes of every provider's SDK
        fault = fault_of(error, target)
    raise fault


# -- what is sent ------------------------------------------------------------------------------------------------------


def _parameters(target: ModelTarget) -> dict[str, Any]:
    parameters = {name: value for name, value in target.parameters.items() if name not in _OURS}
    if _speaks_openai(target.model):
        parameters["extra_body"] = {
            name: value for name, value in target.extra.items() if name not in target.drop
        }
    else:
        parameters |= {name: value for name, value in target.extra.items() if name not in _OURS}
    kept = {name: value for name, value in parameters.items() if name not in target.drop}
    return kept | dict(target.credentials)


def _speaks_openai(model: str) -> bool:
    """Whether parameters beyond litellm's own go into the body by way of `extra_body`."""
    provider = model.partition("/")[0]
    return provider in {"openai", "azure"} or provider in _litellm().openai_compatible_providers


def _headers(target: ModelTarget) -> dict[str, str | bytes]:
    for name, value in target.headers.items():
        if any(character in "\r\n\0" or character > "\xff" for character in value):
            told = (
                f"header {name!r} for {place(target)} holds a character that no header may; nothing was sent"
            )
            raise ModelRefused(told)
    # As text a value has to be ASCII. As bytes it is sent, by some providers' clients in UTF-8.
    return {
        name: value if value.isascii() else value.encode("latin-1") for name, value in target.headers.items()
    }


def _sent(message: Message) -> dict[str, Any]:
    content: Any = message.content
    if isinstance(content, str):
        content = well_formed(content)
    elif content is not None:
        content = [dict(part) for part in content]
    sent: dict[str, Any] = {"role": message.role, "content": content}
    if message.name:
        sent["name"] = message.name
    if message.tool_calls:
        sent["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": well_formed(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


def _offered(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


# -- what comes back ---------------------------------------------------------------------------------------------------


def _reply(answer: Any, target: ModelTarget) -> ModelReply:
    choice = answer.choices[0]
    calls = tuple(
        ToolCall(str(call.id or ""), str(call.function.name or ""), str(call.function.arguments or ""))
        for call in choice.message.tool_calls or ()
    )
    return ModelReply(
        str(choice.message.content or ""),
        calls,
        _usage(answer, target.model),
        str(answer.model or target.model),
        str(choice.finish_reason or ""),
    )


def _usage(answer: Any, model: str) -> Usage:
    used = getattr(answer, "usage", None)
    details = getattr(used, "prompt_tokens_details", None)
    read = getattr(details, "cached_tokens", None) or 0
    written = getattr(used, "cache_creation_input_tokens", None) or 0
    return Usage(
        input_tokens=max((getattr(used, "prompt_tokens", None) or 0) - read, 0),
        output_tokens=getattr(used, "completion_tokens", None) or 0,
        cache_read_tokens=read,
        cache_write_tokens=written,
        cost_usd=_cost(answer, model),
    )


def _cost(answer: Any, model: str) -> float | None:
    try:
        return float(_litellm().completion_cost(completion_response=answer, model=model))
    except Exception:  # noqa: BLE001  litellm raises bare Exception for a model without a price
        return None
