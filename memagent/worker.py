"""The wiring of the turn queue: opens it beside an opened memory, with or without a worker."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from memagent import wiring
from memagent.errors import ConfigUnusable
from memagent.store.queues import Queues
from memagent.store.redis import RedisStore
from memagent.turns.meters import Meters
from memagent.turns.payload import Envelope
from memagent.turns.queue import TurnQueue
from memagent.turns.wakes import Wakes
from memagent.turns.work import Learner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from memagent.service import Memagent


@asynccontextmanager
async def open_queue(memory: Memagent, *, worker: bool) -> AsyncIterator[TurnQueue]:
    """The queue of turns of an opened memory, for as long as the block runs; `worker` learns from them in this process.

    At the end the worker begins nothing new, and what runs has MEMAGENT_DRAIN_S to end.
    """
    options, store = memory.ports.options, memory.ports.store
    if not isinstance(store, RedisStore):
        raise ConfigUnusable("turns wait in Redis: this memory was opened without")
    async with AsyncExitStack() as opened:
        wakes = await opened.enter_async_context(
            Wakes.open(store.url, prefix=options.key_prefix, lease_s=options.turn_lease_s)
        )
        queues = Queues(store.client, prefix=options.key_prefix)
        window = memory.ports.settings.memory.message_window_size
        envelope = Envelope(options.session_secret, window=window)
        meters = Meters()
        queue = TurnQueue(memory, queues, wakes, envelope, meters)
        wakes.listen(Learner(memory, queues, wakes, envelope, meters).learn, queue.sweep)
        opened.push_async_callback(wiring.stop, asyncio.create_task(queue.news.listen()))
        opened.callback(queue.news.close)
        if worker:
            await opened.enter_async_context(
                wakes.work(at_once=options.worker_turns, drain_s=options.drain_s)
            )
        yield queue
