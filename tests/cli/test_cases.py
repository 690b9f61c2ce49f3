"""A case is a file: every one in `tests/cases/valid` is clean, every one in `tests/cases/invalid` prints what stands beside it.

Run as a program, this writes the files beside the invalid cases anew; read what changed before you keep it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

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


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, arguments, obj={})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def printed(case: Path) -> str:
    """What every command prints for a case, with its exit code."""
    parts = []
    for command in COMMANDS:
        code, output = run(*command, case.name)
        parts.append(f"$ memagent {' '.join(command)} {case.name}\n{output}exit {code}\n")
    return "\n".join(parts)


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.stem)
def test_an_invalid_case_prints_what_stands_beside_it(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(case.parent)
    expected = case.with_suffix(".out").read_text(encoding="utf-8")
    assert printed(case) == expected, "if that is meant: python tests/cli/test_cases.py"


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
        assert finding["message"][0].islower() or finding["message"][0] in "`1234567890{"
        assert not finding["message"].endswith(".")


@pytest.mark.parametrize("case", VALID, ids=lambda case: case.stem)
def test_a_valid_case_is_clean_in_both_modes(case: Path) -> None:
    assert run("validate", "--error-on-warning", str(case)) == (0, "No problems in 1 file.\n")
    code, output = run("validate", "--as-librechat", "--output-format", "json", str(case))
    assert code == 0
    assert json.loads(output)["files"] == [{"file": str(case), "ok": True, "outcome": "starts", "issues": []}]


if __name__ == "__main__":
    os.chdir(CASES / "invalid")
    for each in INVALID:
        each.with_suffix(".out").write_text(printed(each), encoding="utf-8")
