"""The demo's screen: how it is played, the turns, what is remembered at the end, and the week."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from memagent.report.memories import memories
from memagent.service.transfer import as_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import RenderableType

    from memagent.memory import Memory


def opening(
    *, config: Path, played: bool, model: str | None, environ: Mapping[str, str], url: str
) -> RenderableType:
    """Say plainly whether a model is asked or recorded answers are played."""
    if played:
        how = (
            "No model is configured, so RECORDED ANSWERS are played: a small OpenAI-compatible server on loopback serves "
            f"them, and litellm asks it over HTTP like any provider. Redis and the embedder are real. To ask a real model: "
            f"`memagent demo --model openai/gpt-4o-mini`, or set {url}."
        )
    else:
        how = f"A real model is asked: {model or environ[url]}. What it answers may differ from turn to turn."
    return Panel(Text(f"{config}\n{how}"), title="memagent demo", title_align="left", box=box.ROUNDED)


def turns(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """What the user says and what the turn shows, beside what memory did, recalled and cost."""
    table = Table(box=box.SIMPLE, title="A chat, turn by turn", title_justify="left", title_style="bold")
    table.add_column("", justify="right")
    table.add_column("the user says", ratio=3)
    table.add_column("memory", ratio=2)
    for number, row in enumerate(rows, 1):
        said = Text(row["say"])
        said.append(f"\n{row['shows']}", style="dim italic")
        table.add_row(str(number), said, Text("\n").join(_told(row["receipt"])))
    return table


def _told(receipt: Mapping[str, Any]) -> Iterator[Text]:
    note, cost, spent = receipt["recall"], receipt["cost"], receipt["timings_ms"]
    if note["error"]:
        yield Text(f"recall failed open: {note['error']}", style="yellow")
    for match in note["matches"]:
        if match["used"]:
            yield Text(f"recalled {match['key']} ({match['score']:.2f})", style="bold")
    if receipt["decision"] != "ran":
        yield Text(f"{receipt['decision']}: {receipt['detail']}", style="yellow")
    did = [
        Text(f"{name} {key}", style=style)
        for name, style in (
            ("set", "green"),
            ("refreshed", "cyan"),
            ("deleted", "magenta"),
            ("forgotten", "magenta"),
        )
        for key in receipt[name]
    ]
    did += [
        Text(f"refused {each['key']}: {each['why'].replace('_', ' ')}", style="red")
        for each in receipt["refused"]
    ]
    if not did:
        known = [tool["key"] for tool in receipt["tools"] if tool["outcome"] == "refreshed"]
        did = [Text(f"known already: {key}", style="cyan") for key in known] or [
            Text("nothing to keep", style="dim")
        ]
    yield from did
    calls = "1 call" if cost["calls"] == 1 else f"{cost['calls']} calls"
    price = f", ${cost['usd']:.5f}" if cost["usd"] else ""
    took = spent.get("total", 0)
    yield Text(
        f"{calls}, {cost['input_tokens']}+{cost['output_tokens']} tokens{price}, {took:.0f} ms", style="dim"
    )


def remembered(kept: Sequence[Memory]) -> RenderableType:
    total = sum(memory.tokens for memory in kept)
    return Group(
        Text(f"What is remembered now: {total} tokens", style="bold"),
        memories([as_json(memory) for memory in kept]),
    )


def week(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """The seed's example, day by day."""
    table = Table(
        box=box.SIMPLE_HEAD,
        title="A week of forgetting: “Juno's cat is called Mochi”",
        title_justify="left",
        title_style="bold",
    )
    for name in ("date", "what happens", "said", "match", "unused days", "state"):
        table.add_column(name, justify="right" if name in {"match", "unused days"} else "left")
    for row in rows:
        state = Text("dormant", style="dim") if row["dormant"] else Text("active", style="green")
        if row["tail"]:
            state.append(", came back for this answer", style="bold")
        score = f"{row['score']:.2f}" if row["score"] is not None else ""
        table.add_row(row["date"], row["day"], Text(row["said"]), score, str(row["counter"]), state)
    return table
