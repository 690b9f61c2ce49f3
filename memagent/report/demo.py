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
    from collections.abc import Mapping, Sequence
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
    table = Table(box=box.SIMPLE_HEAD, title="A chat, turn by turn", title_justify="left", title_style="bold")
    table.add_column("", justify="right")
    table.add_column("the user says", ratio=5)
    table.add_column("recalled", ratio=3)
    table.add_column("memory did", ratio=5)
    table.add_column("cost", ratio=3)
    for number, row in enumerate(rows, 1):
        receipt = row["receipt"]
        said = Text(row["say"])
        said.append(f"\n{row['shows']}", style="dim italic")
        table.add_row(str(number), said, _recalled(receipt), _did(receipt), _cost(receipt))
    return table


def _recalled(receipt: Mapping[str, Any]) -> Text:
    note = receipt["recall"]
    if note["error"]:
        return Text(f"failed open: {note['error']}", style="yellow")
    used = [match for match in note["matches"] if match["used"]]
    return Text("\n".join(f"{match['key']} {match['score']:.2f}" for match in used) or "–")


def _did(receipt: Mapping[str, Any]) -> Text:
    text = Text()
    if receipt["decision"] != "ran":
        return Text(f"{receipt['decision']}: {receipt['detail']}", style="yellow")
    lines = [("set", "green"), ("refreshed", "cyan"), ("deleted", "magenta"), ("forgotten", "magenta")]
    for name, style in lines:
        for key in receipt[name]:
            text.append(f"{name} {key}\n", style=style)
    for refused in receipt["refused"]:
        text.append(f"refused {refused['key']}: {refused['why'].replace('_', ' ')}\n", style="red")
    known = [tool["key"] for tool in receipt["tools"] if tool["outcome"] == "refreshed" and not receipt["refreshed"]]
    for key in known:
        text.append(f"known already: {key}\n", style="cyan")
    text.rstrip()
    return text if text.plain else Text("nothing to keep", style="dim")


def _cost(receipt: Mapping[str, Any]) -> Text:
    cost, spent = receipt["cost"], receipt["timings_ms"]
    calls = "1 call" if cost["calls"] == 1 else f"{cost['calls']} calls"
    price = f"\n${cost['usd']:.5f}" if cost["usd"] else ""
    return Text(f"{calls}, {cost['input_tokens']}+{cost['output_tokens']} tokens{price}\n{spent.get('total', 0):.0f} ms")


def remembered(kept: Sequence[Memory]) -> RenderableType:
    total = sum(memory.tokens for memory in kept)
    return Group(
        Text(f"What is remembered now: {total} tokens", style="bold"), memories([as_json(memory) for memory in kept])
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
