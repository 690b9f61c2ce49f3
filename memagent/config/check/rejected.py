"""What LibreChat's schema rejects, said in our words: one finding for each of its issues."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memagent.config.check import shape as shapes
from memagent.config.check.draft import dotted, inside
from memagent.config.check.fields import (
    lowered,
    report_bound,
    report_not_finite,
    report_parameter,
    report_rule,
)
from memagent.config.check.memory import AGENT, report_incomplete
from memagent.config.check.unions import likely, report_union
from memagent.config.check.unread import report_refused
from memagent.config.check.urls import issues_without_urls, report_no_url
from memagent.config.findings import Fix, LibreChat
from memagent.config.nodes import Mapping, Scalar
from memagent.config.spelling import meant

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Mapping as MappingOf

    from memagent.config.check.draft import Draft, Path
    from memagent.config.librechat.verdict import Verdict
    from memagent.config.zod import Issue

REJECTS = LibreChat.REJECTS

TYPES = {
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "`true` or `false`",
    "array": "a list",
    "object": "a mapping",
    "date": "a date",
}
"""zod's names of types, in the words of the findings."""

BOOLEAN_WORDS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}

CURRENT_VERSION = "1.3.17"
"""The configuration version of the LibreChat release whose schema this is."""

_EXPECTED = re.compile(r"Expected (?P<expected>.+), received (?P<received>.+)\Z", re.DOTALL)
_CHOICES = re.compile(r"'([^']*)'")


def report_verdict(draft: Draft, judged: Verdict, environ: MappingOf[str, str]) -> None:
    """Add a finding for each reason why LibreChat does not start with the file, or not as it is."""
    if not isinstance(draft.document.root, Mapping):
        _report_no_mapping(draft, REJECTS if not judged.ok else LibreChat.ACCEPTS)
        return
    issues = judged.issues
    if not issues and not judged.ok:
        # Nothing was reported because the reading broke off, at a URL or before it began: what else is wrong is said too.
        issues = issues_without_urls(draft, environ)
    for issue in issues:
        report_issue(draft, issue)
    if not judged.ok and not draft.findings:
        draft.add("MEM214", (), f"the file cannot be used: {lowered(judged.reason)}", librechat=REJECTS)


def _report_no_mapping(draft: Draft, librechat: LibreChat) -> None:
    draft.add(
        "MEM201",
        (),
        f"the file takes a mapping of sections, found {draft.found(())}",
        librechat=librechat,
        helps=("start with `version:` in the first column",),
    )


def report_issue(draft: Draft, issue: Issue) -> None:
    """Add the finding for one issue of the schema."""
    path = issue.path
    if draft.is_blamed(path) and issue.code != "unrecognized_keys":
        return
    if issue.code == "invalid_union" and path != AGENT and (meant_ones := likely(draft, issue)):
        for one in meant_ones:
            report_issue(draft, one)
        return
    _REPORTS.get(issue.code, report_rule)(draft, path, issue.message)


def _report_type(draft: Draft, path: Path, message: str) -> None:
    match = _EXPECTED.match(message)
    if match is None:
        _report_missing(draft, path)
        return
    expected, received = match["expected"], match["received"]
    node = draft.node(path)
    raw = node.raw if isinstance(node, Scalar) else ""
    if received == "null":
        _report_empty(draft, path, expected, raw)
    elif path == ("version",) and received == "number":
        _report_version(draft, path, raw)
    elif expected == "boolean" and raw.lower() in BOOLEAN_WORDS:
        _report_boolean_word(draft, path, raw)
    elif received == "string" and "${" in raw and expected in ("boolean", "number", "integer"):
        _report_not_read(draft, path, expected)
    else:
        _report_wrong_type(draft, path, expected, raw)


def in_words(expected: str) -> str:
    """A type or a set of choices as zod writes it, for a message."""
    choices = _CHOICES.findall(expected)
    return f"one of {listed(choices)}" if choices else TYPES.get(expected, expected)


def listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _report_wrong_type(draft: Draft, path: Path, expected: str, raw: str) -> None:
    helps: tuple[str, ...] = ()
    bare = raw.strip("\"'")
    as_meant = r"true|false" if expected == "boolean" else r"-?\d+(\.\d+)?"
    if expected in ("boolean", "number", "integer") and bare != raw and re.fullmatch(as_meant, bare.lower()):
        helps = ("remove the quotes: with them it is a text",)
    elif expected in ("number", "integer") and re.fullmatch(r"-?\d{1,3}([_,' ]\d{3})+", bare):
        helps = (f"write the digits without separators: `{re.sub('[^0-9-]', '', bare)}`",)
    elif expected == "array" and isinstance(draft.node(path), Scalar):
        helps = ("write a list for a single item too: `[…]`",)
    elif expected == "array" and path[-1:] == ("models",):
        helps = ("this endpoint takes a plain list of models, without `default` and `fetch`",)
    elif expected == "string" and raw:
        helps = ("put quotes around it",)
    what = f"`{dotted(path)}`" if path else "the file"
    draft.add(
        "MEM201",
        path,
        f"{what} takes {in_words(expected)}, found {draft.found(path)}",
        span=draft.value_span(path) if raw else None,
        librechat=REJECTS,
        helps=helps,
    )


def _report_missing(draft: Draft, path: Path) -> None:
    parent, name = path[:-1], path[-1]
    helps: tuple[str, ...] = ()
    if path == ("version",):
        helps = (f'add `version: "{CURRENT_VERSION}"` at the top',)
    elif path[:2] == ("endpoints", "custom") and path[-2:] == ("models", "default"):
        helps = ("list at least one model, also with `fetch: true`",)
    elif path[:1] == ("mcpServers",) and name == "args":
        helps = ("add `args: []` if the command takes none",)
    draft.add(
        "MEM103",
        path,
        f"missing key `{name}` {inside(parent)}",
        span=draft.key_span(parent),
        librechat=REJECTS,
        helps=helps,
    )


def _report_empty(draft: Draft, path: Path, expected: str, raw: str) -> None:
    empty = next(
        (shown for value, shown in (({}, "`{}`"), ([], "`[]`")) if shapes.takes(shapes.at(path), value)), None
    )
    empty = empty if path != ("endpoints",) else None  # a rule of its own: not without an endpoint
    written = f" (`{draft.quote(raw)}`)" if raw else ""
    draft.add(
        "MEM105",
        path,
        f"`{dotted(path)}` is empty{written}, expected {in_words(expected)}",
        librechat=REJECTS,
        helps=("comment the key out as well" + (f", or write {empty}" if empty else ""),),
        notes=("a key without a value is `null`, which is not the same as absent",),
    )


def _report_version(draft: Draft, path: Path, raw: str) -> None:
    span = draft.value_span(path)
    draft.add(
        "MEM209",
        path,
        f"`version` is the number `{raw}`, expected a text",
        span=span,
        librechat=REJECTS,
        helps=(f'put quotes around it: `"{raw}"`',),
        fix=Fix(span, f'"{raw}"', "put quotes around the version") if span else None,
    )


def _report_boolean_word(draft: Draft, path: Path, raw: str) -> None:
    span, right = draft.value_span(path), BOOLEAN_WORDS[raw.lower()]
    certain = span is not None and raw.lower() not in ("y", "n")
    draft.add(
        "MEM208",
        path,
        f"`{dotted(path)}` takes `true` or `false`, found the text `{raw}`",
        span=span,
        librechat=REJECTS,
        helps=(f"write `{right}`",),
        notes=("`yes`, `no`, `on` and `off` are plain words in YAML 1.2",),
        fix=Fix(span, right, f"write `{right}`") if span and certain else None,
    )


def _report_not_read(draft: Draft, path: Path, expected: str) -> None:
    draft.add(
        "MEM212",
        path,
        f"`{dotted(path)}` takes {in_words(expected)} and cannot come from a variable",
        span=draft.value_span(path),
        librechat=REJECTS,
        helps=("write the value itself",),
        notes=("LibreChat checks the file before it replaces any `${…}`",),
    )


def _report_choice(draft: Draft, path: Path, message: str) -> None:
    match = re.search(r"(?:Expected|expected) (.+?)(?:, received .*)?\Z", message, re.DOTALL)
    choices = re.findall(r"['\"]([^'\"]*)['\"]", match[1]) if match else []
    written = draft.text(path)
    near = meant(written, choices) if written else None
    absent = draft.node(path) is None
    draft.add(
        "MEM103" if absent else "MEM204",
        path,
        f"`{dotted(path)}` takes {f'one of {listed(choices)}' if len(choices) > 1 else listed(choices) or 'another value'}, "
        f"found {draft.found(path)}",
        span=draft.value_span(path),
        librechat=REJECTS,
        helps=(f"a choice with a similar name exists: `{near.name}`",) if near else (),
    )


def _report_text(draft: Draft, path: Path, message: str) -> None:
    if "url" in message.lower():
        report_no_url(draft, path, unresolved="${" in (draft.text(path) or ""))
    else:
        report_rule(draft, path, message)


def _report_no_form(draft: Draft, path: Path, _message: str) -> None:
    if path == AGENT and draft.mapping(AGENT) is not None:
        before = len(draft.findings)
        _report_agent_types(draft)
        if len(draft.findings) == before:
            report_incomplete(draft)
        draft.blamed.add(AGENT)
    elif path == AGENT:
        _report_type(draft, path, f"Expected object, received {_null_or_other(draft, path)}")
    else:
        report_union(draft, path)


def _null_or_other(draft: Draft, path: Path) -> str:
    node = draft.node(path)
    return "null" if isinstance(node, Scalar) and node.value is None else "other"


def _report_agent_types(draft: Draft) -> None:
    """What keeps both forms of the agent from fitting: LibreChat only says that it is invalid."""
    agent = draft.mapping(AGENT)
    expected = {
        "id": "string",
        "provider": "string",
        "model": "string",
        "instructions": "string",
        "enabled": "boolean",
    }
    for key, entry in agent.entries.items() if agent else ():
        path = (*AGENT, key)
        value = entry.value.value if isinstance(entry.value, Scalar) else ...
        if key in expected and not isinstance(value, bool if expected[key] == "boolean" else str):
            _report_type(
                draft,
                path,
                f"Expected {expected[key]}, received {'null' if value is None else _js_type(entry.value)}",
            )
        elif key == "model_parameters":
            _report_parameters(draft, path)


def _js_type(node: object) -> str:
    if isinstance(node, Scalar):
        return "string" if isinstance(node.value, str) else "number"
    return "object" if isinstance(node, Mapping) else "array"


def _report_parameters(draft: Draft, path: Path) -> None:
    parameters = draft.mapping(path)
    if parameters is None:
        _report_type(draft, path, f"Expected object, received {_null_or_other(draft, path)}")
        return
    for name, entry in parameters.entries.items():
        here = (*path, name)
        if not isinstance(entry.value, Scalar) or not isinstance(entry.value.value, (str, int, float, bool)):
            draft.add(
                "MEM201",
                here,
                f"`{dotted(here)}` takes a text, a number or a boolean, found {draft.found(here)}",
                span=draft.key_span(here),
                librechat=REJECTS,
            )


_REPORTS: dict[str, Callable[[Draft, Path, str], None]] = {
    "invalid_type": _report_type,
    "invalid_literal": _report_choice,
    "invalid_enum_value": _report_choice,
    "invalid_union_discriminator": _report_choice,
    "invalid_union": _report_no_form,
    "unrecognized_keys": report_refused,
    "invalid_string": _report_text,
    "too_small": report_bound,
    "too_big": report_bound,
    "not_finite": report_not_finite,
    "custom_params": report_parameter,
}
