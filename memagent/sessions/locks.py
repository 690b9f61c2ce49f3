"""Locks of a chat's data: one per id, across the tasks, the event loops and the processes that share it."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from filelock import FileLock, Timeout

from memagent.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Hashable
    from pathlib import Path

P = ParamSpec("P")
T = TypeVar("T")

CONTENDED_POLL_S = 0.005
"""How often a lock that another process holds is tried again; far below what a person notices."""


class IdLocks:
    """One lock per id for all tasks of this process, whichever event loop they run in; first come, first served.

    An `asyncio.Lock` belongs to one loop and a `threading.Lock` would block a loop; this one hands the turn over with
    `call_soon_threadsafe`. Free ids take no memory. Not reentrant.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._queues: dict[Hashable, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def hold(self, key: Hashable) -> AsyncIterator[None]:
        await self._acquire(key)
        try:
            yield
        finally:
            self._release(key)

    def held(self, key: Hashable) -> bool:
        return key in self._queues

    async def _acquire(self, key: Hashable) -> None:
        with self._mutex:
            if key not in self._queues:
                self._queues[key] = deque()
                return
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queues[key].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            with self._mutex:
                queue = self._queues.get(key, deque())
                still_waiting = turn in queue
                if still_waiting:
                    queue.remove(turn)
            if not still_waiting:  # the turn was handed over meanwhile: pass it on
                self._release(key)
            raise

    def _release(self, key: Hashable) -> None:
        with self._mutex:
            queue = self._queues[key]
            while queue:
                turn = queue.popleft()
                try:
                    turn.get_loop().call_soon_threadsafe(_wake, turn)
                except RuntimeError:  # that loop is closed and its task with it
                    continue
                return
            del self._queues[key]


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


class FileLocks:
    """Locks named by files of `folder`, across processes; within this process they queue as `IdLocks`.

    A process that dies gives its locks back: the operating system closes the file. A lock is tried, never waited for in
    a thread, so holders always find a thread for their work.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._here = IdLocks()

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        """Hold the lock `name`, a bare file name; raises `StoreUnavailable` when the folder cannot be written."""
        async with self._here.hold(name):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                lock = FileLock(self.folder / f"{name}.lock", thread_local=False)
                while not _try(lock):  # noqa: ASYNC110  the one who frees it is another process
                    await asyncio.sleep(CONTENDED_POLL_S)
            except OSError as error:
                raise StoreUnavailable(
                    f"cannot lock {name!r} in {self.folder}: {error.strerror or error}; check the folder's permissions"
                ) from error
            try:
                yield
            finally:
                lock.release()

    def free(self, name: str) -> bool:
        """Whether nobody holds `name` at this moment."""
        if self._here.held(name):
            return False
        path = self.folder / f"{name}.lock"
        if not path.exists():
            return True
        lock = FileLock(path, thread_local=False)
        if not _try(lock):
            return False
        lock.release()
        return True


async def finished(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Run blocking work in a thread, to its end even when the caller is cancelled: the locks around it outlast it."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments, **options))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        running.exception()  # whoever was cancelled does not want it
        raise


def _try(lock: FileLock) -> bool:
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True
