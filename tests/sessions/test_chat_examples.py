"""The three cases of `examples/chat_memory` run as they are, against the recorded model."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "chat_memory"


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("name_master", ["Nguyễn An Nhiên", "---", "Nguyễn Khánh Vy"]),
        ("persistent", ["Nguyễn An Nhiên", "--- 2 messages kept", "Nguyễn Khánh Vy", "--- 4 messages kept"]),
        ("per_user", ["Nguyễn An Nhiên", "---", "Trần Minh Khôi", "---", "Nguyễn Khánh Vy"]),
    ],
)
def test_an_example_runs_and_prints_what_it_says(
    name: str,
    printed: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "scripted", raising=False)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == printed
