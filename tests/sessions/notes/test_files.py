"""Which files are memory, and how a path becomes one."""

from __future__ import annotations

import os
from datetime import date
from typing import TYPE_CHECKING

import pytest

from memagent.errors import BadRequest, NotFound
from memagent.sessions.files import MAX_FILE_BYTES, Workspace, day_of

if TYPE_CHECKING:
    from pathlib import Path

Write = "Callable[[str, str], Path]"


def paths(workspace: Workspace) -> list[str]:
    return [file.path for file in workspace.files()]


def test_o66_memory_files_are_found_and_nothing_else(workspace: Workspace, write: Write) -> None:
    for path in (
        "MEMORY.md",
        "memory/a.md",
        "memory/deep/er/b.md",
        "README.md",
        "memory/c.txt",
        "notes/d.md",
    ):
        write(path, "text")

    assert paths(workspace) == ["MEMORY.md", "memory/a.md", "memory/deep/er/b.md"]


def test_o66_the_lower_case_name_counts_too(workspace: Workspace, write: Write) -> None:
    write("memory.md", "text")

    assert paths(workspace) == ["memory.md"]


def test_o66_extra_paths_are_files_and_folders_inside_and_outside(
    tmp_path: Path, workspace: Workspace, write: Write
) -> None:
    write("notes/d.md", "inside")
    write("notes/no.txt", "inside")
    outside = tmp_path / "elsewhere"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "e.md").write_text("outside")
    (tmp_path / "single.md").write_text("outside")
    wide = Workspace(workspace.root, extra=("notes", str(outside), "../single.md"))

    assert paths(wide) == sorted(["notes/d.md", f"{outside}/deep/e.md", f"{tmp_path}/single.md"])
    assert wide.read(f"{outside}/deep/e.md") == "outside"
    assert set(wide.folders_outside()) == {outside, tmp_path}


def test_o66_symlinked_files_and_folders_are_ignored(
    tmp_path: Path, workspace: Workspace, write: Write
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.md").write_text("secret")
    write("memory/a.md", "text")
    (workspace.root / "memory" / "link.md").symlink_to(secret / "key.md")
    (workspace.root / "memory" / "folder").symlink_to(secret)
    (workspace.root / "MEMORY.md").symlink_to(secret / "key.md")

    assert paths(workspace) == ["memory/a.md"]
    for path in ("memory/link.md", "memory/folder/key.md", "MEMORY.md"):
        with pytest.raises(BadRequest):
            workspace.read(path)


def test_o66_a_memory_folder_that_is_a_link_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.md").write_text("text")
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "memory").symlink_to(tmp_path / "real")

    assert paths(Workspace(root)) == []
    with pytest.raises(BadRequest):
        Workspace(root).append_note(date(2026, 1, 1), "text")


def test_o66_the_workspace_itself_may_be_reached_through_a_link(
    tmp_path: Path, workspace: Workspace, write: Write
) -> None:
    write("MEMORY.md", "text")
    (tmp_path / "way").symlink_to(workspace.root)

    assert paths(Workspace(tmp_path / "way")) == ["MEMORY.md"]


def test_o66_one_real_file_counts_once(workspace: Workspace, write: Write) -> None:
    real = write("memory/a.md", "text")
    os.link(real, workspace.root / "memory" / "b.md")
    wide = Workspace(workspace.root, extra=("memory", "memory/a.md", "./memory/../memory"))

    assert paths(wide) == ["memory/a.md"]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "../outside.md",
        "memory/../../outside.md",
        "memory/../MEMORY.md",
        "/etc/passwd",
        "/etc/hosts.md",
        "memory\\..\\..\\x.md",
        "memory/a.md\0.txt",
        "memory/a.txt",
        "memory",
        "memory/",
        "README.md",
        "memoryless/a.md",
        "MEMORY.md/a.md/../../x",
        "~/MEMORY.md",
    ],
)
def test_o77_a_path_that_is_no_memory_path_is_refused(workspace: Workspace, write: Write, path: str) -> None:
    write("README.md", "text")
    write("memory/a.txt", "text")

    with pytest.raises(BadRequest) as fault:
        workspace.read(path)
    assert str(workspace.root) not in str(fault.value)


def test_o77_a_missing_file_is_empty_text(workspace: Workspace) -> None:
    assert workspace.lines("memory/not-yet.md") == ""
    assert workspace.lines("MEMORY.md/not-a-folder.md") == ""


def test_o77_lines_are_counted_from_one(workspace: Workspace, write: Write) -> None:
    write("MEMORY.md", "one\r\ntwo\nthree\n")

    assert workspace.lines("MEMORY.md", first=2, count=1) == "two"
    assert workspace.lines("MEMORY.md", first=2) == "two\nthree"
    assert workspace.lines("MEMORY.md", first=1, count=0) == ""
    assert workspace.lines("MEMORY.md", first=4) == ""
    assert workspace.lines("MEMORY.md") == "one\r\ntwo\nthree\n"


@pytest.mark.parametrize(("first", "count"), [(0, None), (-1, 1), (1, -1)])
def test_o77_lines_that_cannot_be_are_refused(workspace: Workspace, first: int, count: int | None) -> None:
    with pytest.raises(BadRequest):
        workspace.lines("MEMORY.md", first=first, count=count)


def test_a_special_file_is_neither_listed_nor_waited_for(workspace: Workspace) -> None:
    os.mkfifo(workspace.root / "memory" / "pipe.md")

    assert paths(workspace) == []
    with pytest.raises(BadRequest):
        workspace.read("memory/pipe.md")


def test_bytes_that_are_no_utf8_are_read_as_marks(workspace: Workspace, write: Write) -> None:
    write("MEMORY.md", "gr\udcffn")
    write("memory/bom.md", "\ufeffstart")

    assert workspace.read("MEMORY.md") == "gr\ufffdn"
    assert workspace.read("memory/bom.md") == "start"


def test_a_file_beyond_the_size_of_a_note_is_refused(workspace: Workspace) -> None:
    with (workspace.root / "MEMORY.md").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)

    with pytest.raises(BadRequest):
        workspace.read("MEMORY.md")


def test_reading_what_is_not_there_says_so(workspace: Workspace) -> None:
    with pytest.raises(NotFound):
        workspace.read("memory/none.md")


def test_o63_a_flush_appends_to_the_note_of_the_users_day(workspace: Workspace) -> None:
    day = date(2026, 2, 3)

    assert workspace.append_note(day, "  first  \n") == "memory/2026-02-03.md"
    assert workspace.append_note(day, "zweite Größe") == "memory/2026-02-03.md"
    assert workspace.read("memory/2026-02-03.md") == "first\n\nzweite Größe\n"


def test_o63_what_stands_in_a_note_is_never_rewritten(workspace: Workspace, write: Write) -> None:
    write("memory/2026-02-03.md", "by hand, no line feed")
    workspace.append_note(date(2026, 2, 3), "flushed")

    assert workspace.read("memory/2026-02-03.md").startswith("by hand, no line feed\n")
    assert workspace.read("memory/2026-02-03.md").endswith("\nflushed\n")


def test_o65_whatever_saves_on_one_evening_saves_to_the_users_day(workspace: Workspace) -> None:
    """The flush names the file, the reset gives the day: 23:30 in Hanoi is one date for both."""
    workspace.append("memory/2026-02-03.md", "flushed")
    workspace.append_note(date(2026, 2, 3), "reset")

    assert paths(workspace) == ["memory/2026-02-03.md"]


@pytest.mark.parametrize(
    "path",
    ["MEMORY.md", "memory/a.md", "memory/2026-02-03-trip.md", "memory/2026-02-30.md", "x/2026-02-03.md"],
)
def test_o63_every_file_but_a_daily_note_is_read_only_for_a_flush(workspace: Workspace, path: str) -> None:
    with pytest.raises(BadRequest):
        workspace.append(path, "text")
    assert paths(workspace) == []


def test_o63_a_note_that_ended_in_mid_line_is_not_joined(workspace: Workspace, write: Write) -> None:
    write("memory/2026-02-03.md", "cut sho")
    workspace.append("memory/2026-02-03.md", "flushed")

    assert workspace.read("memory/2026-02-03.md") == "cut sho\n\nflushed\n"


def test_o63_an_empty_note_is_not_written(workspace: Workspace) -> None:
    with pytest.raises(BadRequest):
        workspace.append_note(date(2026, 2, 3), " \n ")
    assert paths(workspace) == []


def test_o63_a_note_that_is_a_link_is_not_written_through(tmp_path: Path, workspace: Workspace) -> None:
    (tmp_path / "target.md").write_text("untouched")
    (workspace.root / "memory" / "2026-02-03.md").symlink_to(tmp_path / "target.md")

    with pytest.raises(BadRequest):
        workspace.append_note(date(2026, 2, 3), "text")
    assert (tmp_path / "target.md").read_text() == "untouched"


def test_o79_memory_md_is_cut_for_the_prompt_and_kept_on_disk(workspace: Workspace, write: Write) -> None:
    write("MEMORY.md", "x" * 20_001)

    text = workspace.base_text()
    assert text.startswith("x" * 20_000 + "\n[MEMORY.md goes on")
    assert workspace.read("MEMORY.md") == "x" * 20_001
    write("MEMORY.md", "x" * 20_000)
    assert workspace.base_text() == "x" * 20_000


def test_o79_without_memory_md_there_is_no_base_text(workspace: Workspace) -> None:
    assert workspace.base_text() == ""


def test_o79_yesterdays_and_todays_notes_come_in_order(workspace: Workspace, write: Write) -> None:
    write("memory/2026-03-01.md", "today")
    write("memory/2026-02-28.md", "yesterday")
    write("memory/2026-02-27.md", "older")

    assert workspace.recent_notes(date(2026, 3, 1), date(2026, 2, 28)) == (
        ("memory/2026-02-28.md", "yesterday"),
        ("memory/2026-03-01.md", "today"),
    )


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("memory/2026-02-28.md", date(2026, 2, 28)),
        ("memory/2026-02-30.md", None),
        ("memory/2026-02-28-trip.md", None),
        ("memory/deep/2026-02-28.md", None),
        ("MEMORY.md", None),
        ("2026-02-28.md", None),
    ],
)
def test_o75_only_a_plain_daily_note_has_a_day(path: str, day: date | None) -> None:
    assert day_of(path) == day
