"""Cleaning up: O88 to O93, V28 and V29 of spec/seeds.md."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from memagent.sessions.archive import Reason, archives, transcript_of
from memagent.sessions.cleanup import Cleanup, CleanupSettings, Why
from memagent.sessions.entry import SessionEntry
from memagent.sessions.keys import lock_name
from tests.sessions.session_cases import START, Clock, desk, turn

if TYPE_CHECKING:
    from pathlib import Path

    from memagent.sessions.service import Sessions

DAY = timedelta(days=1)


def cleanup(sessions: Sessions, clock: Clock, *, active: tuple[str, ...] = (), **settings: Any) -> Cleanup:
    return Cleanup(
        sessions.folder,
        registry=sessions.registry,
        clock=clock,
        settings=CleanupSettings(**settings),
        active=active,
    )


async def put(sessions: Sessions, key: str, *, used: Any = START, **more: Any) -> SessionEntry:
    """A session with a transcript, last updated and accessed at `used`."""
    await turn(sessions, f"hi from {key}", key=key)
    times = {"updated_at": used, "last_access_at": used, "last_interaction_at": used, **more}
    entry = await sessions.registry.patch(key, lambda row: row.model_copy(update=times) if row else None)
    assert entry is not None
    return entry


async def victims(found: Cleanup) -> list[tuple[str, str]]:
    return [(str(victim.why), victim.key or victim.session_id) for victim in (await found.plan()).victims]


def key(name: str) -> str:
    return f"agent:main:direct:{name}"


async def test_v29_after_30_days_and_a_second_a_session_is_eligible(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    second = timedelta(seconds=1)
    for name, age in (("under", 30 * DAY - second), ("exactly", 30 * DAY), ("over", 30 * DAY + second)):
        await put(sessions, key(name), used=clock.now - age)
    assert await victims(cleanup(sessions, clock)) == [("unused", key("over"))]


async def test_o88_reading_counts_as_access_and_writing_metadata_does_not(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    for name in ("read", "renamed"):
        await put(sessions, key(name), used=START)
    clock.forward(days=29)
    await sessions.context(key("read"))
    await sessions.registry.patch(
        key("renamed"),
        lambda row: row.model_copy(update={"label": "x", "updated_at": clock.now}) if row else None,
    )
    clock.forward(days=2)
    assert await victims(cleanup(sessions, clock)) == [("unused", key("renamed"))]


async def test_o88_a_row_without_a_time_is_kept_by_age_and_first_to_go_under_the_cap(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    await put(sessions, key("known"))
    await sessions.registry.patch(key("timeless"), lambda _: SessionEntry(session_id="t"))
    assert await victims(cleanup(sessions, clock)) == []
    assert await victims(cleanup(sessions, clock, cap=1)) == [("over_cap", key("timeless"))]


async def test_o89_v28_of_501_sessions_the_one_updated_longest_ago_is_archived_not_erased(
    tmp_path: Path,
) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    old = await put(sessions, key("oldest"), used=START - DAY)
    rows = {key(f"{n}"): SessionEntry(session_id=f"x{n}", updated_at=START) for n in range(500)}
    content = sessions.registry.path.read_bytes()  # type: ignore[attr-defined]
    stored = json.loads(content) | {k: v.model_dump(mode="json", by_alias=True) for k, v in rows.items()}
    sessions.registry.path.write_text(json.dumps(stored))  # type: ignore[attr-defined]
    cleaning = cleanup(sessions, clock)
    plan = await cleaning.plan()
    assert [(victim.why, victim.key) for victim in plan.victims] == [(Why.OVER_CAP, key("oldest"))]
    await cleaning.run(plan)
    assert len(await sessions.registry.load()) == 500
    assert [(each.session_id, each.reason) for each in archives(tmp_path)] == [
        (old.session_id, Reason.DELETED)
    ]
    assert b"hi from" in transcript_of(tmp_path, old.session_id).read_bytes()


async def test_o89_a_transcript_that_another_key_uses_stays(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    entry = await put(sessions, key("gone"), used=START - 40 * DAY)
    await sessions.registry.patch(key("alias"), lambda _: entry.model_copy(update={"last_access_at": START}))
    cleaning = cleanup(sessions, clock)
    await cleaning.run(await cleaning.plan())
    assert list(await sessions.registry.load()) == [key("alias")]
    assert archives(tmp_path) == []
    assert (tmp_path / f"{entry.session_id}.jsonl").exists()


async def test_o89_a_file_outside_the_folder_is_never_touched(tmp_path: Path) -> None:
    folder, outside = tmp_path / "sessions", tmp_path / "outside.jsonl"
    outside.write_text("precious")
    clock = Clock()
    sessions = desk(folder, clock)
    await put(sessions, key("bad"), used=START - 40 * DAY, session_file=str(outside))
    cleaning = cleanup(sessions, clock)
    await cleaning.run(await cleaning.plan())
    assert outside.read_text() == "precious"
    assert await sessions.registry.load() == {}


async def test_o89_archives_of_cleaned_up_sessions_are_erased_after_30_days_and_ended_ones_stay(
    tmp_path: Path,
) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    await put(sessions, key("gone"), used=START - 40 * DAY)
    cleaning = cleanup(sessions, clock)
    await cleaning.run(await cleaning.plan())
    await put(sessions, key("reset"))
    await sessions.reset(key("reset"))
    clock.now = START + 30 * DAY
    assert await victims(cleanup(sessions, clock, unused_for=90 * DAY)) == []
    clock.now = START + 30 * DAY + timedelta(seconds=1)
    found = cleanup(sessions, clock, unused_for=90 * DAY)
    plan = await found.plan()
    assert [(victim.why, victim.erased) for victim in plan.victims] == [(Why.ARCHIVE, True)]
    await found.run(plan)
    assert [each.reason for each in archives(tmp_path)] == [Reason.RESET]
    own = cleanup(sessions, clock, unused_for=90 * DAY, keep_ended=30 * DAY)
    assert [victim.why for victim in (await own.plan()).victims] == [Why.ARCHIVE]


async def test_o90_a_plan_changes_nothing_and_warns_of_the_active_session(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    for name in ("active", "pinned", "free"):
        await put(sessions, key(name), used=START - 40 * DAY, pinned=name == "pinned")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    plan = await cleanup(sessions, clock, active=(key("active"),)).plan()
    assert [victim.key for victim in plan.victims] == [key("free")]
    assert sorted(plan.warnings) == [
        f"{key('active')} would go (unused), but it is in use",
        f"{key('pinned')} would go (unused), but it is pinned",
    ]
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    assert (
        await cleanup(sessions, clock, unused_for=90 * DAY, active=(key("active"),)).plan()
    ).warnings == ()


async def test_o91_over_the_disk_budget_archives_and_orphans_go_first_then_the_oldest_sessions(
    tmp_path: Path,
) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    old = await put(sessions, key("old"), used=START - 2 * DAY)
    new = await put(sessions, key("new"), used=START - DAY)
    for name, age in ((f"{old.session_id}.jsonl", 0), (f"{new.session_id}.jsonl", 0)):
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b"\n" * 10_000)
        os.utime(tmp_path / name, (START.timestamp() - age,) * 2)
    for name, days in (("a.jsonl.reset.2026-01-01T00-00-00-000000", 9), ("orphan.jsonl", 5)):
        (tmp_path / name).write_bytes(b"\n" * 10_000)
        os.utime(tmp_path / name, (START.timestamp() - days * 86_400,) * 2)
    used = sum(path.stat().st_size for path in tmp_path.iterdir() if path.is_file())
    assert await victims(cleanup(sessions, clock, budget_bytes=used)) == [("orphan", "orphan")]
    # A byte over the budget; erasing the archive alone brings it below 80 %, as the orphan only moves.
    plan = await cleanup(sessions, clock, budget_bytes=used - 1).plan()
    assert [(str(v.why), v.key or v.session_id) for v in plan.victims] == [
        ("orphan", "orphan"),
        ("budget", "a"),
    ]
    plan = await cleanup(sessions, clock, budget_bytes=used // 2).plan()
    assert [v.key or v.session_id for v in plan.victims] == ["orphan", "a", key("old"), key("new")]
    plan = await cleanup(sessions, clock, budget_bytes=used // 2, active=(key("old"),)).plan()
    assert [v.key or v.session_id for v in plan.victims] == ["orphan", "a", key("new")]


@pytest.mark.parametrize(
    "shared", ["agent:main:x:group:1", "agent:main:x:channel:1", "agent:main:x:group:1:thread:2"]
)
async def test_o92_groups_and_threads_are_spared_and_count_to_the_cap(tmp_path: Path, shared: str) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    await put(sessions, shared, used=START - 40 * DAY)
    await put(sessions, key("a"), used=START)
    assert await victims(cleanup(sessions, clock)) == []
    assert await victims(cleanup(sessions, clock, cap=1)) == [("over_cap", key("a"))]
    assert ("unused", shared) in await victims(cleanup(sessions, clock, protect_shared=False))


async def test_o92_a_session_in_use_at_this_moment_is_spared(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    await put(sessions, key("busy"), used=START - 40 * DAY)
    other = desk(tmp_path, clock)
    cleaning = cleanup(sessions, clock)
    plan = await cleaning.plan()
    async with other._locks.hold(lock_name(key("busy"))):
        assert await victims(cleanup(sessions, clock)) == []
        assert [victim.key for victim in (await cleaning.run(plan)).spared] == [key("busy")]
    assert len((await cleaning.run(plan)).done) == 1


async def test_o92_a_session_used_again_after_the_plan_is_spared(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    await put(sessions, key("back"), used=START - 40 * DAY)
    await put(sessions, key("pin"), used=START - 40 * DAY)
    cleaning = cleanup(sessions, clock)
    plan = await cleaning.plan()
    await sessions.receive(key("back"), "I am back")
    await sessions.registry.patch(
        key("pin"), lambda row: row.model_copy(update={"pinned": True}) if row else None
    )
    cleaned = await cleaning.run(plan)
    assert (cleaned.done, len(cleaned.spared)) == ((), 2)
    assert len(await sessions.registry.load()) == 2


async def test_o92_reading_never_cleans_up(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    await put(sessions, key("old"), used=START - 400 * DAY)
    await sessions.registry.load()
    await sessions.receive(key("new"), "hi")
    assert key("old") in await sessions.registry.load()


async def test_o93_a_transcript_nobody_names_is_found_without_a_budget_and_archived(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    await put(sessions, key("a"))
    for name, age in (("young", 86_399), ("old", 86_401)):
        (tmp_path / f"{name}.jsonl").write_text("{}\n")
        os.utime(tmp_path / f"{name}.jsonl", (START.timestamp() - age,) * 2)
    cleaning = cleanup(sessions, clock)
    plan = await cleaning.plan()
    assert [(victim.why, victim.session_id) for victim in plan.victims] == [(Why.ORPHAN, "old")]
    await cleaning.run(plan)
    assert [(each.session_id, each.reason) for each in archives(tmp_path)] == [("old", Reason.DELETED)]


async def test_half_written_files_of_processes_that_died_are_erased(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    for name, age in ((".sessions.json.a.tmp", 86_401), (".sessions.json.b.tmp", 86_399)):
        (tmp_path / name).write_text("{")
        os.utime(tmp_path / name, (START.timestamp() - age,) * 2)
    cleaning = cleanup(sessions, clock)
    plan = await cleaning.plan()
    assert [(victim.why, victim.erased) for victim in plan.victims] == [(Why.LEFTOVER, True)]
    await cleaning.run(plan)
    assert [path.name for path in tmp_path.glob(".*.tmp")] == [".sessions.json.b.tmp"]


async def test_cleaning_twice_is_cleaning_once(tmp_path: Path) -> None:
    clock = Clock()
    sessions = desk(tmp_path, clock)
    await put(sessions, key("a"), used=START - 40 * DAY)
    cleaning = cleanup(sessions, clock)
    plan = await cleaning.plan()
    await cleaning.run(plan)
    assert (await cleaning.run(plan)).done == ()
    assert (await cleaning.plan()).victims == ()
    assert (await Cleanup(tmp_path / "none", registry=sessions.registry, clock=clock).plan()).victims == ()
