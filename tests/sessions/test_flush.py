"""Saving memory before context is lost: O60 to O64 of spec/seeds.md."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from memagent.errors import ModelUnavailable
from memagent.sessions import flush as module
from memagent.sessions.compaction import CompactionSettings, Status, Trigger
from memagent.sessions.flush import FlushRequest, note_name
from memagent.sessions.reset import ResetSettings
from memagent.sessions.service import SessionSettings
from tests.sessions.session_cases import KEY, Clock, desk, texts, turn
from tests.sessions.test_compaction import Summaries, talk

if TYPE_CHECKING:
    from pathlib import Path


class Flushes:
    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.seen: list[FlushRequest] = []

    async def __call__(self, request: FlushRequest) -> None:
        self.seen.append(request)
        if self.fault:
            raise self.fault

    @property
    def reasons(self) -> list[str]:
        return [request.reason for request in self.seen]

    @property
    def said(self) -> list[list[Any]]:
        return [[message.content for message in request.messages] for request in self.seen]


def rules(**options: Any) -> SessionSettings:
    """A window of 100: compacts over 80, flushes from 60 on."""
    reset = ResetSettings(idle_minutes=options.pop("idle_minutes", None), zone=options.pop("zone", "UTC"))
    options = {
        "min_messages": 2,
        "window_tokens": 100,
        "keep_recent_tokens": 20,
        "flush_gap_tokens": 20,
        **options,
    }
    return SessionSettings(compaction=CompactionSettings(**options), reset=reset, sync=False)


def test_o60_from_4000_tokens_before_the_threshold_on() -> None:
    found = CompactionSettings()
    assert not found.flush_due(tokens=155_999, window=200_000)
    assert found.flush_due(tokens=156_000, window=200_000)


@pytest.mark.parametrize("tokens", [None, 0])
def test_o60_an_unknown_size_flushes_only_by_the_files_size(tokens: int | None) -> None:
    assert not CompactionSettings().flush_due(tokens=tokens, window=200_000, file_bytes=10**9)
    by_file = CompactionSettings(flush_at_bytes=2 * 1024 * 1024)
    assert by_file.flush_due(tokens=tokens, window=200_000, file_bytes=2 * 1024 * 1024)
    assert not by_file.flush_due(tokens=tokens, window=200_000, file_bytes=2 * 1024 * 1024 - 1)


def test_o60_a_window_too_small_for_the_gap_never_flushes_early() -> None:
    assert not CompactionSettings().flush_due(tokens=10**6, window=5_000)


async def test_o60_near_the_threshold_everything_said_so_far_is_handed_over(tmp_path: Path) -> None:
    flush = Flushes()
    sessions = desk(tmp_path, flush=flush, settings=rules())
    said = await talk(sessions, 3)
    await sessions.prepare(KEY)
    assert flush.seen == []
    said += await talk(sessions, 1, start=3)
    await sessions.prepare(KEY)
    assert (flush.reasons, flush.said) == (["threshold"], [said])
    entry = await sessions.registry.get(KEY)
    assert entry is not None
    assert (entry.memory_flush_compaction_count, entry.memory_flush_at is not None) == (0, True)


async def test_o61_once_per_compaction_cycle(tmp_path: Path) -> None:
    flush = Flushes()
    sessions = desk(tmp_path, flush=flush, model=Summaries(), settings=rules(min_messages=100))
    await talk(sessions, 4)
    for n in range(3):
        await talk(sessions, 1, start=4 + n, width=2)
        await sessions.prepare(KEY)
    assert flush.reasons == ["threshold"]
    await sessions.compact(KEY, trigger=Trigger.OVERFLOW)
    await talk(sessions, 4, start=10)
    await sessions.prepare(KEY)
    assert flush.reasons == ["threshold", "overflow", "threshold"]


async def test_o62_a_heartbeat_flushes_nothing(tmp_path: Path) -> None:
    flush = Flushes()
    sessions = desk(tmp_path, flush=flush, settings=rules())
    await talk(sessions, 4)
    await sessions.prepare(KEY, heartbeat=True)
    assert flush.seen == []


@pytest.mark.parametrize("path", ["manual", "overflow", "threshold", "reset", "daily", "idle"])
async def test_o62_every_path_that_loses_context_flushes_first(tmp_path: Path, path: str) -> None:
    flush = Flushes()
    clock = Clock()
    gap = rules(flush_gap_tokens=80, idle_minutes=5 if path == "idle" else None)
    sessions = desk(tmp_path, clock, flush=flush, model=Summaries(), settings=gap)
    said = await talk(sessions, 6)
    match path:
        case "manual":
            await sessions.receive(KEY, "/compact")
        case "overflow":
            await sessions.compact(KEY, trigger=Trigger.OVERFLOW)
        case "threshold":
            await sessions.prepare(KEY)
        case "reset":
            await sessions.receive(KEY, "/new")
        case _:
            clock.forward(days=1)
            await sessions.receive(KEY, "next")
    assert (flush.reasons, flush.said) == ([path], [said])


async def test_o62_what_was_flushed_is_not_flushed_again_and_nothing_is_missed(tmp_path: Path) -> None:
    flush = Flushes()
    sessions = desk(tmp_path, flush=flush, model=Summaries(), settings=rules())
    first = await talk(sessions, 4)
    await sessions.prepare(KEY)
    second = await talk(sessions, 2, start=4)
    await sessions.prepare(KEY)
    third = await talk(sessions, 2, start=6)
    await sessions.receive(KEY, "/new")
    await sessions.receive(KEY, "/new")
    assert flush.said == [first, second, third]


async def test_o63_the_note_is_of_the_users_day(tmp_path: Path) -> None:
    late = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    assert note_name(late, "UTC") == "memory/2026-03-02.md"
    assert note_name(late, "Asia/Ho_Chi_Minh") == "memory/2026-03-03.md"
    flush = Flushes()
    sessions = desk(tmp_path, Clock(late), flush=flush, settings=rules(zone="Asia/Ho_Chi_Minh"))
    await turn(sessions, "hi")
    await sessions.reset(KEY)
    assert flush.seen[0].note == "memory/2026-03-03.md"


@pytest.mark.parametrize("fault", [ModelUnavailable("down"), RuntimeError("secret words"), TimeoutError()])
async def test_o64_a_failing_flush_is_logged_without_its_words_and_blocks_nothing(
    tmp_path: Path, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    sessions = desk(tmp_path, flush=Flushes(fault), model=Summaries(), settings=rules())
    await talk(sessions, 6)
    with caplog.at_level(logging.WARNING):
        done = await sessions.prepare(KEY)
    assert done is not None
    assert done.status is Status.COMPACTED
    assert "memory_flush_failed" in caplog.text
    assert type(fault).__name__ in caplog.text
    assert "secret" not in caplog.text
    assert (await sessions.receive(KEY, "/new go")).text == "go"


async def test_o64_a_flush_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FLUSH_TIMEOUT_S", 0.01)

    async def hangs(_: FlushRequest) -> None:
        await asyncio.Event().wait()

    sessions = desk(tmp_path, flush=hangs, settings=rules())
    await turn(sessions, "hi")
    await sessions.receive(KEY, "/new go")
    assert await texts(sessions) == ["go"]


async def test_o64_after_a_failed_flush_the_next_one_gets_everything(tmp_path: Path) -> None:
    flush = Flushes(ModelUnavailable("down"))
    sessions = desk(tmp_path, flush=flush, settings=rules())
    said = await talk(sessions, 4)
    await sessions.prepare(KEY)
    flush.fault = None
    said += await talk(sessions, 1, start=4)
    await sessions.receive(KEY, "/new")
    assert flush.said[-1] == said
