"""What breaks under a turn: Redis at start, in the middle and under an apply; the file; the embedder."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from memagent import wiring
from memagent.errors import ConfigUnusable, EmbedderFault, StoreUnavailable
from memagent.llm.script import calling
from memagent.service.receipt import Decision
from memagent.store import keeper
from memagent.store.embedded import EmbeddedRedis

if TYPE_CHECKING:
    from pathlib import Path

MOCHI = calling("set_memory", key="pets", value="Juno's cat is called Mochi")


async def test_redis_down_at_start_says_so(tmp_path: Path) -> None:
    config = tmp_path / "librechat.yaml"
    config.write_text("version: '1.3.17'\nmemory: {}\n")
    environ = {"MEMAGENT_REDIS_URL": "redis://127.0.0.1:1", "MEMAGENT_EMBEDDER": "hashed"}
    with pytest.raises(StoreUnavailable):
        async with wiring.open(config, environ=environ):
            pass


async def test_redis_that_dies_under_a_turn_opens_recall_and_closes_learning(
    open_world: Any, tmp_path: Path
) -> None:
    server = await EmbeddedRedis.open(tmp_path / "redis")
    async with open_world(MOCHI, environ={"MEMAGENT_REDIS_URL": server.url}, clean=False) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        pid = keeper.running_pid(tmp_path / "redis")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        context = await world.memory.context(world.turn("How is Mochi?"))
        assert (context.prefix, context.note.error) == ("", "store_unavailable")
        with pytest.raises(StoreUnavailable):
            await world.memory.observe(world.turn("she is six"))
        with pytest.raises(StoreUnavailable):
            await world.memory.list("juno")
        again = await EmbeddedRedis.open(tmp_path / "redis")
        assert [memory.key for memory in await world.memory.list("juno")] == ["pets"]
        await again.close()
    await server.close()


async def test_an_embedder_that_is_down_keeps_what_the_agent_learned_for_later(open_world: Any) -> None:
    async with open_world(MOCHI) as world:
        embedder = world.memory.ports.embedder
        passages, query = embedder.passages, embedder.query

        async def down(*_: Any) -> Any:
            raise EmbedderFault("the embedder does not answer")

        embedder.passages = embedder.query = down
        receipt = await world.memory.observe(world.turn("my cat is called Mochi"))
        assert (receipt.decision, receipt.set, receipt.recall.error) == (
            Decision.RAN,
            ("pets",),
            "embedder_fault",
        )
        assert not (await world.memory.get("juno", "pets")).searched
        context = await world.memory.context(world.turn("How is Mochi?"))
        assert "Mochi" in context.prefix

        embedder.passages, embedder.query = passages, query
        from memagent.service.embedding import embed_unsearched

        await embed_unsearched(world.memory.ports)
        assert (await world.memory.get("juno", "pets")).searched


async def test_v08_a_search_that_fails_ages_nothing_and_keeps_the_prefix(open_world: Any) -> None:
    async with open_world(MOCHI) as world:
        await world.memory.observe(world.turn("my cat is called Mochi"))
        before = (await world.memory.context(world.turn("something else entirely"))).prefix

        async def down(_: str) -> Any:
            raise EmbedderFault("the embedder does not answer")

        world.memory.ports.embedder.query = down
        for _ in range(10):
            world.later(days=1)
            for _ in range(5):
                assert (await world.memory.context(world.turn("other things"))).prefix == before
        assert (await world.memory.get("juno", "pets")).unused_days == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        (b"\xff\xfe\x00", "MEM"),
        (b"version: '1.3.17'\nmemory: {charlimit: 5}\n", "charLimit|charlimit"),
        (b"version: '1'\n" + b"# " + b"x" * 10_000_000, "MEM003"),
        (b"a: b: c", "MEM"),
    ],
)
async def test_a_file_that_cannot_be_used_refuses_to_run_and_says_why(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    config = tmp_path / "librechat.yaml"
    if content is not None:
        config.write_bytes(content)
    with pytest.raises(ConfigUnusable, match=said):
        async with wiring.open(config, environ={}):
            pass
