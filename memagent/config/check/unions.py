"""Blocks that fit none of their allowed forms: which form was meant, and what keeps it from fitting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.config.check.draft import dotted
from memagent.config.findings import LibreChat
from memagent.config.nodes import Mapping, Scalar

if TYPE_CHECKING:
    from memagent.config.check.draft import Draft, Path
    from memagent.config.zod import Issue

MCP_FORMS = ("stdio", "websocket", "sse", "streamable-http")
"""LibreChat's own order (spec/librechat.md §2.7)."""


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
    if kind == "http":
        kind = "streamable-http"
    url = draft.text((*path, "url"))
    if kind not in MCP_FORMS:
        if draft.entry((*path, "command")):
            kind = "stdio"
        elif url is not None or draft.entry((*path, "url")):
            kind = "websocket" if (url or "").startswith(("ws://", "wss://")) else "sse"
        else:
            return ()
    position = MCP_FORMS.index(kind)
    return issue.options[position] if position < len(issue.options) else ()


def report_union(draft: Draft, path: Path) -> None:
    """The finding where no form is the likely one."""
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
