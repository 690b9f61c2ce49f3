"""Memories for the agent's tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from memagent.agent.evidence import Witnesses
from memagent.agent.ledger import Held, Ledger, Rules
from memagent.memory import Memory, Message
from memagent.tokens import count_tokens

DAY = datetime(2026, 5, 1, 12, tzinfo=UTC)


def memory(key: str, value: str, day: int = 0, **given: Any) -> Memory:
    at = DAY + timedelta(days=day)
    return Memory(
        **(
            {"key": key, "value": value, "tokens": count_tokens(value), "created_at": at, "updated_at": at}
            | given
        )
    )


def words(text: str) -> int:
    """A tokenizer that is easy to reckon with."""
    return len(text.split())


def ledger(
    held: dict[str, str] | None = None,
    *,
    said: str = "",
    injected: dict[str, str] | None = None,
    **rules: Any,
) -> Ledger:
    """A ledger over `held`, counting words, for a chat in which the user said `said`."""
    chat = [Message("user", said, id="m1")] if said else []
    return Ledger(
        {key: Held(words(value), value) for key, value in (held or {}).items()},
        rules=Rules(**rules),
        count=words,
        witnesses=Witnesses(chat, conversation_id="c1"),
        injected=injected,
    )
