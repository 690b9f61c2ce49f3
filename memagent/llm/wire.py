"""OpenAI's wire format, as a server writes it: chat completions, whole and in events, and embeddings."""

from __future__ import annotations

import base64
import json
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memagent.llm import ModelReply, Usage
    from memagent.memory import ToolCall

_PIECE_CHARS = 16


def completion(reply: ModelReply, *, id: str, created: int = 0) -> dict[str, Any]:  # noqa: A002  the format's name
    """Write a reply as the body of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool_calls:
        message["tool_calls"] = [_call(call) for call in reply.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}
    return {
        **_frame("chat.completion", id, created, reply.model),
        "choices": [choice],
        "usage": usage(reply.usage),
    }


def events(reply: ModelReply, *, id: str, created: int = 0, with_usage: bool = False) -> Iterator[bytes]:  # noqa: A002
    """Write a reply as server-sent events: the role, the text in pieces, the calls, the end, the usage if asked for."""
    frame = _frame("chat.completion.chunk", id, created, reply.model)

    def event(delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return _event({**frame, "choices": [choice]})

    yield event({"role": "assistant", "content": ""})
    for start in range(0, len(reply.text), _PIECE_CHARS):
        yield event({"content": reply.text[start : start + _PIECE_CHARS]})
    for index, call in enumerate(reply.tool_calls):
        yield event({"tool_calls": [{"index": index, **_call(call)}]})
    yield event({}, reply.finish_reason)
    if with_usage:
        yield _event({**frame, "choices": [], "usage": usage(reply.usage)})
    yield b"data: [DONE]\n\n"


def usage(used: Usage) -> dict[str, Any]:
    prompt = used.input_tokens + used.cache_read_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": used.output_tokens,
        "total_tokens": prompt + used.output_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cache_read_tokens},
    }


def embeddings(
    vectors: Sequence[Sequence[float]], *, model: str, tokens: int, base64_encoded: bool
) -> dict[str, Any]:
    """Write vectors as the body of an embeddings answer, as numbers or as base64 of little-endian float32."""
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": _packed(vector) if base64_encoded else list(vector),
        }
        for index, vector in enumerate(vectors)
    ]
    return {
        "object": "list",
        "data": data,
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


def _frame(kind: str, id: str, created: int, model: str) -> dict[str, Any]:  # noqa: A002
    return {"id": id, "object": kind, "created": created, "model": model}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _event(body: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"
