"""Turns on their way: accepted once, kept until they are learned from, in the order in which their user said them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Status(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    """Learned from, or skipped for a reason that the receipt gives."""
    DEAD = "dead"
    """Given up after its last attempt; an admin may replay it."""


class Durability(StrEnum):
    """What is certain about a turn's status."""

    ACCEPTED = "accepted"
    """Redis has the turn: it survives the end of any process of ours."""
    APPLIED = "applied"
    """What was learned is in Redis, and will not be applied again."""
    FSYNCED = "fsynced"
    """The status is on the disk of Redis' primary: `WAITAOF 1 0` answered so."""


OVER = frozenset({Status.DONE, Status.DEAD})


@dataclass(frozen=True, slots=True)
class Ticket:
    """One turn that was handed over, as it stands. It holds ids and what became of it, never what was said."""

    user: str
    id: str
    message_id: str
    conversation_id: str
    agent_id: str
    status: Status
    durability: Durability
    accepted_at: str
    """ISO 8601, UTC."""
    attempts: int = 0
    error: Mapping[str, Any] | None = None
    """Of the last attempt that failed: `code`, `message`, `retryable`."""
    receipt: Mapping[str, Any] | None = field(default=None)

    @property
    def over(self) -> bool:
        return self.status in OVER
