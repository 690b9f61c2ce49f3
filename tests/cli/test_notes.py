"""The `notes` commands, as a person and as a program use them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from memagent.cli import cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def notes(tmp_path: Path) -> Callable[..., Any]:
    """Run one `notes` command on a workspace of its own, with LanceDB and hashed words."""
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    (tmp_path / "ws" / "MEMORY.md").write_text("# Juno\nDie Größe ist [bold]M[/bold]\n")

    def run(*arguments: str) -> Any:
        place = ["--workspace", str(tmp_path / "ws"), "--store", str(tmp_path / "index")]
        environ = {"MEMAGENT_EMBEDDER": "hashed", "MEMAGENT_DATA_DIR": str(tmp_path / "data")}
        return CliRunner().invoke(cli, ["notes", *arguments, *place], obj=environ, standalone_mode=False)

    return run


def test_indexing_twice_embeds_once_and_force_builds_anew(notes: Callable[..., Any]) -> None:
    first, second, forced = (
        json.loads(notes("index", "--json", *more).stdout) for more in ([], [], ["--force"])
    )

    assert (first["changed"], first["embedded"], first["rebuilt"]) == (["MEMORY.md"], 1, False)
    assert (second["changed"], second["embedded"]) == ([], 0)
    assert (forced["rebuilt"], forced["embedded"], forced["reused"]) == (True, 0, 1)
    assert "1 files: 0 changed, 0 removed; 0 texts embedded" in notes("index").stdout


def test_a_search_cites_and_shows_the_text_as_it_stands(notes: Callable[..., Any]) -> None:
    found = notes("search", "groesse grösse Juno")

    assert found.return_value == 0
    assert "MEMORY.md#L1-L2" in found.stdout
    assert "[bold]M[/bold]" in found.stdout
    assert json.loads(notes("search", "Juno", "--json").stdout)["results"][0]["citation"] == "MEMORY.md#L1-L2"


def test_a_search_that_finds_nothing_exits_with_one(notes: Callable[..., Any]) -> None:
    nothing = notes("search", "quantum chromodynamics")

    assert (nothing.return_value, nothing.stdout) == (1, "nothing found\n")


def test_lines_of_a_note_are_printed_as_they_are(notes: Callable[..., Any]) -> None:
    assert notes("get", "MEMORY.md").stdout == "# Juno\nDie Größe ist [bold]M[/bold]\n"
    assert notes("get", "MEMORY.md", "--from", "1", "--lines", "1").stdout == "# Juno"
    assert json.loads(notes("get", "memory/none.md", "--json").stdout) == {
        "path": "memory/none.md",
        "text": "",
    }


def test_a_path_outside_of_memory_is_refused(notes: Callable[..., Any]) -> None:
    assert notes("get", "../../etc/passwd").exception.code == "bad_request"
