"""memagent: a memory agent pipeline configured by librechat.yaml, and the validator of that YAML."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memagent.errors import MemagentError
    from memagent.memory import Memory, Message, Scope, ScopeKind
    from memagent.service import Context, Memagent
    from memagent.service.receipt import Receipt
    from memagent.turn import Turn, parse_turn
    from memagent.wiring import open  # noqa: A004  read as `memagent.open`

__version__ = "0.1.0"

__all__ = [
    "Context",
    "Memagent",
    "MemagentError",
    "Memory",
    "Message",
    "Receipt",
    "Scope",
    "ScopeKind",
    "Turn",
    "open",
    "parse_turn",
]

_HOMES = {
    "Context": "memagent.service",
    "Memagent": "memagent.service",
    "MemagentError": "memagent.errors",
    "Memory": "memagent.memory",
    "Message": "memagent.memory",
    "Receipt": "memagent.service.receipt",
    "Scope": "memagent.memory",
    "ScopeKind": "memagent.memory",
    "Turn": "memagent.turn",
    "open": "memagent.wiring",
    "parse_turn": "memagent.turn",
}


def __getattr__(name: str) -> Any:
    # The validator imports this package too, and must not pay for models and Redis.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
