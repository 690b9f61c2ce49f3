"""Erasure of a user with the turns that wait or run: what is under way writes nothing of it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.memory import Scope, ScopeKind
from memagent.turns import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memagent.service import Memagent
    from memagent.service.erasure import Erasure
    from memagent.store.queues import Queues


async def erase_user(memory: Memagent, queues: Queues, user: str, *, preferences: bool = False) -> Erasure:
    """Take the user's turns out of every line, then erase what is kept of the user. Raises `StoreFault`."""
    turns = await queues.erase(user)
    dead = sum(turn["status"] == Status.DEAD for turn in turns)
    under_way: dict[Scope, list[str]] = {}
    for turn in turns:
        if turn["status"] == Status.RUNNING:
            scope = Scope(ScopeKind.USER, user, turn["agent_id"])
            under_way.setdefault(scope, []).append(turn["message_id"])

    async def counted(_: str) -> Mapping[str, int]:
        return {"turns": len(turns) - dead, "dead_letters": dead}

    return await memory.erase_user(user, closed=under_way, preferences=preferences, also=(counted,))
