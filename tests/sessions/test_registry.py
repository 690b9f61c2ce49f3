"""The sessions store: O05, O33 to O36, O91, V26 of spec/seeds.md."""

from __future__ import annotations

import asyncio
import json
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from memagent.sessions import registry as module
from memagent.sessions.entry import SessionEntry, successor
from memagent.sessions.registry import FileRegistry
from tests.sessions.session_cases import KEY, START, Clock, desk, texts, turn

if TYPE_CHECKING:
    from pathlib import Path


def entry(session_id: str = "s1", **more: Any) -> SessionEntry:
    return SessionEntry(session_id=session_id, updated_at=START, **more)


@pytest.fixture
def registry(tmp_path: Path) -> FileRegistry:
    return FileRegistry(tmp_path, clock=Clock(), sync=False)


async def test_o05_v26_among_variants_of_a_key_the_newest_row_is_the_one(registry: FileRegistry) -> None:
    older, newer = START.isoformat(), (START + timedelta(seconds=1)).isoformat()
    registry.path.write_text(
        json.dumps(
            {
                "Agent:Main:X": {"sessionId": "new", "updatedAt": newer},
                "agent:main:x": {"sessionId": "old", "updatedAt": older},
            }
        )
    )
    rows = await registry.load()
    assert {key: row.session_id for key, row in rows.items()} == {"agent:main:x": "new"}
    await registry.patch("AGENT:main:X", lambda row: row.model_copy(update={"label": "l"}) if row else None)
    assert list(json.loads(registry.path.read_text())) == ["agent:main:x"]


async def test_o33_the_rows_fields_are_those_of_sessions_json(registry: FileRegistry) -> None:
    row = entry(
        channel="telegram",
        chat_type="group",
        label="work",
        origin={"from": "7"},
        last_to="7",
        input_tokens=1,
        cache_read=2,
        total_tokens_fresh=True,
        estimated_cost_usd=0.5,
        compaction_count=3,
        memory_flush_compaction_count=2,
    )
    await registry.patch("k", lambda _: row)
    stored = json.loads(registry.path.read_text())["k"]
    assert stored["sessionId"] == "s1"
    assert {"updatedAt", "chatType", "lastTo", "inputTokens", "cacheRead", "totalTokensFresh"} < set(stored)
    assert {"estimatedCostUsd", "compactionCount", "memoryFlushCompactionCount"} < set(stored)
    assert await registry.get("K") == row


async def test_o33_fields_of_a_newer_version_are_kept(registry: FileRegistry) -> None:
    registry.path.write_text(
        json.dumps({"k": {"sessionId": "s", "updatedAt": START.isoformat(), "mood": {"a": 1}}})
    )
    await registry.patch("k", lambda row: row.model_copy(update={"label": "l"}) if row else None)
    assert json.loads(registry.path.read_text())["k"]["mood"] == {"a": 1}


async def test_o34_concurrent_patches_all_survive(registry: FileRegistry, tmp_path: Path) -> None:
    other = FileRegistry(tmp_path, clock=Clock(), sync=False)
    await registry.patch("shared", lambda _: entry())

    def one_more(row: SessionEntry | None) -> SessionEntry | None:
        return row.model_copy(update={"compaction_count": row.compaction_count + 1}) if row else None

    await asyncio.gather(
        *(
            each.patch(f"k{n}", lambda _, n=n: entry(f"s{n}"))
            for n in range(20)
            for each in (registry, other)
        ),  # type: ignore[misc]
        *(each.patch("shared", one_more) for _ in range(10) for each in (registry, other)),
    )
    rows = await registry.load()
    assert len(rows) == 21
    assert rows["shared"].compaction_count == 20


async def test_o34_identical_content_is_not_written_again(registry: FileRegistry) -> None:
    await registry.patch("k", lambda _: entry())
    before = registry.path.stat().st_ino
    await registry.patch("k", lambda _: entry())
    await registry.patch("none", lambda _: None)
    assert registry.path.stat().st_ino == before
    await registry.patch("k", lambda _: entry("s2"))
    assert registry.path.stat().st_ino != before


async def test_o34_whoever_is_cancelled_while_writing_holds_the_lock_until_it_is_written(
    registry: FileRegistry,
) -> None:
    started, go = threading.Event(), threading.Event()

    def slow(_: SessionEntry | None) -> SessionEntry:
        started.set()
        go.wait()
        return entry("slow")

    writing = asyncio.create_task(registry.patch("slow", slow))
    await asyncio.to_thread(started.wait)
    writing.cancel()
    other = asyncio.create_task(registry.patch("other", lambda _: entry("other")))
    for _ in range(20):
        await asyncio.sleep(0)
    early = (writing.done(), other.done())
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await other
    assert early == (False, False)
    assert sorted(await registry.load()) == ["other", "slow"]


async def test_o34_a_patch_that_fails_blocks_no_other(registry: FileRegistry) -> None:
    def fails(_: SessionEntry | None) -> SessionEntry:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        await registry.patch("k", fails)
    assert await registry.patch("k", lambda _: entry()) == entry()


@pytest.mark.parametrize(
    "content", [b"[]", b'{"k": ', b"\xff\xfe", b'"text"', b'{"k": 7}', b'{"k": {"sessionId": 7}}']
)
async def test_o35_a_store_that_cannot_be_read_is_set_aside_before_it_is_replaced(
    registry: FileRegistry, content: bytes
) -> None:
    registry.path.write_bytes(content)
    assert await registry.load() == {}
    assert registry.path.read_bytes() == content
    await registry.patch("k", lambda _: entry())
    aside = list(registry.path.parent.glob("sessions.json.broken-*"))
    assert [path.read_bytes() for path in aside] == [content]
    assert list(await registry.load()) == ["k"]


async def test_o35_one_bad_row_does_not_hide_the_others_and_is_not_dropped(registry: FileRegistry) -> None:
    registry.path.write_text(
        json.dumps({"bad": {"sessionId": 7}, "good": {"sessionId": "s", "updatedAt": START.isoformat()}})
    )
    assert list(await registry.load()) == ["good"]
    await registry.patch("k", lambda _: entry())
    assert json.loads(registry.path.read_text())["bad"] == {"sessionId": 7}


async def test_o35_an_empty_or_missing_store_is_empty_and_leaves_nothing_behind(
    registry: FileRegistry,
) -> None:
    assert await registry.load() == {}
    registry.path.write_bytes(b"")
    assert await registry.load() == {}
    await registry.patch("k", lambda _: entry())
    assert [path.name for path in registry.path.parent.iterdir() if path.is_file()] == ["sessions.json"]


async def test_o36_a_restart_gives_the_identical_context(tmp_path: Path) -> None:
    before = desk(tmp_path)
    for text in ("xin chào", "wie geht's", "apa kabar"):
        await turn(before, text, f"re: {text}")
    after = desk(tmp_path)
    assert (await after.context(KEY)) == (await before.context(KEY))
    assert await texts(after) == [
        "xin chào",
        "re: xin chào",
        "wie geht's",
        "re: wie geht's",
        "apa kabar",
        "re: apa kabar",
    ]
    assert await after.registry.load() == await before.registry.load()


async def test_o91_a_large_store_is_backed_up_and_three_backups_stay(
    registry: FileRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROTATE_AT_BYTES", 10)
    clock = Clock()
    registry._clock = clock
    for n in range(6):
        clock.forward(seconds=1)
        await registry.patch("k", lambda _, n=n: entry(f"s{n}"))  # type: ignore[misc]
    backups = sorted(registry.path.parent.glob("sessions.json.bak-*"))
    assert [json.loads(path.read_text())["k"]["sessionId"] for path in backups] == ["s2", "s3", "s4"]


def test_o19_the_next_session_starts_with_no_counters_not_even_those_of_the_cache() -> None:
    old = entry(
        input_tokens=1,
        output_tokens=2,
        cache_read=3,
        cache_write=4,
        total_tokens=5,
        total_tokens_fresh=True,
        context_tokens=6,
        estimated_cost_usd=0.7,
        compaction_count=8,
        memory_flush_at=START,
        memory_flush_compaction_count=8,
        memory_flush_entry_id="x",
    )
    new = successor(old, session_id="s2", now=START, carry=True)
    kept = SessionEntry(
        session_id="s2",
        session_file="s2.jsonl",
        updated_at=START,
        session_started_at=START,
        last_access_at=START,
        parent_session_id="s1",
    )
    assert new == kept
