"""Providers and custom endpoints: from a name in the file to something that can be called."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ModelTarget:
    """One callable model with everything resolved for one user and one turn.

    `model` is litellm's name (`openai/gpt-4o-mini`); `base_url` None means the provider's own. `drop` names parameters
    that are never sent, `extra` the ones that go into the body as they are. Key and headers stay out of every repr.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    timeout_s: float = 60.0
