"""The one door to pydocket: tells some worker, now or later, to look at a user's line, and again when that worker dies.

A wake carries a user's id and nothing that was said; which turn comes next is the line's to know.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from memagent.errors import StoreFault, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from docket import Docket, Worker

log = logging.getLogger("memagent.worker")

HEARTBEAT_S = 2.0
MISSED_HEARTBEATS = 5
"""A worker that was silent for this many counts as gone."""

CHECK_S = 0.1
RECONNECT_S = 0.5

CALL_TIMEOUT_S = 5.0
"""For one call of ours: pydocket itself waits for as long as it takes."""


class Wakes:
    """Wakes for one memory; `open` makes one."""

    def __init__(self, docket: Docket, *, lease_s: float) -> None:
        self._docket = docket
        self._lease_s = lease_s
        self._sweep: Callable[[], Awaitable[None]] | None = None
        self._running: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, *, prefix: str, lease_s: float) -> AsyncIterator[Wakes]:
        """Connect; what pydocket keeps stands under `prefix`-turns."""
        from docket import Docket  # noqa: PLC0415  heavy, and only the service has it

        async with Docket(
            name=f"{prefix}-turns",
            url=url,
            heartbeat_interval=timedelta(seconds=HEARTBEAT_S),
            missed_heartbeats=MISSED_HEARTBEATS,
            # A finished wake leaves nothing behind: its name holds a user's id.
            execution_ttl=timedelta(0),
        ) as docket:
            yield cls(docket, lease_s=lease_s)

    async def wake(self, user: str, *, key: str, delay_s: float = 0.0) -> None:
        """Have a worker look at this user's line; one wake per `key` at a time. Raises `StoreUnavailable`."""
        when = datetime.now(UTC) + timedelta(seconds=delay_s) if delay_s else None
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                await self._docket.add(LEARN, when=when, key=key)(user)
        except Exception as error:  # noqa: BLE001  see below
            # pydocket lets redis-py's errors and its own through; none of them says more than that it was not heard.
            raise StoreUnavailable(
                f"no worker could be told of a turn ({type(error).__name__}): hand it over again"
            ) from None

    async def workers(self) -> int:
        """How many workers are alive."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                return len(await self._docket.workers())
        except Exception as error:  # noqa: BLE001  as in wake
            raise StoreUnavailable(f"the workers cannot be counted ({type(error).__name__})") from None

    def listen(self, learn: Callable[[str], Awaitable[None]], sweep: Callable[[], Awaitable[None]]) -> None:
        """What a wake does here, and what a worker does every third of a lease."""
        self._sweep = sweep

        async def learn_turns(user: str) -> None:
            task = asyncio.create_task(_awaited(learn(user)))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            await task

        # pydocket reads the names of types where it runs them, and these are local to this function.
        learn_turns.__annotations__ = {}
        self._docket.register(learn_turns)

    @asynccontextmanager
    async def work(self, *, at_once: int, drain_s: float, name: str | None = None) -> AsyncIterator[None]:
        """Run a worker for as long as the block: then nothing new is begun, and what runs has `drain_s` to end."""
        from docket import Worker  # noqa: PLC0415  see open

        async with AsyncExitStack() as opened:
            worker = await opened.enter_async_context(
                Worker(
                    self._docket,
                    name=name,
                    concurrency=at_once,
                    redelivery_timeout=timedelta(seconds=2 * self._lease_s),
                    reconnection_delay=timedelta(seconds=RECONNECT_S),
                    minimum_check_interval=timedelta(seconds=CHECK_S),
                    scheduling_resolution=timedelta(seconds=CHECK_S),
                )
            )
            running = asyncio.create_task(_worked(worker), name="memagent worker")
            sweeping = asyncio.create_task(self._sweeping(), name="memagent sweep")
            try:
                yield
            finally:
                sweeping.cancel()
                await self._drain(running, drain_s)
                await asyncio.gather(sweeping, return_exceptions=True)

    async def _sweeping(self) -> None:
        """Sweep now and then. pydocket plans by the time of day, and a clock that is set back would put the next one off."""
        while self._sweep is not None:
            await asyncio.sleep(self._lease_s / 3)
            try:
                await self._sweep()
            except StoreFault as fault:
                log.warning("the sweep waits for the store", extra={"code": fault.code})
            except Exception as bug:  # noqa: BLE001  without sweeps, a lost wake would be for ever
                log.error("a bug", extra={"kind": type(bug).__name__})  # noqa: TRY400  its words may name a user

    async def _drain(self, running: asyncio.Task[None], drain_s: float) -> None:
        """Ask the worker to stop, and after `drain_s` stop asking: what is cut off is redelivered to another."""
        running.cancel()
        done, _ = await asyncio.wait({running}, timeout=drain_s)
        if not done:
            log.warning("turns are cut off and left to another worker", extra={"turns": len(self._running)})
            for task in tuple(self._running):
                task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await running


LEARN = "learn_turns"


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def _worked(worker: Worker) -> None:
    """Run until asked to stop. pydocket waits out what redis-py raises and ends with anything else, uvloop's errors for one."""
    while True:
        try:
            return await worker.run_forever()
        except Exception as error:  # noqa: BLE001  whatever it was, turns are waiting
            log.error("the worker ended and is started again", extra={"kind": type(error).__name__})  # noqa: TRY400  its words may name a user
            await asyncio.sleep(RECONNECT_S)
