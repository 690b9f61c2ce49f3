"""Blocks that fit none of their allowed forms: which form was meant, and what keeps it from fitting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.config.check.draft import dotted
from memagent.config.findings import LibreChat
from memagent.config.nodes import Mapping, Scalar
from memagent.config.spelling import meant

if TYPE_CHECKING:
    from memagent.config.check.draft import Draft, Path
    from memagent.config.zod import Issue

MCP_FORMS = ("stdio", "websocket", "sse", "streamable-http")
"""LibreChat's own order (spec/librechat.md §2.7)."""

MCP_TYPES = (*MCP_FORMS, "http")


def likely(draft: Draft, issue: Issue) -> tuple[Issue, ...]:
    """The issues of the form that was meant; empty where no form is likelier than the others."""
    node = draft.node(issue.path)
    if not issue.options or not isinstance(node, Mapping):
        return ()
    if issue.path[:1] == ("mcpServers",) and len(issue.path) == 2:  # noqa: PLR2004  one server
        return _likely_server(draft, issue)
    ranked = sorted(issue.options, key=len)
    return ranked[0] if len(ranked) == 1 or len(ranked[0]) < len(ranked[1]) else ()


def _likely_server(draft: Draft, issue: Issue) -> tuple[Issue, ...]:
    path = issue.path
    kind = draft.text((*path, "type"))
    if draft.entry((*path, "type")) and kind not in MCP_TYPES:
        _report_type(draft, (*path, "type"), kind or "")
    if kind in MCP_TYPES:
        form = "streamable-http" if kind == "http" else kind
    elif draft.entry((*path, "command")):
        form = "stdio"
    elif draft.entry((*path, "url")):
        url = draft.text((*path, "url")) or ""
        form = "websocket" if url.startswith(("ws://", "wss://")) else "sse"
    else:
        return ()
    return issue.options[MCP_FORMS.index(form)]


def _report_type(draft: Draft, path: Path, kind: str) -> None:
    near = meant(kind, MCP_TYPES)
    draft.add(
        "MEM204",
        path,
        f"`{dotted(path)}` takes one of {', '.join(f'`{each}`' for each in MCP_TYPES)}, found {draft.found(path)}",
        span=draft.value_span(path),
        librechat=LibreChat.REJECTS,
        helps=(f"a choice with a similar name exists: `{near.name}`",) if near else (),
    )


def report_union(draft: Draft, path: Path) -> None:
    """The finding where no form is the likely one."""
    if any(blamed[: len(path)] == path for blamed in draft.blamed):
        return  # something in it was found to be wrong already
    is_server = path[:1] == ("mcpServers",) and len(path) == 2  # noqa: PLR2004  one server
    node = draft.node(path)
    found = f", found {draft.found(path)}" if isinstance(node, Scalar) or not is_server else ""
    draft.add(
        "MEM210",
        path,
        f"`{dotted(path)}` fits none of its allowed forms{found}",
        librechat=LibreChat.REJECTS,
        helps=("an MCP server has a `command` with `args`, or a `url` with a `type`",) if is_server else (),
    )
