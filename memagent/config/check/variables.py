"""`${NAME}` and `{{NAME}}`: which of them nobody replaces, and which have nothing to be replaced with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memagent.config.check.draft import dotted, strictness
from memagent.config.findings import Level, LibreChat
from memagent.config.placeholders import BODY_FIELDS, OPENID_FIELDS, UNRESOLVABLE, USER_FIELDS
from memagent.config.spelling import meant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memagent.config.check.draft import Draft, Path
    from memagent.config.findings import Span
    from memagent.config.nodes import Scalar

PROMPTS = frozenset(
    {"instructions", "promptPrefix", "prompt", "titlePrompt", "titlePromptTemplate", "updatePrompt"}
)
"""Keys whose text is prose: braces in it are the author's own."""

PROSE = PROMPTS | {
    "description",
    "label",
    "placeholder",
    "modalContent",
    "customWelcome",
    "title",
    "greeting",
}

SPECIAL = ("current_date", "current_datetime", "iso_datetime", "current_user")
"""What LibreChat fills into instructions, in any case and with spaces inside the braces (spec/librechat.md §3.4)."""

HEADER_PLACEHOLDERS = (
    *(f"LIBRECHAT_USER_{name.upper()}" for name in USER_FIELDS),
    "LIBRECHAT_USER_TENANT_ID",
    *(f"LIBRECHAT_BODY_{name}" for name in BODY_FIELDS),
    *(f"LIBRECHAT_OPENID_{name}" for name in OPENID_FIELDS),
    "LIBRECHAT_GRAPH_ACCESS_TOKEN",
)

JOINED = "what starts with `${` and ends with `}` is one name to LibreChat: it finds no such variable, and uses the text as it stands"

_WHOLE = re.compile(r"\$\{(.+)\}\Z")
_PART = re.compile(r"\$\{([^}]+)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_BRACES = re.compile(r"\{\{([^{}\n]*)\}\}")
_BARE = re.compile(r"\$[A-Z_][A-Z0-9_]*\Z")
_OPEN = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\Z")


def check_variables(draft: Draft, path: Path, scalar: Scalar, *, environ: Mapping[str, str] | None) -> None:
    """Judge one text of the file. `environ` None means that nothing is known about the server's environment."""
    value = scalar.value
    if not isinstance(value, str):
        return
    names = [part for part in path if isinstance(part, str)]
    if "{{" in value:
        _check_placeholders(draft, path, scalar, names)
    if "$" in value and not PROSE.intersection(names[-1:]) and not draft.is_blamed(path):
        _check_environment(draft, path, scalar, environ)


def is_replaced(path: Path) -> bool:
    """Whether LibreChat replaces `${…}` at `path`; in the parts that it never looks at, only texts of users."""
    if path[:1] == ("memory",):
        return False
    if path[:2] == ("endpoints", "custom"):
        return path[3:4] not in (
            ("name",),
            ("models",),
            ("modelDisplayLabel",),
            ("titleModel",),
            ("provider",),
        )
    return path[:1] not in (("modelSpecs",), ("interface",), ("version",), ("registration",))


def _check_environment(draft: Draft, path: Path, scalar: Scalar, environ: Mapping[str, str] | None) -> None:
    text = str(scalar.value).strip()
    if not is_replaced(path):
        if _PART.search(text) and path[:1] != ("modelSpecs",):
            _report_not_read(draft, path)
        return
    whole = _WHOLE.match(text)
    if whole and "}" in whole[1]:
        _report_joined(draft, path, text)
        return
    if _is_malformed(text, path):
        _report_malformed(draft, path, text)
        return
    for name in dict.fromkeys(match[1] for match in _PART.finditer(text)):
        if name in UNRESOLVABLE:
            _report_withheld(draft, path, name)
        elif not _NAME.match(name):
            _report_malformed(draft, path, "${" + name + "}")
        elif environ is not None and not environ.get(name) and path[:1] != ("webSearch",):
            _report_unset(draft, path, name, empty=name in environ)


def _is_malformed(text: str, path: Path) -> bool:
    if "$${" in text:
        return True
    return path[-1:] in (("apiKey",), ("baseURL",)) and bool(_BARE.match(text) or _OPEN.match(text))


def _report_not_read(draft: Draft, path: Path) -> None:
    draft.add(
        "MEM212",
        path,
        f"variables are not replaced in `{dotted(path)}`",
        span=draft.value_span(path),
        level=strictness(path),
        librechat=LibreChat.ACCEPTS,
        helps=("write the value itself",),
        notes=("LibreChat uses the text as it stands, with its `${…}`",),
    )


def _report_joined(draft: Draft, path: Path, text: str) -> None:
    names = [f"`{match[1]}`" for match in _PART.finditer(text) if _NAME.match(match[1])]
    listed = " and ".join(names) if len(names) > 1 else "several"
    draft.add(
        "MEM404",
        path,
        f"the variables {listed} are taken for one",
        span=draft.value_span(path),
        level=strictness(path),
        librechat=LibreChat.ACCEPTS,
        helps=("put the whole value into one variable, or let it start or end with plain text",),
        notes=(JOINED,),
    )


def _report_malformed(draft: Draft, path: Path, text: str) -> None:
    if ":-" in text or ":=" in text or ":?" in text:
        why, mend = (
            "has a default, which LibreChat does not know",
            "write `${NAME}` and set the default where the variable is set",
        )
    elif "$${" in text:
        why, mend = "starts with two dollar signs", "write `${NAME}` with one"
    elif "{" not in text or "}" not in text:
        why, mend = "is not closed in braces", "write `${NAME}`"
    else:
        why, mend = (
            "is not a variable's name",
            "write `${NAME}`: letters, digits and underscores, without spaces",
        )
    draft.add(
        "MEM408",
        path,
        f"the variable in `{dotted(path)}` {why}",
        span=draft.value_span(path),
        level=strictness(path),
        librechat=LibreChat.ACCEPTS,
        helps=(mend,),
        notes=("LibreChat leaves the text as it stands",),
    )


def _report_withheld(draft: Draft, path: Path, name: str) -> None:
    draft.add(
        "MEM407",
        path,
        f"`{name}` is one of the server's own secrets and is never replaced",
        span=draft.value_span(path),
        librechat=LibreChat.ACCEPTS,
        helps=("give the value a variable of its own",),
    )


def _report_unset(draft: Draft, path: Path, name: str, *, empty: bool) -> None:
    draft.add(
        "MEM403",
        path,
        f"the variable `{name}` is {'empty' if empty else 'not set'}",
        span=draft.value_span(path),
        level=strictness(path),
        librechat=LibreChat.ACCEPTS,
        helps=(f"set `{name}` where the server gets its environment",),
        notes=("LibreChat counts an empty variable as not set and leaves `${…}` as it stands",)
        if empty
        else (),
    )


def _check_placeholders(draft: Draft, path: Path, scalar: Scalar, names: list[str]) -> None:
    in_headers = "headers" in [name.lower() for name in names[:-1]]
    in_prompt = bool(PROMPTS.intersection(names[-1:]))
    if path[:1] == ("mcpServers",) and len(path) > 1:
        own = draft.mapping((*path[:2], "customUserVars"))
        known: tuple[str, ...] = (*HEADER_PLACEHOLDERS, *(own.entries if own else ()))
    else:
        known = HEADER_PLACEHOLDERS
    for name in dict.fromkeys(match[1] for match in _BRACES.finditer(str(scalar.value))):
        if in_prompt:
            if name.strip().lower() not in SPECIAL:
                _check_in_prompt(draft, path, scalar, name)
        elif name not in known and (in_headers or "LIBRECHAT" in name.upper()):
            _report_unknown(draft, path, scalar, name, known)


def _check_in_prompt(draft: Draft, path: Path, scalar: Scalar, name: str) -> None:
    if "LIBRECHAT_" in name.upper():
        draft.add(
            "MEM406",
            path,
            f"`{{{{{draft.quote(name)}}}}}` is not replaced in `{path[-1]}`",
            span=_find(draft, path, scalar, name),
            level=strictness(path),
            librechat=LibreChat.ACCEPTS,
            helps=(f"prompts know {_listed(SPECIAL)}",),
        )
    elif near := meant(name.strip(), SPECIAL):
        draft.add(
            "MEM406",
            path,
            f"nobody replaces `{{{{{draft.quote(name)}}}}}`",
            span=_find(draft, path, scalar, name),
            level=Level.WARNING,
            librechat=LibreChat.ACCEPTS,
            helps=(f"a placeholder with a similar name exists: `{{{{{near.name}}}}}`",),
        )


def _report_unknown(draft: Draft, path: Path, scalar: Scalar, name: str, known: tuple[str, ...]) -> None:
    near = meant(name.strip(), known)
    if near and name != name.strip() and name.strip() in known:
        mend = f"write it without spaces: `{{{{{near.name}}}}}`"
    elif near:
        mend = f"a placeholder with a similar name exists: `{{{{{near.name}}}}}`"
    else:
        mend = "headers know `{{LIBRECHAT_USER_…}}`, `{{LIBRECHAT_BODY_…}}` and `{{LIBRECHAT_OPENID_…}}`"
    draft.add(
        "MEM406",
        path,
        f"nobody replaces `{{{{{draft.quote(name)}}}}}`",
        span=_find(draft, path, scalar, name),
        level=strictness(path),
        librechat=LibreChat.ACCEPTS,
        helps=(mend,),
        notes=("the text is sent as it stands",),
    )


def _find(draft: Draft, path: Path, scalar: Scalar, name: str) -> Span | None:
    """Where the placeholder is written; the whole value where the text holds it in another spelling."""
    at = scalar.source.text.find("{{" + name + "}}", scalar.start, scalar.end)
    return scalar.source.span(at, at + len(name) + 4) if at >= 0 else draft.value_span(path)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{{{{{name}}}}}`" for name in names)
