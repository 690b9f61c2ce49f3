"""Tables about memories for a terminal. They get finished JSON values and decide nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType


def memories(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Newest first: key, value, tokens, state, source, date."""
    if not rows:
        return Text("nothing is remembered")
    table = _table("key", "value", "tokens", "state", "from", "updated")
    for row in rows:
        table.add_row(
            Text(row["key"], style="bold"),
            Text(row["value"]),
            str(row["tokens"]),
            state(row),
            Text(row["source"]),
            row["updated_at"][:10],
        )
    return table


def state(row: Mapping[str, Any]) -> Text:
    """How a memory stands: active or dormant, for how many counted days, protected, in review."""
    days = row["unused_days"]
    text = Text("dormant", style="dim") if row["dormant"] else Text("active", style="green")
    if days:
        text.append(f" ({days} d unused)")
    if row["protected"]:
        text.append(", protected")
    if not row["trusted"]:
        text.append(", to review", style="yellow")
    return text


def memory(row: Mapping[str, Any]) -> RenderableType:
    """One memory with the words it came from."""
    table = _table("", "", header=False)
    for name in ("key", "value", "tokens"):
        table.add_row(name, Text(str(row[name])))
    table.add_row("state", state(row))
    table.add_row("from", Text(row["source"]))
    for name in ("created_at", "updated_at", "last_matched_at"):
        table.add_row(name.removesuffix("_at").replace("_", " "), Text(str(row[name] or "never")[:19]))
    evidence = row["evidence"]
    if evidence["quote"]:
        table.add_row("said", Text(f"“{evidence['quote']}”"))
    if evidence["message_id"]:
        table.add_row(
            "in", Text(f"conversation {evidence['conversation_id']}, message {evidence['message_id']}")
        )
    if row["tags"]:
        table.add_row("tags", Text(", ".join(row["tags"])))
    return table


def changes(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """History, newest first."""
    if not rows:
        return Text("nothing has changed yet")
    table = _table("change", "when", "what", "key", "before", "after", "from")
    for row in rows:
        table.add_row(
            Text(row["id"]),
            row["at"][:19].replace("T", " "),
            row["op"] + (f" {row['undoes']}" if row["undoes"] else ""),
            Text(row["key"], style="bold"),
            Text(row["before"] or ""),
            Text(row["after"] or ""),
            Text(row["source"]),
        )
    return table


def matches(rows: Sequence[Mapping[str, Any]], *, floor: float) -> RenderableType:
    """Every candidate of a search: score, its parts, and why it counted or not."""
    if not rows:
        return Text("no candidate: nothing is remembered, or nothing of it is searched")
    table = _table("scope", "key", "score", "parts", "counts", title=f"match floor {floor:.2f}")
    for row in rows:
        parts = "  ".join(f"{name} {value:.2f}" for name, value in row["parts"].items())
        why = "used" if row["used"] else row["reason"].replace("_", " ")
        table.add_row(
            row["scope"],
            Text(row["key"], style="bold"),
            f"{row['score']:.3f}",
            parts,
            Text(why + (", came back from the drawer" if row["used"] and row["dormant"] else "")),
        )
    return table


def passages(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Turns and notes that a search brought back: where they stand, score and its parts."""
    table = _table("source", "where", "score", "parts", title="turns and notes")
    for row in rows:
        parts = "  ".join(f"{name} {value:.2f}" for name, value in row["parts"].items())
        table.add_row(row["source"], Text(row["citation"], style="bold"), f"{row['score']:.3f}", parts)
    return table


def recalled(value: Mapping[str, Any], *, explain: bool) -> RenderableType:
    """What a search would put into the prompt; with `explain`, how every candidate stood."""
    blocks: list[RenderableType] = []
    for name in ("prefix", "tail"):
        if value[name]:
            blocks += [Text(f"── {name} ──", style="bold"), Text(value[name]), Text()]
    if not blocks:
        blocks = [Text("nothing goes into the prompt")]
    if explain:
        blocks.append(matches(value["note"]["matches"], floor=value["note"]["floor"]))
        if value["note"]["passages"]:
            blocks.append(passages(value["note"]["passages"]))
    if value["note"]["error"]:
        blocks.append(Text(f"the search did not answer: {value['note']['error']}", style="yellow"))
    if value["note"]["passages_error"]:
        blocks.append(
            Text(f"turns and notes did not answer: {value['note']['passages_error']}", style="yellow")
        )
    return Group(*blocks)


def forecast(rows: Sequence[Mapping[str, Any]], *, days: int) -> RenderableType:
    """What would happen, day of chatting by day of chatting; days without a chat change nothing."""
    if not rows:
        return Text(f"nothing would go dormant or be forgotten within {days} days of chatting")
    table = _table("chat day", "not before", "key", "what", "why")
    for row in rows:
        table.add_row(
            str(row["day"]), row["earliest"], Text(row["key"], style="bold"), row["fate"], Text(row["why"])
        )
    return table


def review(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """What waits for the user, with the words it came from."""
    if not rows:
        return Text("nothing waits for review")
    table = _table("key", "value", "from", "words", "message")
    for row in rows:
        evidence = row["evidence"]
        table.add_row(
            Text(row["key"], style="bold"),
            Text(row["value"]),
            Text(row["source"]),
            Text(evidence["quote"]),
            Text(evidence["message_id"]),
        )
    return table


def erased(value: Mapping[str, Any]) -> RenderableType:
    """What went, by kind, and what remains where until when."""
    gone = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in value["erased"].items() if count)
    table = _table("remains", "where", "until")
    for row in value["remains"]:
        table.add_row(Text(row["what"]), Text(row["where"]), Text(row["until"]))
    return Group(Text(f"erased: {gone or 'nothing was kept'}"), table)


def imported(value: Mapping[str, Any]) -> RenderableType:
    """What an import took in, knew already, and refused with the reason."""
    verb = "would be taken in" if value["dry_run"] else "taken in"
    summary = Text(
        f"{value['format']}: {len(value['taken'])} {verb}, {len(value['known'])} known already, "
        f"{len(value['refused'])} refused"
    )
    if not value["refused"]:
        return summary
    table = _table("key", "why not")
    for row in value["refused"]:
        table.add_row(Text(row["key"] or "…", style="bold"), Text(row["why"]))
    return Group(summary, table)


def _table(*columns: str, title: str | None = None, header: bool = True) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, title=escape(title) if title else None, title_justify="left", show_header=header
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
