"""Findings for programs: JSON, SARIF 2.1.0 and GitHub's workflow commands. Three pure functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from memagent.config.findings import Level
from memagent.config.rules import RULES
from memagent.report.text import CONSEQUENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.config.findings import Finding, Position, Span

FORMAT_VERSION = 1
"""Rises when a field changes its meaning or goes; new fields do not raise it."""

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_json(findings: Sequence[Finding], *, files: int) -> str:
    errors = sum(finding.level is Level.ERROR for finding in findings)
    summary = {"files": files, "errors": errors, "warnings": len(findings) - errors}
    return dump({"version": FORMAT_VERSION, "summary": summary, "findings": [_json(one) for one in findings]})


def to_sarif(findings: Sequence[Finding], *, version: str) -> str:
    used = sorted({finding.code for finding in findings})
    driver = {"name": "memagent", "version": version, "rules": [_sarif_rule(code) for code in used]}
    seen: dict[str, int] = {}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(finding, used, seen) for finding in findings],
    }
    return dump({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def to_github(findings: Sequence[Finding]) -> str:
    return "".join(f"{_github(finding)}\n" for finding in findings)


def dump(document: Any) -> str:
    """JSON as our commands print it: UTF-8, two spaces, one closing line break; lone surrogates stay escaped."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def json_path(path: Sequence[str | int]) -> str:
    """`$.endpoints.custom[0].name`; names that are no identifier stand in brackets, quoted."""
    parts = ["$"]
    for part in path:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        elif part.isidentifier():
            parts.append(f".{part}")
        else:
            parts.append(f"[{json.dumps(part, ensure_ascii=False)}]")
    return "".join(parts)


def _json(finding: Finding) -> dict[str, Any]:
    rule = RULES[finding.code]
    return {
        "code": finding.code,
        "name": rule.name,
        "severity": str(finding.level),
        "librechat": str(finding.librechat),
        "message": finding.message,
        "path": json_path(finding.path),
        "filename": finding.file,
        "location": _position(finding.span.start) if finding.span else None,
        "end_location": _position(finding.span.end) if finding.span else None,
        "help": "\n".join(finding.helps) or None,
        "notes": list(finding.notes),
        "related": [
            {
                "message": label.text,
                "location": _position(label.span.start),
                "end_location": _position(label.span.end),
            }
            for label in finding.labels
        ],
        "fix": finding.fix.summary if finding.fix else None,
        "url": rule.url,
    }


def _position(position: Position) -> dict[str, int]:
    return {"row": position.line, "column": position.column}


def _sarif_rule(code: str) -> dict[str, Any]:
    rule = RULES[code]
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation.replace("`", "").split("\n\n", maxsplit=1)[0]},
        "help": {"text": rule.explanation, "markdown": rule.explanation},
        "defaultConfiguration": {"level": str(rule.level)},
    }


def _sarif_result(finding: Finding, used: Sequence[str], seen: dict[str, int]) -> dict[str, Any]:
    path = json_path(finding.path)
    fingerprint = f"{finding.file}:{finding.code}:{path}"
    seen[fingerprint] = seen.get(fingerprint, 0) + 1
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": used.index(finding.code),
        "level": str(finding.level),
        "message": {"text": "\n".join((finding.message, *finding.helps, *finding.notes))},
        "locations": [_sarif_location(finding.file, finding.span, path)],
        # Code and document path, not the line: a moved line stays the same alert.
        "partialFingerprints": {"documentPath/v1": f"{finding.code}:{path}:{seen[fingerprint]}"},
        "properties": {"librechat": str(finding.librechat)},
    }
    if finding.labels:
        result["relatedLocations"] = [
            _sarif_location(finding.file, label.span, None) | {"message": {"text": label.text}}
            for label in finding.labels
        ]
    return result


def _sarif_location(file: str, span: Span | None, path: str | None) -> dict[str, Any]:
    from urllib.parse import quote  # noqa: PLC0415  only this format needs it

    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(file.replace("\\", "/"))}}
    if span:
        physical["region"] = {
            "startLine": span.start.line,
            "startColumn": span.start.column,
            "endLine": span.end.line,
            "endColumn": span.end.column,
        }
    location: dict[str, Any] = {"physicalLocation": physical}
    if path:
        location["logicalLocations"] = [{"fullyQualifiedName": path}]
    return location


def _github(finding: Finding) -> str:
    properties = {"title": f"memagent ({finding.code})", "file": finding.file}
    span = finding.span
    if span:
        properties["line"] = str(span.start.line)
        if span.start.line == span.end.line:
            properties |= {
                "col": str(span.start.column),
                "endLine": str(span.end.line),
                "endColumn": str(span.end.column),
            }
        else:
            # GitHub refuses columns where the lines differ.
            properties["endLine"] = str(span.end.line)
    remarks = [*(f"help: {text}" for text in finding.helps), *(f"note: {text}" for text in finding.notes)]
    text = "\n".join((finding.message, *remarks, f"librechat: {CONSEQUENCE[finding.librechat]}"))
    listed = ",".join(f"{name}={_escape(value, also=':,')}" for name, value in properties.items())
    return f"::{finding.level} {listed}::{_escape(text)}"


def _escape(text: str, *, also: str = "") -> str:
    """GitHub reads `%`, CR and LF as syntax, and `:` and `,` inside properties."""
    for char in f"%\r\n{also}":
        text = text.replace(char, f"%{ord(char):02X}")
    return text
