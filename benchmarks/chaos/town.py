"""The processes of one run: Redis, the API, workers, each started again whenever it is gone, and a wire between each and Redis."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import sys
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

import httpx

from benchmarks.chaos import clock
from benchmarks.chaos.disk import Disk
from benchmarks.chaos.wire import Wire
from memagent.api.auth import May, new_key
from memagent.store.connection import connect
from memagent.store.embedded import answers, configuration, find_binaries

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from benchmarks.chaos.report import Plan

CLIENT_TIMEOUT_S = 45.0

CONFIG = """
version: '1.3.17'
endpoints:
  custom:
    - {name: Gateway, apiKey: key, baseURL: 'BASEURL', models: {default: [small], fetch: false}}
memory:
  disabled: false
  tokenLimit: TOKENS
  agent: {enabled: true, provider: Gateway, model: small}
"""


class Town:
    def __init__(self, folder: Path, plan: Plan, base_url: str) -> None:
        self.folder, self.plan = folder, plan
        self.key, self._row = new_key("chaos", frozenset({May.TURNS, May.READ, May.ADMIN}))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.socket = folder / "redis.sock"
        self.disk = Disk(folder / "disk", mount=plan.mount)
        config = CONFIG.replace("BASEURL", base_url).replace("TOKENS", str(plan.tokens))
        (folder / "librechat.yaml").write_text(config)
        self.workers = [f"worker{number}" for number in range(plan.workers)]
        self.names = ["redis", "api", *self.workers]
        dice = random.Random(plan.seed)
        self.wires = {name: Wire(self.socket, dice) for name in self.names[1:]}
        self.running: dict[str, asyncio.subprocess.Process] = {}
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opened:
            await self.disk.open()
            opened.push_async_callback(self.disk.close)
            text = configuration(self.disk.folder, self.socket, find_binaries().engine, "everysec")
            # Its log tells why a Redis does not come back, so it outlives the disk.
            text += f'logfile "{self.folder / "redis.log"}"\n'
            (self.folder / "redis.conf").write_text(text)
            for wire in self.wires.values():
                await opened.enter_async_context(wire)
            opened.push_async_callback(self._stop)
            for name in self.names:
                await self.start(name)
            self._opened = opened.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    @property
    def url(self) -> str:
        """Redis itself, past every wire."""
        return f"unix://{self.socket}"

    def client(self) -> httpx.AsyncClient:
        """One caller of the API. Each has its own: in a pool that many share, every request looks at every connection."""
        return httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=CLIENT_TIMEOUT_S,
            verify=False,  # Plain HTTP, and a hundred callers need not each read the certificates
        )

    async def rewrite(self) -> None:
        """What docs/deploy.md asks for after a full disk: have Redis write its append-only file anew, and wait for it."""
        asked = False
        async with asyncio.timeout(60), connect(self.url) as client:
            while True:
                found = await client.info("persistence")
                if found["aof_last_write_status"] == "ok" and not found["aof_rewrite_in_progress"]:
                    if asked and found["aof_last_bgrewrite_status"] == "ok":
                        return
                    await client.bgrewriteaof()
                    asked = True
                await asyncio.sleep(0.05)

    def pid(self, name: str) -> int:
        return self.running[name].pid

    def _environ(self, name: str) -> dict[str, str]:
        return {
            **os.environ,
            "MEMAGENT_CONFIG": str(self.folder / "librechat.yaml"),
            "MEMAGENT_REDIS_URL": f"redis://127.0.0.1:{self.wires[name].port}/0",
            "MEMAGENT_EMBEDDER": "hashed",
            "MEMAGENT_API_KEYS": self._row,
            "MEMAGENT_TURN_LEASE_S": "1",
            "MEMAGENT_TURN_BACKOFF_S": "0.1",
            "MEMAGENT_TURN_ATTEMPTS": "50",
            "MEMAGENT_MAX_MEMORIES": str(self.plan.entries),
            "MEMAGENT_RECALL_BUDGET_MS": f"{self.plan.budget_ms:g}",
            "MEMAGENT_RATE_LIMIT": "0",
            "MEMAGENT_DRAIN_S": "5",
            "MEMAGENT_LOG_LEVEL": "warning",
        }

    async def start(self, name: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            if name == "redis":
                self.running[name] = await asyncio.create_subprocess_exec(
                    find_binaries().server,
                    self.folder / "redis.conf",
                    stdout=log,
                    stderr=log,
                    # Python ignores SIGXFSZ, and so must the server: a file that is too long is an error, not the end.
                    restore_signals=False,
                )
                async with asyncio.timeout(30):
                    while not await answers(self.socket):  # noqa: ASYNC110  another process raises no event here
                        await asyncio.sleep(0.02)
                return
            command = ("serve", "--no-worker", "--port", str(self.port)) if name == "api" else ("worker",)
            self.running[name] = await asyncio.create_subprocess_exec(
                sys.executable,
                clock.__file__,
                self._clock(name),
                *command,
                env=self._environ(name),
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )

    def _clock(self, name: str) -> Path:
        return self.folder / f"{name}.clock"

    def move_clock(self, name: str, seconds: float) -> None:
        self._clock(name).write_text(str(seconds))

    async def kill(self, name: str) -> None:
        """As a machine would: no warning, no last words; and then it comes back."""
        process = self.running[name]
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await self.start(name)

    def pause(self, name: str, *, on: bool) -> None:
        with suppress(ProcessLookupError):
            self.running[name].send_signal(signal.SIGSTOP if on else signal.SIGCONT)

    async def revive(self) -> None:
        """What ended by itself, because Redis was gone when it started, is started again."""
        for name, process in list(self.running.items()):
            if process.returncode is not None:
                await self.start(name)

    async def _stop(self) -> None:
        for name in reversed(self.names):
            if name in self.running and self.running[name].returncode is None:
                self.running[name].send_signal(signal.SIGTERM)
                with suppress(TimeoutError):
                    async with asyncio.timeout(20):
                        await self.running[name].wait()
                if self.running[name].returncode is None:
                    self.running[name].kill()
                    await self.running[name].wait()
