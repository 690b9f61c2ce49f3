"""Rules of single fields that a value breaks: bounds, formats, and what else a schema can ask."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memagent.config.check.draft import dotted
from memagent.config.findings import LibreChat
from memagent.config.nodes import Mapping, Scalar

if TYPE_CHECKING:
    from memagent.config.check.draft import Draft, Path

REJECTS = LibreChat.REJECTS

_BOUND = re.compile(
    r"(?P<what>Number|Array|String) must (?:be|contain) (?P<rule>.+?)(?P<limit>-?[\d.]+)(?: .*)?\Z"
)

RULES_IN_OUR_WORDS = (
    (
        "default endpoint",
        "MEM207",
        "is the name of a built-in endpoint",
        "choose another name; upper and lower case count",
    ),
    (
        "endpoint is required unless",
        "MEM214",
        "has neither an `endpoint` nor an `agent_id`",
        "add one of the two",
    ),
    ("include a port", "MEM206", "has no port", "write it as `host:port`, for example `localhost:11434`"),
    ("private IP space", "MEM206", "is a public address, and only private ones may be listed", "remove it"),
    (
        "requires both authorization_url",
        "MEM214",
        "needs `authorization_url` and `token_url` beside it",
        "add them",
    ),
    ("client_secret requires client_id", "MEM214", "needs `client_id` beside it", "add it"),
    (
        "At least one `endpoints` field",
        "MEM105",
        "names no endpoint",
        "remove `endpoints`, or put one under it",
    ),
    (
        "Title must start",
        "MEM206",
        "is not plain words",
        "use letters, digits, spaces, hyphens and apostrophes, and a letter or digit first",
    ),
)
"""A piece of LibreChat's own sentence, and what to say instead of the whole of it."""


def report_bound(draft: Draft, path: Path, message: str) -> None:
    match = _BOUND.match(message)
    if match is None:
        report_rule(draft, path, message)
        return
    rule = match["rule"].strip()
    if match["what"] == "Number":
        words = {"greater than": "above", "less than": "below", "greater than or equal to": "at least"}
        limit = f"{words.get(rule, 'at most')} {match['limit']}"
        code, text = "MEM202", f"`{dotted(path)}` takes a number {limit}, found {draft.found(path)}"
    else:
        noun = "item" if match["what"] == "Array" else "character"
        plural = "" if match["limit"] == "1" else "s"
        found = len(draft.items(path)) if noun == "item" else len(draft.text(path) or "")
        code = "MEM203"
        text = f"`{dotted(path)}` takes {rule} {match['limit']} {noun}{plural}, found {found or 'none'}"
    draft.add(code, path, text, span=draft.value_span(path), librechat=REJECTS)


def report_not_finite(draft: Draft, path: Path, _message: str) -> None:
    draft.add(
        "MEM202",
        path,
        f"`{dotted(path)}` takes a finite number, found {draft.found(path)}",
        span=draft.value_span(path),
        librechat=REJECTS,
    )


def report_rule(draft: Draft, path: Path, message: str) -> None:
    """A rule of one field, or of several: in our words where it is a frequent one, else in LibreChat's."""
    if path == ("endpoints",) and any(blamed[:1] == path for blamed in draft.blamed):
        return  # the one key under it was refused: nothing more to say
    known = next((row for row in RULES_IN_OUR_WORDS if row[0] in message), None)
    subject = path[:-1] if path[-1:] == ("endpoint",) else path
    node = draft.node(path)
    code = "MEM214" if node is None or isinstance(node, Mapping) else "MEM206"
    said, hint = f"breaks a rule: {lowered(message)}", ""
    if known:
        _, code, said, hint = known
    draft.add(
        code,
        path,
        f"`{dotted(subject) or 'the file'}` {said}",
        span=draft.value_span(path) if isinstance(node, Scalar) else draft.key_span(subject),
        librechat=REJECTS,
        helps=(hint,) if hint else (),
    )


def report_parameter(draft: Draft, path: Path, message: str) -> None:
    draft.add(
        "MEM213",
        path,
        f"`{dotted(path)}` cannot be built: {lowered(message)}",
        librechat=REJECTS,
        notes=("the schema allows it, and LibreChat crashes at startup",),
    )


def lowered(message: str) -> str:
    """A foreign sentence as the end of one of ours."""
    first = message.strip().rstrip(".")
    return first[:1].lower() + first[1:] if first[1:2].islower() else first
