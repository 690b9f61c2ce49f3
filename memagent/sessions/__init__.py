"""Conversations and what outlives them: chat memories, sessions, memory files. Names load with their first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memagent.sessions.chat_memory import ChatMemory, MessageWindowChatMemory, TokenWindowChatMemory
    from memagent.sessions.chat_provider import ChatMemoryProvider
    from memagent.sessions.chat_redis import RedisChatMemoryStore
    from memagent.sessions.chat_service import ChatService, Tool
    from memagent.sessions.chat_stores import (
        ChatMemoryStore,
        InMemoryChatMemoryStore,
        JsonlChatMemoryStore,
        SingleSlotChatMemoryStore,
    )
    from memagent.sessions.estimator import O200kEstimator, TokenCountEstimator
    from memagent.sessions.service import Said, Sessions, SessionSettings

__all__ = [
    "ChatMemory",
    "ChatMemoryProvider",
    "ChatMemoryStore",
    "ChatService",
    "InMemoryChatMemoryStore",
    "JsonlChatMemoryStore",
    "MessageWindowChatMemory",
    "O200kEstimator",
    "RedisChatMemoryStore",
    "Said",
    "SessionSettings",
    "Sessions",
    "SingleSlotChatMemoryStore",
    "TokenCountEstimator",
    "TokenWindowChatMemory",
    "Tool",
]

_HOMES = {
    "chat_memory": ("ChatMemory", "MessageWindowChatMemory", "TokenWindowChatMemory"),
    "chat_provider": ("ChatMemoryProvider",),
    "chat_redis": ("RedisChatMemoryStore",),
    "chat_service": ("ChatService", "Tool"),
    "chat_stores": (
        "ChatMemoryStore",
        "InMemoryChatMemoryStore",
        "JsonlChatMemoryStore",
        "SingleSlotChatMemoryStore",
    ),
    "estimator": ("O200kEstimator", "TokenCountEstimator"),
    "service": ("Said", "SessionSettings", "Sessions"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"memagent.sessions.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
