"""The index follows the files, and whatever happens the old one answers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memagent.errors import EmbedderFault, NotFound, StoreUnavailable
from memagent.sessions.chunks import Chunking
from memagent.sessions.notes import NoteIndex, Synced
from memagent.sessions.search import search_notes
from memagent.sessions.vectors import Kind
from tests.sessions.notes.note_cases import NOW, CountingEmbedder, index_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from memagent.sessions.files import Workspace
    from memagent.sessions.vectors import VectorStore

    Write = Callable[[str, str], Path]


async def found(index: NoteIndex, text: str) -> list[str]:
    return [hit.path for hit in (await search_notes(index, text, now=NOW, patience_s=60)).hits]


async def rows(index: NoteIndex) -> dict[str, list[str]]:
    live = await index.live()
    assert live
    paths = await index.vectors.versions(live)
    return {path: [row.text for row in await index.vectors.rows(live, path)] for path in paths}


async def test_o68_an_unchanged_file_is_no_work(
    index: NoteIndex, embedder: CountingEmbedder, write: Write
) -> None:
    write("MEMORY.md", "The cat is called Mochi\n")
    assert (await index.sync()).embedded == 1
    again = await index.sync()

    assert again == Synced(files=1)
    assert len(embedder.passage_texts) == 1


async def test_v42_equal_bytes_saved_twice_cost_no_embedding_call(
    index: NoteIndex, embedder: CountingEmbedder, write: Write
) -> None:
    write("MEMORY.md", "The cat is called Mochi\n")
    await index.sync()
    before = list(embedder.passage_texts)
    os.utime(write("MEMORY.md", "The cat is called Mochi\n"), (1, 1))

    await index.sync()
    assert embedder.passage_texts == before


async def test_v42_one_changed_paragraph_embeds_only_the_new_chunk_texts(
    workspace: Workspace, vectors: VectorStore, embedder: CountingEmbedder, write: Write
) -> None:
    index = index_with(workspace, vectors, embedder, chunking=Chunking(tokens=10, overlap=0))
    paragraphs = [f"paragraph {number} has its own words" for number in range(6)]
    write("memory/a.md", "\n".join(paragraphs))
    await index.sync()
    embedder.passage_texts.clear()
    paragraphs[3] = "paragraph three was written anew"
    write("memory/a.md", "\n".join(paragraphs))

    done = await index.sync()
    assert embedder.passage_texts == ["paragraph three was written anew"]
    assert (done.changed, done.embedded, done.reused) == (("memory/a.md",), 1, 5)


async def test_o68_a_moved_text_is_not_embedded_again(
    index: NoteIndex, embedder: CountingEmbedder, write: Write
) -> None:
    real = write("memory/a.md", "The cat is called Mochi\n")
    await index.sync()
    real.rename(real.with_name("b.md"))

    done = await index.sync()
    assert (done.changed, done.removed, done.embedded) == (("memory/b.md",), ("memory/a.md",), 0)
    assert len(embedder.passage_texts) == 1


async def test_o68_a_changed_file_replaces_its_rows_and_a_deleted_one_loses_them(
    index: NoteIndex, write: Write
) -> None:
    real = write("memory/a.md", "old text\n")
    write("memory/b.md", "stays\n")
    await index.sync()
    write("memory/a.md", "new text\n")
    await index.sync()
    assert await rows(index) == {"memory/a.md": ["new text"], "memory/b.md": ["stays"]}
    real.unlink()
    await index.sync()
    assert await rows(index) == {"memory/b.md": ["stays"]}


async def test_o68_blank_files_and_chunks_are_not_embedded(
    index: NoteIndex, embedder: CountingEmbedder, write: Write
) -> None:
    write("memory/a.md", " \n\n\t\n")
    assert (await index.sync()) == Synced(files=1)
    write("memory/a.md", "text")
    await index.sync()
    write("memory/a.md", "\n\n")

    assert (await index.sync()).changed == ("memory/a.md",)
    assert await rows(index) == {}
    assert embedder.passage_texts == ["text"]


async def test_o66_one_real_file_is_indexed_once(
    workspace: Workspace, vectors: VectorStore, embedder: CountingEmbedder, write: Write
) -> None:
    write("memory/a.md", "text")
    index = index_with(replace(workspace, extra=("memory", "memory/a.md")), vectors, embedder)

    assert (await index.sync()).files == 1
    assert await rows(index) == {"memory/a.md": ["text"]}


async def test_two_files_with_equal_text_are_both_found_and_embedded_once(
    index: NoteIndex, embedder: CountingEmbedder, write: Write
) -> None:
    write("memory/a.md", "the cat sleeps")
    write("memory/b.md", "the cat sleeps")
    await index.sync()

    assert await found(index, "cat") == ["memory/a.md", "memory/b.md"]
    assert embedder.passage_texts == ["the cat sleeps"]


async def test_equal_pieces_of_one_long_line_are_all_kept(index: NoteIndex, write: Write) -> None:
    write("memory/a.md", "x" * 4800)
    await index.sync()

    assert [len(text) for text in (await rows(index))["memory/a.md"]] == [1600, 1600, 1600]


@pytest.mark.parametrize("change", ["embedder", "chunking", "without", "force"])
async def test_o69_another_embedder_or_chunking_builds_the_index_anew(
    workspace: Workspace, vectors: VectorStore, embedder: CountingEmbedder, write: Write, change: str
) -> None:
    write("MEMORY.md", "The cat is called Mochi\n")
    index = index_with(workspace, vectors, embedder)
    await index.sync()
    first = await index.live()
    more: dict[str, Any] = {"chunking": Chunking(tokens=50)} if change == "chunking" else {}
    other = {"embedder": CountingEmbedder("other", dimensions=32), "without": None}.get(change, embedder)
    changed = index_with(workspace, vectors, other, **more)

    done = await changed.sync(force=change == "force")
    second = await changed.live()
    assert done.rebuilt
    assert first
    assert second
    assert second.serial == first.serial + 1
    assert await found(changed, "Mochi") == ["MEMORY.md"]
    assert not (await changed.sync()).rebuilt


async def test_o69_vectors_that_became_available_build_the_index_anew(
    workspace: Workspace, vectors: VectorStore, embedder: CountingEmbedder, write: Write
) -> None:
    write("MEMORY.md", "The cat is called Mochi\n")
    assert not (await index_with(workspace, vectors, None).sync()).embedded

    done = await index_with(workspace, vectors, embedder).sync()
    assert (done.rebuilt, done.embedded) == (True, 1)


async def test_o69_a_rebuild_takes_known_vectors_over(
    workspace: Workspace, vectors: VectorStore, embedder: CountingEmbedder, write: Write
) -> None:
    write("MEMORY.md", "The cat is called Mochi\n")
    index = index_with(workspace, vectors, embedder)
    await index.sync()

    done = await index.sync(force=True)
    assert (done.rebuilt, done.embedded, done.reused) == (True, 0, 1)


async def test_v43_a_rebuild_that_fails_half_way_leaves_the_old_index_answering(
    workspace: Workspace, vectors: VectorStore, embedder: CountingEmbedder, write: Write
) -> None:
    write("memory/a.md", "The cat is called Mochi\n")
    write("memory/b.md", "The dog is called Rex\n")
    index = index_with(workspace, vectors, embedder)
    await index.sync()
    failing = _FailsAfter(1)
    rebuilding = index_with(workspace, vectors, failing)
    with pytest.raises(EmbedderFault):
        await rebuilding.sync()

    assert await found(index, "Mochi") == ["memory/a.md"]
    assert await found(index, "Rex") == ["memory/b.md"]
    failing.left = 99
    done = await rebuilding.sync()
    assert (done.rebuilt, done.embedded, done.changed) == (True, 1, ("memory/b.md",))
    assert await found(rebuilding, "Mochi") == ["memory/a.md"]


class _FailsAfter(CountingEmbedder):
    def __init__(self, left: int) -> None:
        super().__init__("failing", dimensions=16)
        self.left = left

    async def passages(self, texts: Any) -> Any:
        self.down = self.left < len(texts)
        self.left -= len(texts)
        return await super().passages(texts)


async def test_o69_while_a_new_embedder_is_at_work_the_old_index_answers_and_says_so(
    workspace: Workspace, vectors: VectorStore, embedder: CountingEmbedder, write: Write
) -> None:
    write("memory/a.md", "The cat is called Mochi\n")
    await index_with(workspace, vectors, embedder).sync()
    slow = _Gated("slow", dimensions=16)
    index = index_with(workspace, vectors, slow)

    assert await index.freshen(patience_s=0) == "indexing"
    await slow.asked.wait()
    live = await index.live()
    assert live
    assert live.embedder == embedder.id
    slow.gate.set()
    assert await index.freshen(patience_s=60) == ""
    live = await index.live()
    assert live
    assert live.embedder == "slow"


class _Gated(CountingEmbedder):
    def __init__(self, name: str, *, dimensions: int) -> None:
        super().__init__(name, dimensions=dimensions)
        self.gate, self.asked = asyncio.Event(), asyncio.Event()

    async def passages(self, texts: Any) -> Any:
        self.asked.set()
        await self.gate.wait()
        return await super().passages(texts)


async def test_o70_a_search_that_cannot_wait_is_marked_stale_and_answers_from_the_old_index(
    workspace: Workspace, vectors: VectorStore, write: Write
) -> None:
    slow = _Gated("slow", dimensions=16)
    slow.gate.set()
    index = index_with(workspace, vectors, slow)
    write("memory/a.md", "The cat is called Mochi\n")
    await index.sync()
    slow.gate.clear()
    write("memory/b.md", "Mochi likes tuna\n")
    await index.freshen(patience_s=0)
    await slow.asked.wait()

    answer = await search_notes(index, "Mochi", now=NOW, patience_s=0)
    assert (answer.stale, [hit.path for hit in answer.hits]) == ("indexing", ["memory/a.md"])
    slow.gate.set()
    answer = await search_notes(index, "Mochi", now=NOW, patience_s=60)
    assert (answer.stale, {hit.path for hit in answer.hits}) == ("", {"memory/a.md", "memory/b.md"})


async def test_o70_a_first_search_waits_for_the_index(index: NoteIndex, write: Write) -> None:
    write("memory/a.md", "The cat is called Mochi\n")

    answer = await search_notes(index, "Mochi", now=NOW, patience_s=60)
    assert (answer.stale, [hit.path for hit in answer.hits]) == ("", ["memory/a.md"])


async def test_an_embedder_that_is_down_keeps_what_was_indexed(
    index: NoteIndex, embedder: CountingEmbedder, write: Write
) -> None:
    write("memory/a.md", "The cat is called Mochi\n")
    await index.sync()
    embedder.down = True
    write("memory/a.md", "The cat is called Miso\n")

    assert await index.freshen(patience_s=60) == "embedder_fault"
    assert await rows(index) == {"memory/a.md": ["The cat is called Mochi"]}
    embedder.down = False
    assert await index.freshen(patience_s=60) == ""
    assert await rows(index) == {"memory/a.md": ["The cat is called Miso"]}


async def test_a_note_that_grew_too_large_keeps_its_rows_and_is_named(index: NoteIndex, write: Write) -> None:
    real = write("memory/a.md", "The cat is called Mochi\n")
    await index.sync()
    os.truncate(real, 17 * 2**20)

    assert (await index.sync()).unreadable == ("memory/a.md",)
    assert await rows(index) == {"memory/a.md": ["The cat is called Mochi"]}


async def test_o85_two_agents_have_two_indexes(
    workspace: Workspace, vectors: VectorStore, embedder: CountingEmbedder, write: Write
) -> None:
    write("memory/a.md", "The cat is called Mochi\n")
    await index_with(workspace, vectors, embedder).sync()
    other = NoteIndex(workspace, vectors, embedder, owner="agent-b")

    assert await other.live() is None
    assert await vectors.live("agent-b", Kind.NOTES) is None


async def test_two_indexes_of_one_workspace_may_synchronise_at_once(
    workspace: Workspace, vectors: VectorStore, write: Write
) -> None:
    for number in range(5):
        write(f"memory/{number}.md", f"note number {number}")
    one, other = (index_with(workspace, vectors, CountingEmbedder()) for _ in range(2))
    await asyncio.gather(one.sync(), other.sync(), one.sync(force=True))

    assert await rows(one) == {f"memory/{number}.md": [f"note number {number}"] for number in range(5)}
    assert await one.live() == await other.live()


async def test_o66_the_watcher_indexes_what_changes(index: NoteIndex, write: Write) -> None:
    real = write("memory/a.md", "one")
    stop = asyncio.Event()
    seen = index.watch(stop=stop, debounce_ms=50)

    assert (await anext(seen)).changed == ("memory/a.md",)
    write("README.txt", "no note")
    write("memory/new/b.md", "two")
    assert (await anext(seen)).changed == ("memory/new/b.md",)
    real.unlink()
    assert (await anext(seen)).removed == ("memory/a.md",)
    stop.set()
    assert [done async for done in seen] == []


async def test_o66_a_watcher_tries_again_after_a_fault(
    workspace: Workspace, vectors: VectorStore, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    class FailsOnce(CountingEmbedder):
        async def passages(self, texts: Any) -> Any:
            self.down = not caplog.text
            return await super().passages(texts)

    write("memory/a.md", "secret words")
    stop = asyncio.Event()
    seen = index_with(workspace, vectors, FailsOnce()).watch(stop=stop, debounce_ms=50, retry_ms=50)

    assert (await anext(seen)).changed == ("memory/a.md",)
    assert "embedder_fault" in caplog.text
    assert "secret" not in caplog.text
    stop.set()
    assert [done async for done in seen] == []


async def test_a_workspace_that_is_gone_is_not_forgotten(index: NoteIndex, write: Write) -> None:
    write("memory/a.md", "The cat is called Mochi")
    await index.sync()
    root = index.workspace.root
    root.rename(root.with_name("unmounted"))

    with pytest.raises(NotFound):
        await index.sync()
    answer = await search_notes(index, "Mochi", now=NOW, patience_s=60)
    assert (answer.stale, [hit.path for hit in answer.hits]) == ("not_found", ["memory/a.md"])


async def test_a_store_that_is_away_is_named_and_not_raised_by_freshen(workspace: Workspace) -> None:
    from memagent.sessions.vectors.redis import RedisVectors

    store = RedisVectors.open("redis://127.0.0.1:1/0")
    index = index_with(workspace, store, None)
    assert await index.freshen(patience_s=60) == "store_unavailable"
    with pytest.raises(StoreUnavailable):
        await index.sync()
    await store.close()


REBUILD = """
import asyncio, os, sys, time
from pathlib import Path
from memagent.llm.embedders import HashedEmbedder
from memagent.sessions.files import Workspace
from memagent.sessions.notes import NoteIndex

class Dying(HashedEmbedder):
    calls = 0
    async def passages(self, texts):
        self.calls += 1
        if self.calls == 3:
            print("half-way", flush=True)
            time.sleep(600)
        return await super().passages(texts)

async def main(kind, where, prefix, workspace):
    if kind == "redis":
        from memagent.sessions.vectors.redis import RedisVectors
        store = RedisVectors.open(where, prefix=prefix)
    else:
        from memagent.sessions.vectors.lance import LanceVectors
        store = LanceVectors(Path(where))
    await NoteIndex(Workspace(Path(workspace)), store, Dying(dimensions=48), owner="agent-a").sync()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_process_killed_while_it_rebuilds_loses_nothing(
    workspace: Workspace, vectors: VectorStore, embedder: CountingEmbedder, write: Write, address: list[str]
) -> None:
    for number in range(4):
        write(f"memory/{number}.md", f"note number {number} of Mochi")
    old = index_with(workspace, vectors, embedder)
    await old.sync()
    before = await rows(old)
    command = [sys.executable, "-c", REBUILD, *address, str(workspace.root)]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    assert process.stdout
    assert await process.stdout.readline() == b"half-way\n"
    process.send_signal(signal.SIGKILL)
    assert await process.wait() == -signal.SIGKILL

    assert await rows(old) == before
    assert len(await found(old, "Mochi")) == 4
    successor = CountingEmbedder("hashed-words-48", dimensions=48)
    new = index_with(workspace, vectors, successor)
    done = await new.sync()
    assert (done.rebuilt, done.embedded) == (True, 2)
    assert await rows(new) == before
    assert len(await found(new, "Mochi")) == 4
