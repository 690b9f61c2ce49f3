"""A bound that holds whatever the code inside does with a cancellation."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

T = TypeVar("T")

_left_behind: set[asyncio.Task[Any]] = set()
"""The loop itself keeps tasks weakly."""


async def within(seconds: float | None, doing: Coroutine[Any, Any, T]) -> T:
    """What `doing` returns or raises; `TimeoutError` once `seconds` are over, None for as long as it takes.

    `asyncio.timeout` cancels once, and `asyncio.wait_for`, in which redis-py sends, loses a cancellation that comes while
    its answer does (before Python 3.12): such a call would go on for as long as Redis is silent. So nobody waits for it.
    """
    if seconds is None:
        return await doing
    task = asyncio.create_task(doing)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    finally:
        if not task.done():
            _leave(task)
    if not done:
        raise TimeoutError
    return task.result()


def _leave(task: asyncio.Task[Any]) -> None:
    task.cancel()
    _left_behind.add(task)
    task.add_done_callback(_ended)


def _ended(task: asyncio.Task[Any]) -> None:
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # seen: whoever asked was told that time is over
