"""A Redis Cluster of our own on loopback: several primaries with the query engine, and replicas that can take over.

For benchmarks and tests. Its nodes are the embedded Redis' server, so what it shows is the query engine without a coordinator.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import subprocess
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import ResponseError

from memagent.store.embedded import COMPACT, find_binaries

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path
    from types import TracebackType

SLOTS = 16_384
NODE_TIMEOUT_MS = 1_000
"""After this a silent node counts as failing; Redis' own default is 15 s."""

HAND_OVER_S = 6.0
"""Redis gives a failover that was asked for up after five seconds, without a word; then it is asked for again."""

POLL_S = 0.02
START_TIMEOUT_S = 30.0


@dataclass(slots=True, eq=False)
class Node:
    """One server, looked at and steered from any event loop."""

    port: int
    process: subprocess.Popen[bytes]

    async def ask(self, *command: Any) -> Any:
        async with Redis(host="127.0.0.1", port=self.port, protocol=2) as client:
            answer = await client.execute_command(*command)
        return answer.decode() if isinstance(answer, bytes) else answer

    @property
    def alive(self) -> bool:
        return self.process.poll() is None


@dataclass(slots=True)
class LocalCluster:
    """Started by `start` under a folder; the first `primaries` nodes begin as primaries, replicas follow in the same order."""

    folder: Path
    primaries: int = 3
    replicas: int = 1
    nodes: list[Node] = field(default_factory=list)

    @property
    def url(self) -> str:
        """A plain URL of one node: that it is a cluster is for the client to find out."""
        return f"redis://127.0.0.1:{self.nodes[0].port}/0"

    @property
    def pids(self) -> list[int]:
        return [node.process.pid for node in self.nodes]

    async def start(self) -> Self:
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._start()
        except BaseException:
            self.stop()
            raise
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Nothing of it is to be kept: the folder goes with it."""
        for node in self.nodes:
            node.process.kill()
        for node in self.nodes:
            node.process.wait()

    async def _start(self) -> None:
        for port in free_ports(self.primaries * (1 + self.replicas)):
            self.nodes.append(self._node(port))
        for node in self.nodes:
            await until(lambda node=node: _answers(node))  # type: ignore[misc]
        first, size = self.nodes[0], SLOTS // self.primaries
        for number, node in enumerate(self.nodes):
            await node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            if number < self.primaries:
                last = SLOTS - 1 if number == self.primaries - 1 else (number + 1) * size - 1
                await node.ask("CLUSTER", "ADDSLOTSRANGE", number * size, last)
            if node is not first:
                await node.ask("CLUSTER", "MEET", "127.0.0.1", first.port, first.port + 1)
        for number, node in enumerate(self.nodes[self.primaries :]):
            name = await self.nodes[number % self.primaries].ask("CLUSTER", "MYID")
            await until(lambda node=node, name=name: _follows(node, name))  # type: ignore[misc]
        for node in self.nodes:
            await until(lambda node=node: self._knows_all(node))  # type: ignore[misc]

    def _node(self, port: int) -> Node:
        binaries = find_binaries()
        home = self.folder / str(port)
        home.mkdir(parents=True)
        settings = {
            "port": port,
            "bind": "127.0.0.1",
            "dir": home,
            "cluster-enabled": "yes",
            "cluster-port": port + 1,
            "cluster-node-timeout": NODE_TIMEOUT_MS,
            "cluster-require-full-coverage": "no",  # a shard without a primary is the trouble of its own users
            "repl-diskless-sync-delay": 0,
            "appendonly": "yes",
            "save": '""',
            "logfile": home / "redis.log",
            "loglevel": "warning",
        }
        lines = [*(f"{name} {value}" for name, value in settings.items()), *COMPACT]
        (home / "redis.conf").write_text("\n".join([*lines, f"loadmodule {binaries.engine}", ""]))
        return self._run(port)

    def _run(self, port: int) -> Node:
        home = self.folder / str(port)
        command = [find_binaries().server, home / "redis.conf"]
        process = subprocess.Popen(command, cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return Node(port, process)

    async def _knows_all(self, node: Node) -> bool:
        """Whether it sees every slot served, and every replica has what its primary has."""
        shards = [_pairs(each) for each in await node.ask("CLUSTER SHARDS")]
        standing = [member for each in shards if each["slots"] for member in each["nodes"]]
        whole = (await node.ask("CLUSTER INFO"))["cluster_state"] == "ok"
        linked = (await node.ask("INFO", "replication")).get("master_link_status", "up") == "up"
        return whole and linked and len(standing) == len(self.nodes)

    # -- trouble -------------------------------------------------------------------------------------------------------

    async def holder(self, key: str, witness: Node | None = None) -> Node:
        """The primary that has `key` now, as a node that is alive sees it."""
        witness = witness or next(node for node in self.nodes if node.alive)
        slot = int(await witness.ask("CLUSTER KEYSLOT", key))
        for first, last, primary, *_ in await witness.ask("CLUSTER SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == primary[1])
        raise LookupError(key)

    async def replica_of(self, primary: Node) -> Node:
        """A node that follows this one."""
        for node in self.nodes:
            if node.alive and (await node.ask("INFO", "replication")).get("master_port") == primary.port:
                return node
        raise LookupError(f"nobody follows the node on port {primary.port}")

    async def hand_over(self, key: str) -> tuple[Node, Node]:
        """A failover as one asks for it, on the shard of `key`: the old and the new primary, when the new one serves."""
        old = await self.holder(key)
        new = await self.replica_of(old)
        async with asyncio.timeout(START_TIMEOUT_S):
            while True:
                await new.ask("CLUSTER", "FAILOVER")
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(HAND_OVER_S):
                        await self._agreed(key, new)
                        return old, new

    async def move(self, key: str, new: Node) -> Node:
        """Give the slot of `key`, with all keys in it, to another primary; the one that had it."""
        old = await self.holder(key)
        slot = int(await new.ask("CLUSTER KEYSLOT", key))
        names = {node: await node.ask("CLUSTER", "MYID") for node in (old, new)}
        await new.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", names[old])
        await old.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", names[new])
        while held := await old.ask("CLUSTER", "GETKEYSINSLOT", slot, 100):
            await old.ask("MIGRATE", "127.0.0.1", new.port, "", 0, 5_000, "KEYS", *held)
        for node in (new, old):
            await node.ask("CLUSTER", "SETSLOT", slot, "NODE", names[new])
        await self._agreed(key, new)
        return old

    async def _agreed(self, key: str, holder: Node) -> None:
        async def agreed() -> bool:
            return all([await self.holder(key, node) is holder for node in self.nodes if node.alive])

        await until(agreed)

    @asynccontextmanager
    async def without(self, key: str) -> AsyncIterator[Node]:
        """Kill the primary of `key`, as a crash would, and start it again at the end.

        Its replica takes over after `NODE_TIMEOUT_MS` and an election.
        """
        killed = await self.holder(key)
        killed.process.kill()
        killed.process.wait()
        try:
            yield killed
        finally:
            await self.revive(killed)

    async def revive(self, node: Node) -> None:
        """Start a killed node again and wait until it follows whoever leads now."""
        self.nodes[self.nodes.index(node)] = again = self._run(node.port)
        await until(lambda: _answers(again))
        for each in self.nodes:
            await until(lambda each=each: self._knows_all(each))  # type: ignore[misc]


def free_ports(count: int) -> list[int]:
    """Ports whose neighbour above is free too, for the cluster's own talk; below those that the system gives to clients."""
    found: list[int] = []
    for port in random.sample(range(20_000, 32_000, 2), k=6_000):
        with socket.socket() as one, socket.socket() as two, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            two.bind(("127.0.0.1", port + 1))
            found.append(port)
        if len(found) == count:
            break
    return found


async def until(ready: Callable[[], Awaitable[bool]]) -> None:
    while not await ready():  # noqa: ASYNC110  another process raises no event here
        await asyncio.sleep(POLL_S)


async def _answers(node: Node) -> bool:
    if not node.alive:
        raise RuntimeError(f"the Redis on port {node.port} ended with {node.process.returncode}")
    try:
        return await node.ask("PING") is not None
    except (NoConnection, ResponseError):
        return False


async def _follows(node: Node, primary: str) -> bool:
    try:
        await node.ask("CLUSTER", "REPLICATE", primary)
    except ResponseError:  # it has not heard of that one yet
        return False
    return True


def _pairs(flat: list[Any]) -> dict[str, Any]:
    return {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}
