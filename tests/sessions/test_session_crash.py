"""No line that was acknowledged is lost: the process is killed during appends and rotations, again and again."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from memagent.sessions.archive import archives
from memagent.sessions.chat_memory import MessageWindowChatMemory
from memagent.sessions.chat_stores import JsonlChatMemoryStore
from memagent.sessions.transcript import MESSAGE, Transcript
from tests.sessions.crash_writer import KEY, desk

WRITER = Path(__file__).with_name("crash_writer.py")
ROUNDS = 3
LAST_MOMENT_S = 0.02
"""The kill falls within this time after a random line: longer than a rotation takes."""


def acknowledged(kind: str, folder: Path, *, seed: int) -> list[str]:
    """What the writers said they had kept, each killed with SIGKILL at a random moment."""
    moments = random.Random(seed)
    found: list[str] = []
    for round_ in range(ROUNDS):
        with subprocess.Popen(
            [sys.executable, str(WRITER), kind, str(folder), f"r{round_}"], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            found += [writer.stdout.readline().strip() for _ in range(moments.randint(1, 25))]
            time.sleep(moments.random() * LAST_MOMENT_S)
            writer.kill()
            found += writer.stdout.read().split()
    assert "" not in found
    return found


async def test_sessions_killed_at_any_moment_have_lost_no_line(tmp_path: Path) -> None:
    said = acknowledged("sessions", tmp_path, seed=2026)
    sessions = desk(tmp_path)
    await sessions.receive(KEY, "after all that")
    entry = await sessions.registry.get(KEY)
    assert entry is not None
    files = [*tmp_path.glob("*.jsonl"), *(each.path for each in archives(tmp_path))]
    records = [Transcript(path).read() for path in files]
    assert all(record.header for record in records)
    there = Counter(
        line.data["message"]["content"]
        for record in records
        for line in record.entries
        if line.type == MESSAGE and "copiedFrom" not in line.data
    )
    assert [text for text in said if there[text] != 1] == []
    assert (await sessions.context(KEY)).messages[-1].content == "after all that"
    # Every session but the living one is archived, or a file of a rotation that never came to be and holds no words
    # of its own.
    loose = {path for path in tmp_path.glob("*.jsonl") if path.stem != entry.session_id}
    own = [
        line
        for path in loose
        for line in Transcript(path).read().entries
        if line.type == MESSAGE and "copiedFrom" not in line.data
    ]
    assert own == []
    assert not list(tmp_path.glob("*.broken*"))


async def test_a_chat_killed_at_any_moment_has_a_whole_window_and_every_word_in_its_history(
    tmp_path: Path,
) -> None:
    said = acknowledged("chat", tmp_path, seed=7)
    memory = MessageWindowChatMemory(max_messages=3, id="chat", store=JsonlChatMemoryStore(tmp_path))
    history = [message.content for message in await memory.history()]
    assert [text for text in said if history.count(text) != 1] == []
    window = [message.content for message in await memory.messages()]
    assert len(window) == 3
    at = history.index(window[-1])
    assert history[at - 2 : at + 1] == window
