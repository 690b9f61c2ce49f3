"""Erasing a user: nothing of them is left in Redis, and a report says what remains where."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from memagent import wiring
from memagent.llm.script import Answer, Script, calling
from memagent.llm.scripted import ScriptedModel
from memagent.memory import Message, Scope, ScopeKind
from memagent.store.embedded import EmbeddedRedis
from memagent.turn import Turn
from tests.service.conftest import CONFIG

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SECRET = "xylophone"
LEARNED = calling("set_memory", key="hobby", value=f"Juno plays the {SECRET}.")


async def filled(memory: Any, user: str = "juno") -> None:
    """Something of everything: a learned memory, one by hand, partitions, history, a receipt, a switch."""
    said = Message("user", f"I play the {SECRET}")
    await memory.observe(Turn(user, "m1", (said,), conversation_id=f"chat-{SECRET}"))
    await memory.put(user, "gone", f"an old {SECRET}")
    await memory.forget(user, "gone")
    for scope in (Scope(ScopeKind.USER, user, "agent_a"), Scope(ScopeKind.GLOBAL, user)):
        await memory.put(scope, "note", f"the {SECRET} again")
    await memory.set_personalization(user, on=True)


async def test_everything_of_a_user_goes_and_is_counted(open_world: Any) -> None:
    async with open_world(LEARNED, LEARNED) as world:
        await filled(world.memory)
        await filled(world.memory, "kim")
        report = await world.memory.erase_user("juno")
        assert report.erased == {"memories": 3, "vectors": 3, "changes": 5, "receipts": 1}
        assert report.keys_left == 1, "the switch"
        assert await world.memory.scopes("juno") == ()
        for scope in (
            Scope(ScopeKind.USER, "juno"),
            Scope(ScopeKind.USER, "juno", "agent_a"),
            Scope(ScopeKind.GLOBAL, "juno"),
        ):
            assert await world.memory.list(scope) == ()
            assert await world.memory.history(scope) == ()
        assert len(await world.memory.list("kim")) == 1
        assert len(await world.memory.scopes("kim")) == 3


async def test_the_switches_stay_unless_they_are_meant_too(open_world: Any) -> None:
    async with open_world() as world:
        await world.memory.set_personalization("juno", on=False)
        first = await world.memory.erase_user("juno")
        assert not await world.memory.personalization("juno")
        assert any("switches" in each.what for each in first.remains)
        second = await world.memory.erase_user("juno", preferences=True)
        assert (second.erased["preferences"], second.keys_left) == (1, 0)
        assert not any("switches" in each.what for each in second.remains)
        assert await world.memory.personalization("juno")


async def test_erasing_again_finds_nothing(open_world: Any) -> None:
    async with open_world() as world:
        await world.memory.put("juno", "a", "red")
        await world.memory.erase_user("juno")
        assert set((await world.memory.erase_user("juno")).erased.values()) == {0}


async def test_other_parts_erase_what_they_keep_first(open_world: Any) -> None:
    async with open_world() as world:
        await world.memory.put("juno", "a", "red")

        async def sessions(user: str) -> Mapping[str, int]:
            assert len(await world.memory.list(user)) == 1
            return {"sessions": 2}

        report = await world.memory.erase_user("juno", also=(sessions,))
        assert (report.erased["sessions"], report.erased["memories"]) == (2, 1)


async def test_the_report_names_no_memory(open_world: Any) -> None:
    async with open_world(LEARNED) as world:
        await filled(world.memory)
        text = str((await world.memory.erase_user("juno")).to_json())
        assert SECRET not in text
        assert "BGREWRITEAOF" in text
        assert "backups" in text


async def test_after_a_rewrite_redis_files_hold_nothing_of_an_erased_user(tmp_path: Path) -> None:
    """A dump and an append-only file of a server of its own, read byte by byte."""
    config = tmp_path / "librechat.yaml"
    config.write_text(CONFIG.replace("EXTRA", "disabled: false"))
    folder = tmp_path / "redis"
    async with await EmbeddedRedis.open(folder) as server:
        environ = {"MEMAGENT_REDIS_URL": server.url, "MEMAGENT_EMBEDDER": "hashed"}
        model = ScriptedModel(Script.of(LEARNED, Answer("ok")))
        async with wiring.open(config, environ=environ, models=lambda _: model) as memory:
            client = memory.ports.store.client  # type: ignore[attr-defined]
            await filled(memory, "juno-the-user")
            await memory.put("kim", "instrument", "Kim has a glockenspiel")
            await saved(client)
            assert {b"glockenspiel", SECRET.encode(), b"juno-the-user"} == found_in(folder)
            await memory.erase_user("juno-the-user", preferences=True)
            await saved(client)
            assert found_in(folder) == {b"glockenspiel"}


async def saved(client: Any) -> None:
    """A dump and a rewritten append-only file, both on the disk. Uncompressed, so that a text can be found in them."""
    await client.config_set("rdbcompression", "no")
    await client.bgrewriteaof()
    await idle(client)
    await client.bgsave()
    await idle(client)


async def idle(client: Any) -> None:
    while True:
        state = await client.info("persistence")
        if not (
            state["aof_rewrite_in_progress"]
            or state["aof_rewrite_scheduled"]
            or state["rdb_bgsave_in_progress"]
        ):
            return
        await asyncio.sleep(0.02)


def found_in(folder: Path) -> set[bytes]:
    words = {b"glockenspiel", SECRET.encode(), b"juno-the-user"}
    files = [path for path in folder.rglob("*") if path.suffix in {".rdb", ".aof"} or ".aof." in path.name]
    assert files, "Redis keeps its files elsewhere"
    held = b"".join(path.read_bytes() for path in files)
    return {word for word in words if word in held}
