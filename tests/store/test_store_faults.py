"""What goes wrong with Redis is one of our errors, and never an empty list."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from redis import exceptions

from memagent.errors import BadRequest, EngineMissing, IndexDrift, StoreFault, StoreUnavailable
from memagent.store import Limits, RecallQuery, SetMemory
from memagent.store.connection import connect
from memagent.store.embedded import EmbeddedRedis, answers, find_binaries, until
from memagent.store.faults import mapped, redis_errors
from memagent.store.keeper import running_pid
from memagent.store.redis import RedisStore
from tests.store.desk import DIMENSIONS, EMBEDDER, Desk, at, direction, keys, near, opened, used

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

FOREIGN = [
    error
    for _, error in inspect.getmembers(exceptions, inspect.isclass)
    if issubclass(error, exceptions.RedisError)
]

UNAVAILABLE = {
    "BusyLoadingError", "ClusterDownError", "ClusterError", "ConnectionError", "MasterDownError", "MaxConnectionsError",
    "ReadOnlyError", "SlotNotCoveredError", "TimeoutError", "TryAgainError", "OutOfMemoryError",
}  # fmt: skip


def made(error: type[Exception]) -> Exception:
    """An instance with the words that a server would say."""
    words = {
        "ReadOnlyError": "READONLY You can't write against a read only replica.",
        "BusyLoadingError": "LOADING Redis is loading the dataset in memory",
        "OutOfMemoryError": "OOM command not allowed when used memory > 'maxmemory'.",
        "MasterDownError": "MASTERDOWN Link with MASTER is down",
        "ClusterDownError": "CLUSTERDOWN The cluster is down",
        "TryAgainError": "TRYAGAIN Multiple keys request during rehashing of slot",
    }
    try:
        return error(words.get(error.__name__, "what a server says about Mochi"))
    except (TypeError, ValueError, IndexError):
        return error.__new__(error)


def test_uvloops_word_for_a_connection_that_was_reset_is_unavailable_and_other_bugs_stay_bugs() -> None:
    closed = (
        "unable to perform operation on <TCPTransport closed=True reading=False 0x1>; the handler is closed"
    )
    with pytest.raises(StoreUnavailable), redis_errors("recalling"):
        raise RuntimeError(closed)
    with pytest.raises(RuntimeError), redis_errors("recalling"):
        raise RuntimeError("another bug")


@pytest.mark.parametrize(("hangs_up", "tries"), [(False, 1), (True, 2)])
async def test_a_connection_that_broke_is_tried_once_more_and_a_call_that_ran_out_of_time_is_not(
    hangs_up: bool, tries: int
) -> None:
    calls: list[asyncio.StreamWriter] = []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(writer)
        if hangs_up:
            await reader.read(1)
            writer.close()
        else:
            await reader.read()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = connect(f"redis://127.0.0.1:{port}", timeout_s=0.1)
        with pytest.raises(StoreUnavailable), redis_errors("asking"):
            await client.ping()
        await client.aclose()
        for writer in calls:
            writer.close()

    assert len(calls) == tries


@pytest.mark.parametrize("error", FOREIGN, ids=lambda error: error.__name__)
def test_every_error_of_redis_py_becomes_one_of_ours_without_its_words(error: type[Exception]) -> None:
    with pytest.raises(StoreFault) as caught, redis_errors("recalling"):
        raise made(error)
    assert "Mochi" not in str(caught.value)
    assert str(caught.value).startswith("recalling: ")
    assert caught.value.retryable == isinstance(caught.value, StoreUnavailable)


def test_outages_are_told_apart_from_refusals() -> None:
    ours = {error.__name__: type(mapped(made(error), "x")) for error in FOREIGN}
    assert {name for name, fault in ours.items() if fault is StoreUnavailable} >= UNAVAILABLE & set(ours)
    for name in ("AuthenticationError", "DataError", "NoScriptError", "WatchError"):
        assert ours[name] is StoreFault, name


@pytest.mark.parametrize(
    ("error", "fault", "advice"),
    [
        (exceptions.ResponseError("unknown command 'FT.SEARCH', with args"), EngineMissing, "redis:8"),
        (
            exceptions.ResponseError("ERR Unknown Redis command called from script script: 0f"),
            EngineMissing,
            "redis:8",
        ),
        (exceptions.ResponseError("ma:index:1:ab: no such index"), IndexDrift, "open the store again"),
        (
            exceptions.ResponseError("Cannot perform `FT.SEARCH`: Cannot block"),
            StoreFault,
            "redis+cluster://",
        ),
        (
            exceptions.ResponseError("MISCONF Redis is configured to save RDB snapshots"),
            StoreUnavailable,
            "disk",
        ),
        (exceptions.ResponseError("OOM command not allowed"), StoreUnavailable, "memory"),
        (exceptions.ResponseError("WRONGTYPE Operation against a key"), StoreFault, "prefix"),
        (
            exceptions.NoPermissionError("NOPERM this user has no permissions"),
            StoreFault,
            "user and password",
        ),
        (exceptions.AuthenticationError("invalid username-password pair"), StoreFault, "user and password"),
        (exceptions.ResponseError("something new"), StoreFault, "ResponseError"),
        (builtins.TimeoutError(), StoreUnavailable, "in time"),
        (ConnectionRefusedError(), StoreUnavailable, "running"),
        (OSError("x"), StoreUnavailable, "running"),
    ],
)
def test_what_a_server_says_decides_the_fault_and_the_advice(
    error: Exception, fault: type[StoreFault], advice: str
) -> None:
    ours = mapped(error, "recalling")
    assert (type(ours), advice in str(ours)) == (fault, True)


def test_our_own_errors_and_bugs_pass_the_boundary_unchanged() -> None:
    for error in (BadRequest("x"), KeyError("x"), ValueError("x")):
        with pytest.raises(type(error)), redis_errors("x"):
            raise error


CALLS: dict[str, Callable[[Desk], Awaitable[Any]]] = {
    "recall": lambda desk: desk.chat(1),
    "apply": lambda desk: desk.save("dog"),
    "undo": lambda desk: desk.store.undo(desk.scope, limits=Limits(), now=at(0)),
    "list": lambda desk: desk.store.list(desk.scope),
    "get": lambda desk: desk.store.get(desk.scope, "cat"),
    "totals": lambda desk: desk.store.totals(desk.scope),
    "history": lambda desk: desk.store.history(desk.scope),
    "receipt": lambda desk: desk.store.receipt(desk.scope, "m"),
    "save_receipt": lambda desk: desk.store.save_receipt(desk.scope, "m", {}),
    "preference": lambda desk: desk.store.preference("alice", "memories"),
    "set_preference": lambda desk: desk.store.set_preference("alice", "memories", True),
    "unsearched": lambda desk: desk.store.unsearched(None, EMBEDDER),
    "erase": lambda desk: desk.store.erase(desk.scope),
}
WRITES = ("apply", "erase", "save_receipt", "set_preference", "undo")


@pytest.fixture
async def lone(own_redis: EmbeddedRedis) -> AsyncIterator[Desk]:
    async with opened(own_redis.url, "ma", timeout_s=0.2) as store:
        yield Desk(store)


async def test_a_server_that_does_not_answer_is_unavailable_for_every_call(
    lone: Desk, own_redis: EmbeddedRedis
) -> None:
    await lone.save("cat")
    pid = running_pid(own_redis.directory)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        answers = await asyncio.gather(*(call(lone) for call in CALLS.values()), return_exceptions=True)
        assert {type(answer) for answer in answers} == {StoreUnavailable}
    finally:
        os.kill(pid, signal.SIGCONT)
    assert await lone.keys() >= {"cat"}


async def test_a_killed_server_is_unavailable_and_loses_nothing_it_had_acknowledged(
    lone: Desk, own_redis: EmbeddedRedis
) -> None:
    acknowledged = []

    async def writer(name: int) -> None:
        for i in range(1000):
            try:
                await lone.save(f"w{name}-{i}", axis=1, limits=Limits(entries=None))
            except StoreUnavailable:
                return
            acknowledged.append(f"w{name}-{i}")

    writers = [asyncio.create_task(writer(name)) for name in range(4)]
    await until(lambda: len(acknowledged) >= 50)
    pid = running_pid(own_redis.directory)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await asyncio.gather(*writers)
    for call in CALLS.values():
        with pytest.raises(StoreUnavailable):
            await call(lone)
    async with await EmbeddedRedis.open(own_redis.directory) as again:
        assert again.url == own_redis.url
        held = await lone.keys()
        assert held >= set(acknowledged)
        recalled = await lone.chat(1, about=1)
        assert (set(keys(recalled)), recalled.searched) == (held, True)


async def test_a_read_only_server_is_unavailable_for_writes_and_still_reads(lone: Desk) -> None:
    await lone.save("cat")
    await lone.chat(0)
    await lone.store.client.replicaof("localhost", 1)
    await lone.store.client.config_set("replica-serve-stale-data", "yes")
    for name in WRITES:
        with pytest.raises(StoreUnavailable, match="read-only"):
            await CALLS[name](lone)
    assert await lone.keys() == {"cat"}
    await lone.store.client.replicaof("NO", "ONE")
    await lone.save("dog")


async def test_a_full_server_refuses_the_write_whole(lone: Desk) -> None:
    await lone.save("cat")
    await lone.store.client.config_set("maxmemory", 1)
    with pytest.raises(StoreUnavailable, match="memory"):
        await lone.save("dog")
    await lone.store.client.config_set("maxmemory", 0)
    assert await lone.keys() == {"cat"}
    assert (await lone.store.totals(lone.scope)).entries == 1


@pytest.mark.parametrize("full", ["memory", "replica"])
async def test_a_server_that_takes_no_writes_still_recalls_and_counts_nothing(lone: Desk, full: str) -> None:
    await lone.save("cat", vector=near(0.9, 1))
    client = lone.store.client
    if full == "memory":
        await client.config_set("maxmemory", 1)
    else:
        await client.replicaof("127.0.0.1", "1")
        await client.config_set("replica-serve-stale-data", "yes")
    found = await lone.chat(3, vector=direction(0))
    assert (keys(found), used(found), found.searched) == (["cat"], ["cat"], False)
    await client.config_set("maxmemory", 0)
    await client.replicaof("NO", "ONE")
    assert (await lone.memory("cat")).last_matched_at is None
    found = await lone.chat(3, vector=direction(0))
    assert found.searched
    assert (await lone.memory("cat")).last_matched_at == at(3)


async def test_without_the_query_engine_opening_says_so_and_memory_without_search_works(
    tmp_path: Path,
) -> None:
    socket = tmp_path / "s"
    server = await asyncio.create_subprocess_exec(
        find_binaries().server,
        "--port",
        "0",
        "--unixsocket",
        socket,
        "--save",
        "",
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        url = f"unix://{socket}"
        for _ in range(1_000):
            if await answers(socket):
                break
            await asyncio.sleep(0.01)
        with pytest.raises(EngineMissing, match="docker run"):
            await RedisStore.open(url, embedder_id=EMBEDDER, dimensions=DIMENSIONS)
        async with opened(url, "ma", embedder_id="", dimensions=0) as store:
            desk = Desk(store)
            await desk.save("cat", axis=None)
            assert keys(await desk.chat(1, about=None, embedder="")) == ["cat"]
    finally:
        server.terminate()
        await server.wait()


@pytest.mark.parametrize("url", ["", "nonsense", "http://localhost", "localhost:6379"])
async def test_a_url_that_is_none_is_a_bad_request(url: str) -> None:
    with pytest.raises(BadRequest, match="redis://"):
        await RedisStore.open(url)


async def test_nobody_listening_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="Redis URL"):
        await RedisStore.open(f"unix://{tmp_path}/nobody")


async def test_a_wrong_password_is_told_apart_from_an_outage(lone: Desk, own_redis: EmbeddedRedis) -> None:
    await lone.store.client.config_set("requirepass", "right")
    with pytest.raises(StoreFault, match="user and password") as caught:
        await RedisStore.open(own_redis.url + "?password=wrong")
    assert not isinstance(caught.value, StoreUnavailable)
    assert "wrong" not in str(caught.value)
    with pytest.raises(StoreFault, match="user and password"):
        await RedisStore.open(own_redis.url)


async def test_a_pool_that_is_used_up_makes_calls_wait_their_turn(redis_url: str) -> None:
    client = connect(redis_url)
    try:
        assert await asyncio.gather(*(client.ping() for _ in range(300))) == [True] * 300
        assert client.connection_pool.max_connections == 64
    finally:
        await client.aclose()


# -- the index ---------------------------------------------------------------------------------------------------------


async def test_an_index_that_is_not_ours_is_drift_and_the_message_says_what_to_do(
    redis_url: str, store: RedisStore
) -> None:
    assert store.index is not None
    client = store.client
    await client.execute_command("FT.DROPINDEX", store.index.name)
    await client.execute_command(
        "FT.CREATE",
        store.index.name,
        "ON",
        "HASH",
        "PREFIX",
        1,
        "elsewhere:",
        "SCHEMA",
        "scope",
        "TAG",
        "lane",
        "NUMERIC",
    )
    with pytest.raises(IndexDrift) as caught:
        await RedisStore.open(redis_url, prefix=store.prefix, embedder_id=EMBEDDER, dimensions=DIMENSIONS)
    message = str(caught.value)
    for part in (
        "`elsewhere:`",
        "`scope` has",
        "`lane` is a numeric",
        "`terms` is missing",
        "FT.DROPINDEX",
        "safe",
    ):
        assert part in message, part


async def test_other_dimensions_under_the_same_id_are_drift(redis_url: str, store: RedisStore) -> None:
    with pytest.raises(IndexDrift, match="16 instead of 8"):
        await RedisStore.open(redis_url, prefix=store.prefix, embedder_id=EMBEDDER, dimensions=8)


async def test_opening_again_never_touches_what_is_there(redis_url: str, desk: Desk) -> None:
    await desk.save("cat", axis=1)
    for _ in range(2):
        async with opened(redis_url, desk.store.prefix) as again:
            assert [hit.memory.key for hit in (await Desk(again).chat(1, about=1)).hits] == ["cat"]


async def test_stores_that_open_at_once_make_one_index(redis_url: str) -> None:
    prefix = f"t-race-{os.getpid()}"
    stores = await asyncio.gather(
        *(
            RedisStore.open(redis_url, prefix=prefix, embedder_id=EMBEDDER, dimensions=DIMENSIONS)
            for _ in range(8)
        )
    )
    assert stores[0].index is not None
    await stores[0].client.execute_command("FT.DROPINDEX", stores[0].index.name)
    for store in stores:
        await store.close()


async def test_an_index_that_is_lost_while_running_is_drift_and_the_next_start_heals_it(
    redis_url: str, desk: Desk
) -> None:
    await desk.save("cat", axis=1)
    assert desk.store.index is not None
    await desk.store.client.execute_command("FT.DROPINDEX", desk.store.index.name)
    with pytest.raises(IndexDrift):
        await desk.chat(1, about=1)
    assert await desk.unused("cat") == 0
    async with opened(redis_url, desk.store.prefix) as again:
        recalled = await Desk(again).chat(1, about=1)
        while not recalled.searched:
            recalled = await Desk(again).chat(1, about=1)
        assert [hit.memory.key for hit in recalled.hits] == ["cat"]


@pytest.mark.parametrize(
    "vector",
    [direction(1)[:8], [[1.0] * 16], [float("nan")] * 16, [float("inf")] * 16, [0.0] * 16, [1e9] * 16],
)
async def test_a_vector_that_would_hide_its_memory_is_refused(desk: Desk, vector: Any) -> None:
    edit = SetMemory("cat", "words", 1, vector=vector, embedder=EMBEDDER)
    with pytest.raises(BadRequest):
        await desk.store.apply(desk.scope, [edit], limits=Limits(), now=at(0))
    with pytest.raises(BadRequest):
        await desk.store.recall([desk.scope], RecallQuery(now=at(0), vector=vector, embedder=EMBEDDER))
    assert await desk.keys() == set()


async def test_asking_for_another_embedder_than_the_store_was_opened_for_is_refused(desk: Desk) -> None:
    with pytest.raises(BadRequest, match="another"):
        await desk.chat(1, embedder="another")


async def test_while_an_index_is_being_built_nothing_ages(desk: Desk) -> None:
    """The index holds less than the scope: the best of it is shown, and nothing is counted."""
    await desk.save("cat", axis=1)
    await desk.save("dog", axis=2)
    name = f"{desk.store.prefix}:m:{{u:alice}}u::dog"
    vector = {
        field: value
        for field, value in (await desk.store.client.hgetall(name)).items()
        if field.startswith(b"v_")
    }
    await desk.store.client.hdel(name, *vector)
    recalled = await desk.chat(1, about=1)
    assert ([hit.memory.key for hit in recalled.hits], recalled.searched) == (["cat"], False)
    assert await desk.unused("dog") == 0
    await desk.store.client.hset(name, mapping=vector)
    assert (await desk.chat(1, about=1)).searched
    assert await desk.unused("dog") == 1


async def test_a_time_without_zone_is_refused(desk: Desk) -> None:
    with pytest.raises(ValueError, match="zone"):
        await desk.store.recall([desk.scope], RecallQuery(now=at(0).replace(tzinfo=None)))


async def test_after_a_rewritten_log_and_a_kill_nothing_ages_before_it_can_be_found(
    lone: Desk, own_redis: EmbeddedRedis
) -> None:
    """From a rewritten log the engine builds its index anew, beside the first searches."""
    for axis in range(1, 15):
        await lone.save(f"m{axis}", axis=axis)
    client = lone.store.client
    await client.bgrewriteaof()
    while (await client.info("persistence"))["aof_rewrite_in_progress"]:
        pass
    pid = running_pid(own_redis.directory)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    async with await EmbeddedRedis.open(own_redis.directory):
        recalled = await lone.chat(1, about=1)
        while not recalled.searched:
            assert await lone.unused("m2") == 0
            recalled = await lone.chat(1, about=1)
        assert [hit.memory.key for hit in recalled.hits if hit.used] == ["m1"]
        assert (await lone.unused("m1"), await lone.unused("m2")) == (0, 1)
