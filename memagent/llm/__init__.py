"""Ports to models: what the agent, recall and compaction see of a chat model and of an embedder."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from memagent.memory import Message, ToolCall

    Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool offered to a model; `parameters` is its JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call cost. `input_tokens` excludes what was read from a cache; `cost_usd` is None when the price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class ModelReply:
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    finish_reason: str = ""


class ChatModel(Protocol):
    """A chat model behind one endpoint, with its parameters bound."""

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> ModelReply:
        """Answer `messages`, or raise `ModelUnavailable`, `ModelRefused` or `ModelReplyInvalid`."""
        ...


class Embedder(Protocol):
    """Texts to unit vectors.

    `id` names the model, its dimensions and everything else that makes two vectors comparable (T48): vectors of
    different ids are never compared. `floor` is the calibrated score in 0..1 at which a match counts (T05).
    """

    id: str
    dimensions: int
    floor: float

    async def query(self, text: str) -> Vector:
        """One question, shape (dimensions,), unit length; raises `EmbedderFault`."""
        ...

    async def passages(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Texts to be found, in order; raises `EmbedderFault`."""
        ...
