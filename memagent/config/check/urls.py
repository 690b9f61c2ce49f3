"""URLs of MCP servers: at one that is none LibreChat breaks off with an exception, and says nothing about the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.config.check.draft import dotted
from memagent.config.document import plain
from memagent.config.findings import LibreChat
from memagent.config.librechat.root import ROOT
from memagent.config.librechat.urls import is_url, substituted
from memagent.config.zod import Crash, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memagent.config.check.draft import Draft, Path
    from memagent.config.zod import Issue

FIELDS = ("url", "proxy")


def issues_without_urls(draft: Draft, environ: Mapping[str, str]) -> tuple[Issue, ...]:
    """Report each URL that makes LibreChat crash, and give back the issues that the rest of the file has."""
    value: Any = plain(draft.document.root) if draft.document.root else None
    for path, text in _broken(draft, environ):
        report_no_url(draft, path, unresolved="${" in substituted(text, environ), crashes=True)
        server = value["mcpServers"][path[1]]
        server[path[2]] = "wss://example.org" if server.get("type") == "websocket" else "https://example.org"
    run = Run(environ)
    try:
        ROOT.read(value, (), run)
    except Crash:
        return ()
    return tuple(run.issues)


def _broken(draft: Draft, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    servers = draft.mapping(("mcpServers",))
    for name in servers.entries if servers else ():
        for field in FIELDS:
            path = ("mcpServers", name, field)
            text = draft.text(path)
            if text is not None and not is_url(substituted(text, environ)):
                yield path, text


def report_no_url(draft: Draft, path: Path, *, unresolved: bool, crashes: bool = False) -> None:
    """A field that takes a URL and holds none, perhaps because its variable is not set."""
    if unresolved:
        draft.add(
            "MEM211",
            path,
            f"`{dotted(path)}` is no URL while its variable is not set",
            span=draft.value_span(path),
            librechat=LibreChat.REJECTS,
            helps=("set the variable where the server gets its environment, and check with `--env-file`",),
            notes=(
                "LibreChat fills in URLs of MCP servers while it checks the file, and "
                + ("crashes at one that is none" if crashes else "refuses one that is none"),
            ),
        )
    else:
        draft.add(
            "MEM205",
            path,
            f"`{dotted(path)}` takes a URL, found {draft.found(path)}",
            span=draft.value_span(path),
            librechat=LibreChat.REJECTS,
            helps=("write it in full, with `https://` in front",),
            notes=("LibreChat crashes at this",) if crashes else (),
        )
