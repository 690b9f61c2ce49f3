"""A workspace of notes beside keyed memories: indexed, followed, recalled, and written by a flush."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from memagent import wiring
from memagent.errors import EngineMissing
from memagent.llm.script import Answer, Script, calling
from memagent.llm.scripted import ScriptedModel
from memagent.memory import Message
from memagent.service.doctor import examine
from memagent.service.sessions import flush_into, open_sessions
from memagent.sessions.flush import FlushRequest
from memagent.sessions.service import Said
from tests.service.conftest import CONFIG

if TYPE_CHECKING:
    from pathlib import Path

KEY = "agent:main:main"
NOTE = "memory/2026-03-02.md"
MOCHI = calling("set_memory", key="pets", value="Juno's cat\nis called Mochi")


def noted(folder: Path) -> dict[str, str]:
    return {"MEMAGENT_NOTES_DIR": str(folder)}


async def test_notes_come_back_with_the_place_they_stand_in(open_world: Any, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("# Home\n\nThe cat is called Mochi\n")
    async with open_world(environ=noted(tmp_path)) as world:
        found = await world.memory.recall("juno", "what is the cat called", commit=False)
        (passage,) = found.note.passages
        assert (passage["source"], passage["citation"]) == ("notes", "MEMORY.md#L1-L3")
        assert "The cat is called Mochi" in found.tail
        assert found.tail.startswith("<relevant-memories>")


async def test_a_service_follows_the_notes_while_it_runs(redis_url: str, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    config = tmp_path / "librechat.yaml"
    config.write_text(CONFIG.replace("EXTRA", "disabled: false"))
    environ = {
        "MEMAGENT_REDIS_URL": redis_url,
        "MEMAGENT_KEY_PREFIX": f"t-{uuid.uuid4().hex[:12]}",
        "MEMAGENT_EMBEDDER": "hashed",
        "MEMAGENT_VECTORS": str(tmp_path / "vectors"),
        **noted(notes),
    }
    async with wiring.open(
        config, environ=environ, models=lambda _: ScriptedModel(Script.of()), watch=True
    ) as memory:
        assert memory.ports.passages is not None
        index = memory.ports.passages.notes
        assert index is not None
        async with asyncio.timeout(30):
            while await index.live() is None:  # noqa: ASYNC110  what a watcher did shows in the store only
                await asyncio.sleep(0.05)
            (notes / "MEMORY.md").write_text("The cat is called Mochi\n")
            asked = "cat called Mochi"
            while not (await memory.recall("juno", asked, commit=False)).note.passages:  # noqa: ASYNC110  as above
                await asyncio.sleep(0.1)


async def test_what_a_flush_learned_stands_in_the_note_of_the_day(open_world: Any, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    environ = {**noted(notes), "MEMAGENT_DATA_DIR": str(tmp_path / "data"), "MEMAGENT_TRANSCRIPTS": "true"}
    async with open_world(MOCHI, Answer(text="nothing"), environ=environ) as world:
        sessions = open_sessions(world.memory, "juno")
        await sessions.receive(KEY, "my cat is called Mochi")
        await sessions.record(KEY, [Said(Message("assistant", "Lovely"))])
        await sessions.receive(KEY, "/new")
        (note,) = (notes / "memory").iterdir()
        assert note.read_text() == "- Juno's cat is called Mochi\n"
        found = await world.memory.recall("juno", "what is my cat called", commit=False, sources=["turns"])
        assert found.note.passages == (), "a flush is no second hearing of what was said"


async def test_a_flush_that_is_repeated_writes_no_line_twice(open_world: Any, tmp_path: Path) -> None:
    async with open_world(MOCHI, environ=noted(tmp_path)) as world:
        request = FlushRequest(KEY, "s1", "e1", "reset", (Message("user", "my cat is called Mochi"),), NOTE)
        flush = flush_into(world.memory, "juno")
        await flush(request)
        await flush(request)
        assert (tmp_path / NOTE).read_text() == "- Juno's cat is called Mochi\n"


async def test_a_flush_that_ended_before_it_was_noted_down_is_noted_by_the_next(
    open_world: Any, tmp_path: Path
) -> None:
    async with open_world(MOCHI, environ=noted(tmp_path)) as world:
        request = FlushRequest(KEY, "s1", "e1", "reset", (Message("user", "my cat is called Mochi"),), NOTE)
        flush = flush_into(world.memory, "juno")
        await flush(request)
        (tmp_path / NOTE).unlink()
        await flush(request)
        assert (tmp_path / NOTE).read_text() == "- Juno's cat is called Mochi\n"


async def test_a_flush_that_learned_nothing_writes_no_note(open_world: Any, tmp_path: Path) -> None:
    async with open_world(Answer(text="nothing"), environ=noted(tmp_path)) as world:
        request = FlushRequest(KEY, "s1", "e1", "reset", (Message("user", "hello there"),), NOTE)
        await flush_into(world.memory, "juno")(request)
        assert not (tmp_path / "memory").exists()


async def test_of_a_user_who_is_opted_out_no_note_is_written(open_world: Any, tmp_path: Path) -> None:
    async with open_world(MOCHI, environ=noted(tmp_path)) as world:
        await world.memory.set_personalization("juno", on=False)
        request = FlushRequest(KEY, "s1", "e1", "reset", (Message("user", "my cat is called Mochi"),), NOTE)
        await flush_into(world.memory, "juno")(request)
        assert not (tmp_path / "memory").exists()


async def test_the_doctor_looks_at_turns_and_notes_where_they_are_kept(
    open_world: Any, tmp_path: Path
) -> None:
    async def probes(**environ: str) -> list[tuple[str, str, str]]:
        async with open_world(Answer(text="pong"), environ=environ) as world:
            found = [probe async for probe in examine(world.memory.ports)]
            return [(each.name, each.verdict, each.found) for each in found if each.name == "passages"]

    (tmp_path / "MEMORY.md").write_text("The cat is called Mochi\n")
    both = {"MEMAGENT_TRANSCRIPTS": "true", **noted(tmp_path)}
    ((_, verdict, found),) = await probes(**both)
    assert (verdict, found.startswith("turns are kept; 1 notes")) == ("ok", True)
    ((_, verdict, found),) = await probes(**both, MEMAGENT_VECTORS="redis://127.0.0.1:1/0")
    assert verdict == "failed"
    assert await probes() == []


async def test_a_folder_for_vectors_without_lancedb_is_told_at_once(
    open_world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memagent.sessions.vectors.address.find_spec", lambda _: None)
    with pytest.raises(EngineMissing, match="lancedb"):
        async with open_world(environ={**noted(tmp_path), "MEMAGENT_VECTORS": str(tmp_path / "vectors")}):
            pass
