"""`memagent validate` as people and machines call it: files in, findings on stdout, faults on stderr, an exit code."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from memagent.cli import ExitCode, cli, run

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parent.parent.parent
CLEAN = 'version: "1.3.17"\n'
BROKEN = 'version: "1.3.17"\nmemory: {tokenLimit: -5}\n'
WARNED = 'version: "1.3.17"\nmemory: {validKeys: [Work-Life]}\n'
ENDPOINT = """\
version: "1.3.17"
endpoints:
  custom:
    - name: Harbour
      apiKey: "${HARBOUR_KEY}"
      baseURL: https://models.example.org/v1
      models: {default: [sail-1]}
"""


def validate(*arguments: str, environ: Mapping[str, str] | None = None, stdin: bytes | None = None) -> Result:
    result = CliRunner().invoke(cli, ["validate", *arguments], obj=environ or {}, input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def codes(result: Result) -> list[str]:
    return [finding["code"] for finding in json.loads(result.stdout)["findings"]]


class TestExitCodes:
    def test_a_clean_file_is_0(self, folder: Path) -> None:
        assert validate(put(folder, "a.yaml", CLEAN)).exit_code == 0

    def test_an_error_is_1(self, folder: Path) -> None:
        assert validate(put(folder, "a.yaml", BROKEN)).exit_code == 1

    def test_a_warning_is_0_unless_asked_for(self, folder: Path) -> None:
        name = put(folder, "a.yaml", WARNED)
        assert validate(name).exit_code == 0
        assert validate("--error-on-warning", name).exit_code == 1

    def test_exit_zero_hides_errors_and_no_trouble(self, folder: Path) -> None:
        name = put(folder, "a.yaml", BROKEN)
        assert validate("--exit-zero", name).exit_code == 0
        assert validate("--exit-zero", name, "missing.yaml").exit_code == 2

    def test_a_missing_file_is_2_and_the_others_are_still_checked(self, folder: Path) -> None:
        result = validate("missing.yaml", put(folder, "a.yaml", BROKEN))
        assert result.exit_code == 2
        assert "MEM311" in result.stdout
        assert result.stderr == "memagent: cannot read `missing.yaml`: no such file or directory\n"

    def test_an_unknown_option_is_2(self) -> None:
        assert run(["validate", "--nonsense"]) == ExitCode.CANNOT_RUN

    def test_a_bug_is_2_and_says_so(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def broken(*_: Any, **__: Any) -> None:
            raise RuntimeError("plain-words-nobody-may-see")

        monkeypatch.setattr(cli, "main", broken)
        assert run([]) == ExitCode.CANNOT_RUN
        said = capsys.readouterr().err
        assert "this is a bug in memagent" in said
        assert "RuntimeError" in said
        assert "nobody-may-see" not in said
        assert "Traceback" not in said

    def test_ctrl_c_is_130(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(cli, "main", interrupted)
        assert run([]) == ExitCode.INTERRUPTED


class TestInputs:
    def test_stdin_is_a_file_called_dash(self) -> None:
        result = validate("--output-format", "json", "-", stdin=BROKEN.encode())
        assert codes(result) == ["MEM311"]
        assert json.loads(result.stdout)["findings"][0]["filename"] == "<stdin>"

    def test_a_directory_is_searched_for_configurations(self, folder: Path) -> None:
        for name in (
            "librechat.yaml",
            "deep/er/librechat-prod.yml",
            "other.yaml",
            ".hidden/librechat.yaml",
            "node_modules/librechat.yaml",
        ):
            put(folder, name, BROKEN)
        result = validate("--output-format", "json", ".")
        assert [f["filename"] for f in json.loads(result.stdout)["findings"]] == [
            "deep/er/librechat-prod.yml",
            "librechat.yaml",
        ]

    def test_without_a_file_the_current_directory_is_searched(self, folder: Path) -> None:
        put(folder, "librechat.yaml", BROKEN)
        assert validate().exit_code == 1

    def test_a_directory_without_a_configuration_is_2(self, folder: Path) -> None:
        result = validate(".")
        assert result.exit_code == 2
        assert "no librechat*.yaml" in result.stderr

    def test_a_file_named_twice_is_checked_once(self, folder: Path) -> None:
        name = put(folder, "librechat.yaml", BROKEN)
        assert codes(validate("--output-format", "json", name, ".", name)) == ["MEM311"]

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"\xff\xfe\x00",
            b"\x00" * 10,
            b"\xef\xbb\xbfversion: '1.3.17'\n",
            b"[" * 5000,
            b"a: &a [*a]",
            "🙂: [".encode(),
            b"%",
            b"- - -\n\t-",
        ],
    )
    def test_no_bytes_make_it_fall_over(self, folder: Path, data: bytes) -> None:
        name = put(folder, "a.yaml", data)
        for output_format in ("text", "json", "sarif", "github", "concise"):
            assert validate("--output-format", output_format, name).exit_code in (0, 1)

    def test_a_file_too_large_is_a_finding(self, folder: Path) -> None:
        assert codes(validate("--output-format", "json", put(folder, "a.yaml", b"#" * (6 * 2**20)))) == [
            "MEM003"
        ]


class TestOutput:
    def test_inside_github_actions_findings_are_annotations(self, folder: Path) -> None:
        result = validate(put(folder, "a.yaml", BROKEN), environ={"GITHUB_ACTIONS": "true"})
        assert result.stdout.startswith("::error title=memagent (MEM311),file=a.yaml,line=2,")

    def test_machine_formats_of_a_clean_file_are_empty_documents(self, folder: Path) -> None:
        name = put(folder, "a.yaml", CLEAN)
        assert json.loads(validate("--output-format", "json", name).stdout)["findings"] == []
        assert json.loads(validate("--output-format", "sarif", name).stdout)["runs"][0]["results"] == []
        assert validate("--output-format", "github", name).stdout == ""

    def test_color_is_for_terminals_unless_forced(self, folder: Path) -> None:
        name = put(folder, "a.yaml", BROKEN)
        assert "\x1b[" not in validate(name).stdout
        assert "\x1b[1;31merror[MEM311]" in validate("--color", "always", name).stdout
        assert "\x1b[" not in validate("--color", "never", name).stdout

    def test_no_color_and_a_dumb_terminal_are_respected(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from memagent.cli import validate as module

        monkeypatch.setattr(module.sys.stdout, "isatty", lambda: True, raising=False)
        assert module._wants_color("auto", {})
        assert not module._wants_color("auto", {"NO_COLOR": "1"})
        assert not module._wants_color("auto", {"TERM": "dumb"})

    def test_the_same_input_gives_the_same_bytes(self, folder: Path) -> None:
        name = put(folder, "a.yaml", (ROOT / "tests/cases/invalid/custom-endpoints.yaml").read_text())
        assert len({validate("--output-format", "sarif", name).stdout for _ in range(3)}) == 1

    def test_a_hostile_file_name_cannot_write_to_the_terminal(self, folder: Path) -> None:
        name = put(folder, "a\x1b[2J\n.yaml", BROKEN)
        assert "\x1b" not in validate(name).stdout
        assert validate("--output-format", "github", name).stdout.count("\n") == 1


class TestEnvironment:
    def test_nothing_is_said_about_variables_while_nothing_is_known(self, folder: Path) -> None:
        assert validate(put(folder, "a.yaml", ENDPOINT)).exit_code == 0

    def test_check_env_looks_at_the_process(self, folder: Path) -> None:
        name = put(folder, "a.yaml", ENDPOINT)
        assert codes(validate("--output-format", "json", "--check-env", name)) == ["MEM403"]
        assert validate("--check-env", name, environ={"HARBOUR_KEY": "x"}).exit_code == 0
        assert "is empty" in validate("--check-env", name, environ={"HARBOUR_KEY": ""}).stdout

    def test_an_env_file_is_the_servers_environment(self, folder: Path) -> None:
        name = put(folder, "a.yaml", ENDPOINT)
        put(folder, "good.env", "# keys\nexport HARBOUR_KEY='abc'\n")
        put(folder, "bad.env", "OTHER=1\n")
        assert validate("--env-file", "good.env", name).exit_code == 0
        assert validate("--env-file", "bad.env", name, environ={"HARBOUR_KEY": "x"}).exit_code == 1

    def test_an_env_file_that_cannot_be_read_is_2(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        put(folder, "a.yaml", ENDPOINT)
        put(folder, "bad.env", "this is no variable\n")
        assert run(["validate", "--env-file", "missing.env", "a.yaml"]) == 2
        assert run(["validate", "--env-file", "bad.env", "a.yaml"]) == 2
        said = capsys.readouterr().err
        assert "cannot read `missing.env`" in said
        assert "`bad.env` line 1 is not `NAME=value`" in said


class TestFix:
    TEXT = (
        "# kept\r\n"
        "version: 1.3  # a number\r\n"
        "memory:\r\n"
        "    disabled:   no\r\n"
        "    'validkeys': &keys [a, b]   # quotes and anchors stay\r\n"
        "    token_limit: 2000\r\n"
    )

    def test_certain_faults_are_mended_and_nothing_else_changes(self, folder: Path) -> None:
        name = put(folder, "a.yaml", b"\xef\xbb\xbf" + self.TEXT.encode())
        result = validate("--fix", name)
        assert result.exit_code == 0, result.output
        assert (folder / name).read_bytes() == b"\xef\xbb\xbf" + (
            self.TEXT.replace("1.3 ", '"1.3" ')
            .replace("  no\r", "  false\r")
            .replace("validkeys", "validKeys")
            .replace("token_limit", "tokenLimit")
        ).encode()
        assert result.stderr == "memagent: mended 4 in `a.yaml`\n"

    def test_fixing_twice_changes_nothing_more(self, folder: Path) -> None:
        name = put(folder, "a.yaml", self.TEXT)
        validate("--fix", name)
        before = (folder / name).read_bytes()
        assert validate("--fix", name).stderr == ""
        assert (folder / name).read_bytes() == before

    def test_a_diff_shows_the_repairs_and_writes_nothing(self, folder: Path) -> None:
        name = put(folder, "a.yaml", self.TEXT)
        result = validate("--diff", name)
        assert '-version: 1.3  # a number\n+version: "1.3"  # a number\n' in result.stdout
        assert result.exit_code == 1
        assert (folder / name).read_bytes() == self.TEXT.encode()

    def test_a_key_is_not_renamed_onto_one_that_is_there(self, folder: Path) -> None:
        text = 'version: "1.3.17"\nmemory:\n  validkeys: [a]\n  validKeys: [b]\n'
        name = put(folder, "a.yaml", text)
        assert validate("--fix", name).exit_code == 1
        assert (folder / name).read_text() == text

    def test_two_spellings_of_one_key_do_not_become_a_duplicate(self, folder: Path) -> None:
        name = put(folder, "a.yaml", 'version: "1.3.17"\nmemory:\n  validkeys: [a]\n  valid_keys: [b]\n')
        validate("--fix", name)
        assert "MEM102" not in validate(name).stdout

    def test_the_mode_of_the_file_and_a_link_to_it_stay(self, folder: Path) -> None:
        put(folder, "real.yaml", self.TEXT)
        (folder / "real.yaml").chmod(0o640)
        (folder / "link.yaml").symlink_to("real.yaml")
        validate("--fix", "link.yaml")
        assert (folder / "link.yaml").is_symlink()
        assert stat.S_IMODE((folder / "real.yaml").stat().st_mode) == 0o640
        assert "validKeys" in (folder / "real.yaml").read_text()
        assert sorted(path.name for path in folder.iterdir()) == ["link.yaml", "real.yaml"]

    def test_stdin_cannot_be_mended_in_place(self) -> None:
        assert validate("--fix", "-", stdin=b"").exit_code == 2
        assert validate("--diff", "-", stdin=self.TEXT.encode()).exit_code == 1


class TestSecrets:
    SECRET = "plain-words-nobody-may-see"
    TEXT = f"""\
version: "1.3.17"
endpoints:
  custom:
    - name: Harbour
      apikey: {SECRET}
      apiKey: [{SECRET}]
      baseURL: "https://harbour:{SECRET}@models.example.org"
      models: {{default: [sail-1]}}
      headers:
        authorization: Bearer {SECRET}
        x-number: {{a: {SECRET}}}
mcpServers:
  a:
    url: "https://harbour:{SECRET}@"
    headers: {{authorization: [{SECRET}]}}
"""

    @pytest.mark.parametrize("output_format", ["text", "concise", "json", "sarif", "github"])
    @pytest.mark.parametrize("mode", [(), ("--as-librechat",), ("--diff",), ("--check-env",)])
    def test_no_output_shows_one(self, folder: Path, output_format: str, mode: tuple[str, ...]) -> None:
        broken = [
            f"apiKey: *{self.SECRET}\n",
            f"apiKey: !{self.SECRET}\n",
            f"apiKey: '{self.SECRET}\n",
            f"apiKey: a: {self.SECRET}\n",
        ]
        texts = [self.TEXT, self.TEXT + "broken: [\n", *broken]
        for name, text in ((f"{number}.yaml", text) for number, text in enumerate(texts)):
            result = validate("--output-format", output_format, *mode, put(folder, name, text))
            assert self.SECRET not in result.output


class TestProcess:
    def call(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)} | options.pop("env", {})
        return subprocess.run(
            [sys.executable, "-m", "memagent", *arguments],
            capture_output=True,
            text=True,
            env=environ,
            check=False,
            **options,
        )

    def test_a_real_process_has_the_exit_codes(self, folder: Path) -> None:
        put(folder, "a.yaml", BROKEN)
        assert self.call("validate", "a.yaml", cwd=folder).returncode == 1
        assert self.call("validate", "b.yaml", cwd=folder).returncode == 2
        assert self.call("explain", "MEM101").returncode == 0
        assert self.call("explain", "MEM999").returncode == 2

    def test_any_character_can_be_printed_in_any_locale(self, folder: Path) -> None:
        put(folder, "a.yaml", 'version: "1.3.17"\nmemory: {validKeys: ["好み"]}\n')
        done = self.call(
            "validate", "a.yaml", cwd=folder, env={"PYTHONIOENCODING": "ascii"}, encoding="utf-8"
        )
        assert done.returncode == 0
        assert "好み" in done.stdout

    def test_validating_loads_nothing_heavy(self, folder: Path) -> None:
        put(folder, "a.yaml", ENDPOINT + BROKEN.replace('version: "1.3.17"\n', ""))
        script = (
            "import sys\nfrom memagent.cli import run\nrun(['validate', 'a.yaml'])\n"
            "heavy = {'litellm', 'redis', 'redisvl', 'numpy', 'pydantic', 'jsonschema', 'rich', 'ruamel', 'asyncio', 'jinja2'}\n"
            "print('loaded', sorted(heavy & set(sys.modules)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            cwd=folder,
            env={"PYTHONPATH": str(ROOT)},
            check=False,
        )
        assert "MEM311" in done.stdout
        assert "loaded []" in done.stdout


class TestExplain:
    def test_a_code_and_a_name_explain_the_same(self) -> None:
        runner = CliRunner()
        by_code = runner.invoke(cli, ["explain", "mem101"])
        assert by_code.stdout == runner.invoke(cli, ["explain", "unknown-key"]).stdout
        assert by_code.stdout.startswith("MEM101 unknown-key (error): a key that nobody reads\n\n")

    def test_without_a_code_all_are_listed(self) -> None:
        assert len(CliRunner().invoke(cli, ["explain"]).stdout.splitlines()) > 40

    def test_an_unknown_code_names_a_near_one(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["explain", "unknwon-key"]) == 2
        assert "`unknown-key`" in capsys.readouterr().err


class TestContinuousIntegration:
    def script(self, step: str) -> str:
        found = re.search(
            rf"- name: {step}\n.*?run: \|\n((?:        .*\n|\n)+)",
            (ROOT / "action.yml").read_text(),
            re.DOTALL,
        )
        assert found
        return re.sub("^ {8}", "", found[1], flags=re.MULTILINE)

    def test_the_action_runs_its_inputs_as_words(self, folder: Path) -> None:
        put(folder, "librechat.yaml", BROKEN)
        put(folder, "with space.yaml", CLEAN)
        (folder / "bin").mkdir()
        command = folder / "bin" / "memagent"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m memagent "$@"\n')
        command.chmod(0o755)
        environ = {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "FILES": "with space.yaml\nlibrechat.yaml\n",
            "ARGS": "--error-on-warning --color never",
            "OUTPUT_FORMAT": "github",
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", self.script("Validate")],
            capture_output=True, text=True, env=environ, check=False,
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert done.stdout.startswith("::error title=memagent (MEM311),file=librechat.yaml,")
        environ["FILES"] = "$(touch owned)"
        subprocess.run(
            ["bash", "-eo", "pipefail", "-c", self.script("Validate")],
            capture_output=True,
            env=environ,
            check=False,
        )
        assert not (folder / "owned").exists()

    def test_the_install_step_is_valid_shell(self) -> None:
        subprocess.run(["bash", "-n", "-c", self.script("Install memagent")], check=True)

    def test_hooks_match_the_names_that_a_directory_search_finds(self) -> None:
        text = (ROOT / ".pre-commit-hooks.yaml").read_text()
        patterns = re.findall(r"files: (.+)", text)
        assert len(patterns) == 2
        for pattern in patterns:
            assert re.search(pattern, "deploy/librechat.prod.yml")
            assert not re.search(pattern, "my-librechat.yaml")
        assert re.findall(r"entry: (.+)", text) == ["memagent validate", "memagent validate --fix"]
