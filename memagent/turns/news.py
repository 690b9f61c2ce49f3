"""Who waits for a turn here is told when its state changes; news that is missed costs a second, never an answer."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from memagent.errors import StoreFault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from memagent.store.queues import Queues

log = logging.getLogger("memagent.turns")

LOOK_AGAIN_S = 1.0
"""A waiting reader looks for itself after this long: news is not kept for who was not listening."""


class News:
    """One subscription for all readers of a process."""

    def __init__(self, queues: Queues) -> None:
        self._queues = queues
        self._readers: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self.closed = asyncio.Event()
        """The process is about to end: readers answer with what they know."""

    def close(self) -> None:
        """Let every reader go."""
        self.closed.set()
        for events in self._readers.values():
            for event in events:
                event.set()

    async def listen(self) -> None:
        """Spread the news until closed; an outage is waited out."""
        while not self.closed.is_set():
            try:
                async with self._queues.news() as heard:
                    async for handle in heard:
                        # redis-py can swallow a cancel that comes with its own timeout.
                        if self.closed.is_set():
                            return
                        for event in self._readers.get(handle or "", ()):
                            event.set()
            except StoreFault as fault:
                log.warning("no news of turns", extra={"code": fault.code})
                await asyncio.sleep(LOOK_AGAIN_S)

    @asynccontextmanager
    async def of(self, handle: str) -> AsyncIterator[asyncio.Event]:
        """An event that is set whenever this turn changed, for as long as the block."""
        event = asyncio.Event()
        self._readers[handle].add(event)
        try:
            yield event
        finally:
            self._readers[handle].discard(event)
            if not self._readers[handle]:
                del self._readers[handle]
