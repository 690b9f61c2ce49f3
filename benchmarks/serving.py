"""What the benchmarks of the service share: its processes, and a client so small that it does not count."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from memagent.api.auth import USER_HEADER, May, new_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_mb(pid: str) -> float:
    """Memory that a process holds; `self` is this one."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 2**20


class Connection:
    """One kept-alive HTTP/1.1 connection that sends JSON and reads the answer's status and body."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, user: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        sent = b"" if body is None else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self._key}\r\n{USER_HEADER}: {user}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
        )
        writer.write(head.encode() + sent)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = re.search(rb"content-length: (\d+)", answer)
        content = await reader.readexactly(int(length[1])) if length else b""
        if b"connection: close" in answer:
            self.close()
        return int(answer[9:12]), content

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


@dataclass
class Service:
    """A running API and its workers."""

    port: int
    key: str
    processes: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    def connection(self) -> Connection:
        return Connection(self.port, self.key)

    def resident_mb(self) -> dict[str, float]:
        """Memory that each process holds."""
        return {name: resident_mb(str(process.pid)) for name, process in self.processes.items()}

    async def metric(self, name: str) -> float:
        connection = self.connection()
        _, text = await connection.ask("/metrics", "")
        connection.close()
        found = re.search(rf"^{name} (\S+)$", text.decode(), re.MULTILINE)
        return float(found[1]) if found else 0.0


@asynccontextmanager
async def service(
    folder: Path, config: str, redis_url: str, *, workers: int, environ: dict[str, str] | None = None
) -> AsyncIterator[Service]:
    """`memagent serve --no-worker` and as many `memagent worker` as asked, as an admin starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    key, row = new_key("bench", frozenset(May))
    (folder / "librechat.yaml").write_text(config)
    settings = {
        "MEMAGENT_CONFIG": str(folder / "librechat.yaml"),
        "MEMAGENT_REDIS_URL": redis_url,
        "MEMAGENT_EMBEDDER": "hashed",
        "MEMAGENT_API_KEYS": row,
        "MEMAGENT_RATE_LIMIT": "0",
        "MEMAGENT_LOG_LEVEL": "warning",
        **(environ or {}),
    }
    running = Service(port, key)
    commands = {"api": ("serve", "--no-worker", "--port", str(port))}
    commands |= {f"worker {number}": ("worker",) for number in range(1, workers + 1)}
    with (folder / "log").open("ab") as log:
        for name, command in commands.items():
            running.processes[name] = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "memagent", *command,
                env={**os.environ, **settings}, cwd=folder, stdout=log, stderr=log,
            )  # fmt: skip
    try:
        await _ready(running, folder, workers)
        yield running
    finally:
        for process in running.processes.values():
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        for process in running.processes.values():
            try:
                async with asyncio.timeout(30):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


async def _ready(running: Service, folder: Path, workers: int) -> None:
    until = perf_counter() + 60
    while perf_counter() < until:
        with suppress(OSError, asyncio.IncompleteReadError):
            status, _ = await running.connection().ask("/ready", "")
            if status == 200 and await running.metric("memagent_workers") >= workers:
                return
        await asyncio.sleep(0.1)
    raise RuntimeError(f"the service did not start: {(folder / 'log').read_text()[-2000:]}")
