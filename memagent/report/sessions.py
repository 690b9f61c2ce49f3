"""Tables about sessions for a terminal, and a transcript as Markdown. They get finished JSON values and decide nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

SHOWN_CHARS = 600


def sessions(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """The latest used first."""
    if not rows:
        return Text("there are no sessions")
    table = _table("key", "session", "last used", "context", "compacted", whole=3)
    for row in rows:
        key = Text(row["key"], style="bold")
        if row["pinned"]:
            key.append(" pinned", style="dim")
        table.add_row(
            key,
            Text(row["sessionId"][:8]),
            _minute(row["lastAccessAt"]),
            _size(row),
            str(row["compactionCount"] or ""),
        )
    return table


def archived(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Ended sessions, oldest first."""
    if not rows:
        return Text("there are no archived sessions")
    table = _table("session", "ended", "why", "bytes")
    for row in rows:
        table.add_row(Text(row["sessionId"]), _minute(row["at"]), row["reason"], str(row["bytes"]))
    return table


def session(found: Mapping[str, Any]) -> RenderableType:
    """One session: what is known of it, then what was said."""
    facts = _table("", "", header=False)
    for name in (
        "key",
        "sessionId",
        "file",
        "parentSession",
        "startedAt",
        "lastAccessAt",
        "model",
        "contextTokens",
    ):
        if found.get(name):
            facts.add_row(name, Text(str(found[name])))
    if totals := found["totals"]:
        cached = f", {totals['cacheRead']} from and {totals['cacheWrite']} into the cache"
        facts.add_row("tokens", Text(f"{totals['input']} in, {totals['output']} out{cached}"))
    if found["skipped"]:
        lines = ", ".join(map(str, found["skipped"]))
        facts.add_row("unreadable", Text(f"lines {lines}", style="yellow"))
    said = [_said(message) for message in found["messages"]]
    return Group(facts, *said) if said else Group(facts, Text("nothing was said"))


def compaction(done: Mapping[str, Any]) -> RenderableType:
    return Text(done["notice"])


def cleanup(plan: Mapping[str, Any]) -> RenderableType:
    """What would go or went, with the reason, and what is spared."""
    parts: list[RenderableType] = [Text(line, style="yellow") for line in plan["warnings"]]
    if plan["victims"]:
        table = _table("why", "what", "last used", "bytes", "becomes")
        for row in plan["victims"]:
            what = Text(row["key"] or row["sessionId"])
            becomes = "erased" if row["erased"] else "archived"
            table.add_row(row["why"], what, _minute(row["accessedAt"]), str(row["bytes"]), becomes)
        parts.append(table)
    spared = f", {plan['spared']} spared: used again meanwhile" if plan["spared"] else ""
    if plan["applied"]:
        parts.append(Text(f"{plan['done']} cleaned up{spared}"))
    elif plan["victims"]:
        parts.append(Text("nothing was changed; --apply carries it out"))
    else:
        parts.append(Text("nothing to clean up"))
    return Group(*parts)


def markdown(found: Mapping[str, Any]) -> str:
    """A session as a document: a heading for each message, its text as it is."""
    parts = [f"# Session {found['sessionId']}"]
    for message in found["messages"]:
        parts.append(f"## {message['role']}, {message['at'][:19]}")
        parts.append(message["text"] or "(no text)")
        parts += [f"- calls `{call['name']}` with `{call['arguments']}`" for call in message["toolCalls"]]
    return "\n\n".join(parts) + "\n"


def _said(message: Mapping[str, Any]) -> Text:
    text = Text(f"{message['role']} ", style="bold")
    text.append(f"{message['at'][:19]}\n", style="dim")
    words = message["text"]
    text.append(
        words if len(words) <= SHOWN_CHARS else f"{words[:SHOWN_CHARS]}… ({len(words)} characters)",
        style="none",
    )
    for call in message["toolCalls"]:
        text.append(f"\ncalls {call['name']} {call['arguments'][:SHOWN_CHARS]}", style="none")
    text.append("\n")
    return text


def _size(row: Mapping[str, Any]) -> str:
    tokens = row["totalTokens"]
    return "" if not tokens else f"{tokens}{'' if row['totalTokensFresh'] else '?'}"


def _minute(at: str | None) -> str:
    return (at or "never")[:16].replace("T", " ")


def _table(*columns: str, header: bool = True, whole: int = 1) -> Table:
    """A table whose first `whole` columns are never broken: keys and ids are for copying."""
    table = Table(box=box.SIMPLE_HEAD if header else None, show_header=header, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=number < whole)
    return table
