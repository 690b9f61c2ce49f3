"""A clock, an estimator and a desk of sessions that the session tests share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from memagent.sessions.reset import ResetSettings
from memagent.sessions.service import Said, Sessions, SessionSettings
from tests.sessions.chat_cases import ai

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from memagent.llm import Usage
    from memagent.memory import Message

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
KEY = "agent:main:main"


class Clock:
    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def to(self, day: int, hour: int, minute: int = 0, second: int = 0, microsecond: int = 0) -> None:
        self.now = datetime(2026, 3, day, hour, minute, second, microsecond, tzinfo=UTC)

    def forward(self, **delta: float) -> None:
        self.now += timedelta(**delta)


class Chars:
    """A token is a character."""

    def count_text(self, text: str, /) -> int:
        return len(text)

    def count_message(self, message: Message, /) -> int:
        return len(str(message.content or "")) + sum(len(call.arguments) for call in message.tool_calls)

    def count_messages(self, messages: Iterable[Message], /) -> int:
        return sum(map(self.count_message, messages))


def desk(folder: Path, clock: Clock | None = None, **options: Any) -> Sessions:
    ids = count(1)
    settings = options.pop("settings", None) or SessionSettings(reset=ResetSettings(zone="UTC"), sync=False)
    options.setdefault("estimator", Chars())
    options.setdefault("new_id", lambda: f"s{next(ids)}-{folder.name[-8:].strip('-_')}")
    return Sessions(folder, clock=clock or Clock(), settings=settings, **options)


async def turn(
    sessions: Sessions, text: str, answer: str = "ok", *, key: str = KEY, usage: Usage | None = None
) -> str:
    """One turn; the id of the session it went to."""
    received = await sessions.receive(key, text)
    await sessions.record(key, [Said(ai(answer), usage)], session_id=received.session_id)
    return received.session_id


async def texts(sessions: Sessions, key: str = KEY) -> list[Any]:
    return [message.content for message in (await sessions.context(key)).messages]
