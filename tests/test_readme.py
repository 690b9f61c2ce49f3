"""What the README promises, run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from memagent.llm.script import Script, calling
from memagent.llm.scripted import ScriptedServer

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_library_example_remembers_a_chat(redis_url: str, tmp_path: Path) -> None:
    (example,) = blocks("python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 15
    (tmp_path / "librechat.yaml").write_text((ROOT / "examples" / "librechat.yaml").read_text())
    server = ScriptedServer(Script.of(calling("set_memory", key="pets", value="Juno's cat is called Mochi")))
    server.start()
    environ = {
        "PATH": os.environ["PATH"],
        "MEMAGENT_REDIS_URL": redis_url,
        "MEMAGENT_KEY_PREFIX": "t-readme",
        "MEMAGENT_EMBEDDER": "hashed",
        "MEMORY_GATEWAY_URL": server.base_url,
        "MEMORY_GATEWAY_KEY": "key",
    }
    try:
        ran = subprocess.run(
            [sys.executable, "-c", example],
            check=False,
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            timeout=110,
        )
    finally:
        server.stop()
    assert ran.returncode == 0, ran.stderr
    assert "ran ('pets',)" in ran.stdout
    assert "Juno's cat is called Mochi" in ran.stdout


def test_the_two_commands_of_the_readme_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_every_page_the_readme_sends_people_to_is_there() -> None:
    for page in re.findall(r"`((?:docs|schemas|examples)/[\w./-]+)`", README):
        assert (ROOT / page).exists(), page


def test_every_command_of_the_readme_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    from memagent.cli import run

    shown = "".join(block for block in README.split("```")[1::2] if block.startswith("\n"))
    commands = re.findall(r"^(?:\$ )?memagent (\w+)", shown, re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        assert run([command, "--help"]) == 0, command
    capsys.readouterr()
