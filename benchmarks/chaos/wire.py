"""What lies between one process and Redis: a loopback proxy that can be slow, silent, cut, or lose the answers.

Both sides are real sockets, so what a client sees is what a network does to it. A wire carries the connections of one process;
each process has its own, and so one can be cut off while the others go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from pathlib import Path
    from typing import Self

BACKLOG = 1_024
"""Connections that may wait to be taken: as many as Redis itself would let, and more, so that none is lost here."""

CHUNK = 65_536
SLOW_S = (0.05, 0.3)
"""Each way, for every piece that is sent: evenly drawn, so that the round trip takes 100 to 600 ms."""


class Mode(StrEnum):
    PASS = "pass"
    SLOW = "slow"
    STALLED = "stalled"
    """Connections stay open and new ones are taken; nothing arrives until the wire is mended, then all of it does."""
    CUT = "cut"
    """Open connections are reset, new ones too."""
    DEAF = "deaf"
    """What is asked arrives and is done; its answer is lost, and half of the time the connection with it at once."""


@dataclass(eq=False)
class Call:
    """One connection: to the client, and on to Redis."""

    ends: tuple[asyncio.StreamWriter, asyncio.StreamWriter]
    lost: bool = False
    """A piece of what Redis said is missing, so nothing behind it may arrive either."""

    def abort(self) -> None:
        for end in self.ends:
            end.transport.abort()


@dataclass
class Wire:
    socket: Path
    """Where Redis listens."""
    dice: random.Random
    mode: Mode = Mode.PASS
    port: int = 0
    _calls: set[Call] = field(default_factory=set)
    _carrying: set[asyncio.Task[None]] = field(default_factory=set)
    _moving: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._moving.set()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=BACKLOG)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._abort()
        for task in tuple(self._carrying):
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    def become(self, mode: Mode) -> None:
        self.mode = mode
        if mode is Mode.CUT:
            self._abort()
        for call in [call for call in self._calls if call.lost]:
            call.abort()
        if mode is Mode.STALLED:
            self._moving.clear()
        else:
            self._moving.set()

    def _abort(self) -> None:
        for call in tuple(self._calls):
            call.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.mode is Mode.CUT:
            writer.transport.abort()
            return
        try:
            redis_reader, redis_writer = await asyncio.open_unix_connection(str(self.socket))
        except OSError:
            writer.transport.abort()
            return
        call = Call((writer, redis_writer))
        self._calls.add(call)
        ways = {
            asyncio.create_task(self._carry(call, reader, redis_writer, answers=False)),
            asyncio.create_task(self._carry(call, redis_reader, writer, answers=True)),
        }
        self._carrying |= ways
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # What is still stalled on its way to Redis arrives late, as it does in a network: the client is gone by then.
            await asyncio.gather(*ways, return_exceptions=True)
            self._carrying -= ways
            self._calls.discard(call)
            call.abort()

    async def _carry(
        self, call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(CHUNK):
                if self.mode is Mode.SLOW:
                    await asyncio.sleep(self.dice.uniform(*SLOW_S))
                await self._moving.wait()
                if answers and self.mode is Mode.DEAF and not call.lost:
                    call.lost = True
                    if self.dice.random() < 0.5:
                        break
                if not (answers and call.lost):
                    writer.write(piece)
                    await writer.drain()
        writer.close()
