"""`validate`, `explain` and `schema`: everything about a librechat.yaml that needs no memory to be opened."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memagent.cli import ExitCode
from memagent.cli.files import STDIN, STDIN_NAME, Input, Trouble, read_inputs, reason, replace
from memagent.errors import BadRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memagent.config.document import Document
    from memagent.config.findings import Finding
    from memagent.config.librechat.verdict import Verdict

HUMAN_FORMATS = ("text", "concise")
FORMATS = (*HUMAN_FORMATS, "json", "sarif", "github")


@dataclass(frozen=True, slots=True)
class Options:
    """One command line of `validate`. `check_env` says that `environ` is the server's, and not just this process's."""

    as_librechat: bool
    output_format: str
    color: bool
    error_on_warning: bool
    exit_zero: bool
    fix: bool
    diff: bool
    environ: Mapping[str, str]
    check_env: bool


@dataclass(slots=True)
class Checked:
    """One file and everything said about it."""

    document: Document
    verdict: Verdict
    findings: tuple[Finding, ...]
    data: bytes


@click.command()
@click.argument("files", nargs=-1, type=click.Path(allow_dash=True))
@click.option("--as-librechat", is_flag=True, help="LibreChat's own verdict and nothing stricter.")
@click.option(
    "--output-format",
    type=click.Choice(FORMATS),
    help="How findings are printed; text if not given, github inside GitHub Actions.",
)
@click.option(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    help="auto: on a terminal, without NO_COLOR.",
)
@click.option("--error-on-warning", is_flag=True, help="Exit 1 for warnings too.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever was found.")
@click.option(
    "--fix", is_flag=True, help="Mend in place what is certain: key spelling, booleans, the version's quotes."
)
@click.option("--diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@click.option(
    "--env-file",
    "env_files",
    multiple=True,
    type=click.Path(),
    help="The server's .env: report variables it does not set.",
)
@click.option(
    "--check-env", is_flag=True, help="Report variables that this process's environment does not set."
)
@click.pass_context
def validate(context: click.Context, /, files: tuple[str, ...], **chosen: Any) -> None:
    """Check librechat.yaml files: each mistake at its place, what LibreChat does with it, and how to mend it.

    FILES are files, directories (searched for librechat*.yaml and librechat*.yml) and - for stdin; the current directory
    if none is given. Exit codes: 0 no errors, 1 errors, 2 something could not be read.
    """
    options = _options(context.find_root().obj or {}, files, **chosen)
    inputs = list(read_inputs(files or (".",), stdin=sys.stdin.buffer))
    checked = [_check(one, options) for one in inputs if isinstance(one, Input)]
    troubles = [one.text for one in inputs if isinstance(one, Trouble)]
    if options.diff:
        _print(_differences(checked, options))
    else:
        if options.fix:
            checked = [_mend(one, options, troubles) for one in checked]
        if checked or options.output_format not in HUMAN_FORMATS:
            _print(_report(checked, options))
    for trouble in troubles:
        click.echo(f"memagent: {trouble}", err=True)
    context.exit(_exit_code(checked, options, in_trouble=bool(troubles)))


def _options(
    environ: Mapping[str, str],
    files: tuple[str, ...],
    *,
    output_format: str | None,
    color: str,
    env_files: tuple[str, ...],
    check_env: bool,
    **flags: bool,
) -> Options:
    if flags["fix"] and STDIN in files and not flags["diff"]:
        raise click.UsageError("--fix needs files to write to; --diff shows the repairs of stdin")
    known: dict[str, str] = {}
    for path in env_files:
        known |= _read_env_file(path)
    if check_env or not env_files:
        known |= environ
    automatic = "github" if environ.get("GITHUB_ACTIONS") == "true" else "text"
    return Options(
        output_format=output_format or automatic,
        color=_wants_color(color, environ),
        environ=known,
        check_env=check_env or bool(env_files),
        **flags,
    )


def _wants_color(color: str, environ: Mapping[str, str]) -> bool:
    if color == "auto":
        return sys.stdout.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return color == "always"


def _read_env_file(path: str) -> dict[str, str]:
    from dotenv import dotenv_values  # noqa: PLC0415  only who asks for it waits for it
    from dotenv.parser import parse_stream  # noqa: PLC0415

    try:
        with Path(path).open(encoding="utf-8") as file:
            bad = next((line for line in parse_stream(file) if line.error), None)
        if bad:
            raise BadRequest(f"`{path}` line {bad.original.line} is not `NAME=value`")
        return {name: value or "" for name, value in dotenv_values(path, encoding="utf-8").items()}
    except OSError as fault:
        raise BadRequest(f"cannot read `{path}`: {reason(fault)}") from fault
    except UnicodeDecodeError as fault:
        raise BadRequest(f"`{path}` is not UTF-8") from fault


def _check(one: Input, options: Options) -> Checked:
    from memagent.config.check import check  # noqa: PLC0415  `explain` and `schema` do without
    from memagent.config.document import parse  # noqa: PLC0415
    from memagent.config.findings import LibreChat  # noqa: PLC0415
    from memagent.config.librechat.verdict import verdict  # noqa: PLC0415

    document = parse(one.data, one.name)
    judged = verdict(document, options.environ)
    findings = check(document, judged, environ=options.environ, check_env=options.check_env)
    if options.as_librechat:
        findings = tuple(finding for finding in findings if finding.librechat is LibreChat.REJECTS)
    return Checked(document, judged, findings, one.data)


def _mend(checked: Checked, options: Options, troubles: list[str]) -> Checked:
    """Write the repaired file if it reads better than before, and check what it became."""
    data, made = _repaired(checked, options)
    if not made:
        return checked
    try:
        replace(checked.document.file, data)
    except OSError as fault:
        troubles.append(f"cannot write `{checked.document.file}`: {reason(fault)}")
        return checked
    click.echo(f"memagent: mended {made} in `{checked.document.file}`", err=True)
    return _check(Input(checked.document.file, data), options)


def _repaired(checked: Checked, options: Options) -> tuple[bytes, int]:
    from memagent.config.repair import readable_elsewhere, repaired  # noqa: PLC0415

    text, made = repaired(checked.document.text, checked.findings)
    data = text.encode("utf-8-sig" if checked.document.bom else "utf-8")
    if made:
        mended = _check(Input(checked.document.file, data), options)
        worse = mended.document.root is None or (checked.verdict.ok and not mended.verdict.ok)
        if worse or (readable_elsewhere(checked.document.text) and not readable_elsewhere(text)):
            return checked.data, 0
    return data, made


def _differences(checked: Sequence[Checked], options: Options) -> str:
    """A unified diff of the repairs, its secrets hidden."""
    from difflib import unified_diff  # noqa: PLC0415

    from memagent.config.document import parse  # noqa: PLC0415
    from memagent.config.secrecy import HIDDEN, masked  # noqa: PLC0415
    from memagent.report.text import split_lines  # noqa: PLC0415

    rows: list[str] = []
    for one in checked:
        data, made = _repaired(one, options)
        if made:
            name = one.document.file
            before, after = (
                split_lines(masked(document).replace(HIDDEN, ""))
                for document in (one.document, parse(data, name))
            )
            rows += unified_diff(before, after, name, name, "", "mended", lineterm="")
    return "".join(f"{row}\n" for row in rows)


def _report(checked: Sequence[Checked], options: Options) -> str:
    findings = sorted(
        (finding for one in checked for finding in one.findings), key=lambda finding: finding.sort_key()
    )
    if options.output_format in HUMAN_FORMATS:
        return _for_people(checked, findings, options)
    from memagent.report import machine  # noqa: PLC0415

    if options.output_format == "sarif":
        from memagent import __version__  # noqa: PLC0415

        return machine.to_sarif(findings, version=__version__)
    if options.output_format == "github":
        return machine.to_github(findings)
    if options.as_librechat:
        return machine.dump(
            {"version": machine.FORMAT_VERSION, "files": [_verdict_json(one) for one in checked]}
        )
    return machine.to_json(findings, files=len(checked))


def _for_people(checked: Sequence[Checked], findings: Sequence[Finding], options: Options) -> str:
    from memagent.config.secrecy import masked  # noqa: PLC0415
    from memagent.report import text  # noqa: PLC0415

    if options.output_format == "concise":
        report = text.concise(findings, files=len(checked), color=options.color)
    else:
        with_findings = {finding.file for finding in findings}
        sources = {
            one.document.file: masked(one.document) for one in checked if one.document.file in with_findings
        }
        report = text.full(findings, sources=sources, files=len(checked), color=options.color)
    if not options.as_librechat:
        return report
    return report + "".join(f"{one.document.file}: {OUTCOMES[str(one.verdict.outcome)]}\n" for one in checked)


OUTCOMES = {
    "starts": "LibreChat starts with this file",
    "defaults": "LibreChat starts with its defaults and leaves this whole file unread",
    "exits": "LibreChat says what is wrong and exits",
    "crashes": "LibreChat crashes",
}


def _verdict_json(one: Checked) -> dict[str, Any]:
    """The verdict as the reference gives it: `ok` and `issues` are the schema's, the outcome the server's."""
    name = STDIN if one.document.file == STDIN_NAME else one.document.file
    issues = [
        {"path": list(issue.path), "code": issue.code, "message": issue.message}
        for issue in one.verdict.schema_issues
    ]
    return {"file": name, "ok": one.verdict.accepted, "outcome": str(one.verdict.outcome), "issues": issues}


def _exit_code(checked: Sequence[Checked], options: Options, *, in_trouble: bool) -> ExitCode:
    from memagent.config.findings import Level  # noqa: PLC0415

    if in_trouble:
        return ExitCode.CANNOT_RUN
    if options.exit_zero:
        return ExitCode.OK
    levels = {finding.level for one in checked for finding in one.findings}
    failed = Level.ERROR in levels or (options.error_on_warning and Level.WARNING in levels)
    refused = options.as_librechat and not all(one.verdict.ok for one in checked)
    return ExitCode.FINDINGS if failed or refused else ExitCode.OK


def _print(text: str) -> None:
    """UTF-8 whatever the locale: a finding may quote any character, and must not fail on it."""
    if text:
        click.echo(text.encode("utf-8", "backslashreplace"), nl=False)


@click.command()
@click.argument("codes", nargs=-1)
def explain(codes: tuple[str, ...]) -> None:
    """Explain findings by code (MEM101) or name (unknown-key); list them all if none is given."""
    from memagent.config.rules import RULES, find  # noqa: PLC0415
    from memagent.config.spelling import meant  # noqa: PLC0415

    if not codes:
        _print(
            "".join(
                f"{rule.code}  {rule.name:<30} {rule.level:<8} {rule.summary}\n" for rule in RULES.values()
            )
        )
    for code in codes:
        rule = find(code)
        if rule is None:
            near = meant(code, [*RULES, *(rule.name for rule in RULES.values())])
            hint = (
                f"; one with a similar name exists: `{near.name}`"
                if near
                else "; `memagent explain` lists them all"
            )
            raise BadRequest(f"no finding is called `{code}`{hint}")
        _print(f"{rule.code} {rule.name} ({rule.level}): {rule.summary}\n\n{rule.explanation}\n")


@click.command()
@click.argument("name", type=click.Choice(["memagent", "librechat", "memory", "turn"]), default="memagent")
@click.option("--write", is_flag=True, help="Write all of them below schemas/ instead of printing one.")
def schema(name: str, *, write: bool) -> None:
    """Print a JSON Schema of librechat.yaml, which gives editors completion and first checks, or of a turn.

    `memagent` refuses unknown keys where memagent does, `librechat` takes what LibreChat takes, `memory` is for that block.
    `turn` is what a backend hands over: `memagent turn`, and the API.
    """
    from memagent.config.json_schema import json_schemas  # noqa: PLC0415
    from memagent.report.machine import dump  # noqa: PLC0415
    from memagent.turn import turn_schema  # noqa: PLC0415  pydantic

    schemas = json_schemas() | {"turn": turn_schema()}
    if not write:
        _print(dump(schemas[name]))
        return
    for title, document in schemas.items():
        target = Path("schemas") / f"{title}.schema.json"
        try:
            target.parent.mkdir(exist_ok=True)
            target.write_text(dump(document), encoding="utf-8")
        except OSError as fault:
            raise BadRequest(f"cannot write `{target}`: {reason(fault)}") from fault
