"""`memagent recall` over memories, turns and notes."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from memagent import wiring
from memagent.cli import cli
from memagent.errors import BadRequest
from memagent.llm.script import Answer, Script
from memagent.llm.scripted import ScriptedModel
from memagent.memory import Message
from memagent.turn import Turn
from tests.service.conftest import CONFIG

if TYPE_CHECKING:
    from pathlib import Path

ASKED = "Mochi the cat"


@pytest.fixture
def environ(redis_url: str, tmp_path: Path) -> dict[str, str]:
    """A user of whom a memory, a turn and a note tell the same."""
    config = tmp_path / "librechat.yaml"
    config.write_text(CONFIG.replace("EXTRA", "disabled: false"))
    (tmp_path / "MEMORY.md").write_text("Mochi the cat sleeps\n")
    found = {
        "MEMAGENT_CONFIG": str(config),
        "MEMAGENT_REDIS_URL": redis_url,
        "MEMAGENT_KEY_PREFIX": f"t-{uuid.uuid4().hex[:12]}",
        "MEMAGENT_EMBEDDER": "hashed",
        "MEMAGENT_TRANSCRIPTS": "true",
        "MEMAGENT_NOTES_DIR": str(tmp_path),
        "MEMAGENT_VECTORS": str(tmp_path / "vectors"),
    }

    async def talk() -> None:
        model = ScriptedModel(Script.of(Answer(text="nothing")))
        async with wiring.open(environ=found, models=lambda _: model) as memory:
            await memory.put("juno", "cat", "Juno has a cat")
            said = (Message("user", "my cat is called Mochi"),)
            await memory.observe(Turn("juno", "m1", said, conversation_id="c1"))

    asyncio.run(talk())
    return found


def recall(environ: dict[str, str], *arguments: str) -> Any:
    result = CliRunner().invoke(cli, ["recall", "--user", "juno", *arguments, ASKED], obj=environ)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_explained_it_shows_the_hits_of_all_sources(environ: dict[str, str]) -> None:
    shown = recall(environ, "--explain").stdout
    for part in (
        "Juno has a cat",
        "match floor",
        "sessions/c1#L1-L1",
        "MEMORY.md#L1-L1",
        "my cat is called Mochi",
    ):
        assert part in shown


def test_sources_that_are_named_are_asked_alone(environ: dict[str, str]) -> None:
    for named, expected in (("turns", {"turns"}), ("notes, turns", {"notes", "turns"}), ("memories", set())):
        found = json.loads(recall(environ, "--json", "--sources", named).stdout)
        assert {each["source"] for each in found["note"]["passages"]} == expected
        assert bool(found["prefix"]) is (named == "memories")


def test_a_source_that_is_none_is_refused_with_those_that_are(environ: dict[str, str]) -> None:
    with pytest.raises(BadRequest, match="memories, turns, notes"):
        recall(environ, "--sources", "diary")
