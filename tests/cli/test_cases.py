"""A case is a file: every one in `tests/cases/valid` is clean, every one in `tests/cases/invalid` prints what stands beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from memagent.cli import cli
from memagent.config.rules import RULES

ROOT = Path(__file__).parent.parent.parent
CASES = ROOT / "tests" / "cases"
INVALID = sorted((CASES / "invalid").glob("*.yaml"))
VALID = [
    *sorted((CASES / "valid").glob("*.yaml")),
    ROOT / "librechat.example.yaml",
    ROOT / "examples" / "librechat.yaml",
]

COMMANDS = (
    ("validate",),
    ("validate", "--output-format", "concise"),
    ("validate", "--output-format", "json"),
    ("validate", "--output-format", "github"),
    ("validate", "--output-format", "sarif"),
    ("validate", "--as-librechat", "--output-format", "json"),
    ("validate", "--diff"),
)


class Beside(SingleFileSnapshotExtension):
    """Snapshots stand beside their case: `name.yaml`, `name.out`."""

    _write_mode = WriteMode.TEXT
    file_extension = "out"

    @classmethod
    def dirname(cls, *, test_location: Any) -> str:
        return str(CASES / "invalid")

    @classmethod
    def get_snapshot_name(cls, *, test_location: Any, index: Any) -> str:
        return str(test_location.snapshot_name.partition("[")[2].rstrip("]"))


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, arguments, obj={})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.stem)
def test_an_invalid_case_prints_what_stands_beside_it(
    case: Path, snapshot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(case.parent)
    parts = []
    for command in COMMANDS:
        code, output = run(*command, case.name)
        parts.append(f"$ memagent {' '.join(command)} {case.name}\n{output}exit {code}\n")
    assert "\n".join(parts) == snapshot(extension_class=Beside)


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.stem)
def test_every_code_in_a_case_is_in_the_table_and_every_finding_has_a_place(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(case.parent)
    code, output = run("validate", "--output-format", "json", case.name)
    findings = json.loads(output)["findings"]
    assert findings
    assert code in (0, 1)
    for finding in findings:
        assert finding["code"] in RULES
        assert finding["location"]
        assert finding["message"][0].islower() or finding["message"][0] in "`1234567890"
        assert not finding["message"].endswith(".")


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.stem)
def test_a_valid_case_is_clean_in_both_modes(case: Path) -> None:
    assert run("validate", "--error-on-warning", str(case)) == (0, "No problems in 1 file.\n")
    code, output = run("validate", "--as-librechat", "--output-format", "json", str(case))
    assert code == 0
    assert json.loads(output)["files"] == [{"file": str(case), "ok": True, "outcome": "starts", "issues": []}]
