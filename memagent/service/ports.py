"""What the use cases stand on: configuration, store, models, clock and environment, handed in by the wiring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from memagent.config.endpoints import ModelTarget
    from memagent.config.environment import Environment
    from memagent.config.settings import Settings
    from memagent.llm import ChatModel, Embedder
    from memagent.service.erasure import Eraser
    from memagent.service.passages import Passages
    from memagent.store import Store


@dataclass(frozen=True, slots=True)
class Ports:
    """`settings` come from librechat.yaml, `options` from MEMAGENT_*; `embedder` None means memory without search (T45).

    `passages` are turns and notes, where they are configured. `erasers` erase what is kept of a user outside of the store.
    """

    settings: Settings
    options: Environment
    store: Store
    embedder: Embedder | None
    models: Callable[[ModelTarget], ChatModel]
    clock: Callable[[], datetime]
    environ: Mapping[str, str]
    passages: Passages | None = None
    erasers: tuple[Eraser, ...] = ()
