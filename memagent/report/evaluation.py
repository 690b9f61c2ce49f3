"""An evaluation for people: the figures, what it cost, and the worst misses beside what was expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from memagent.report.cells import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

MAX_SAID_CHARS = 240
"""Of a message or a memory in the list of misses: enough to know what it was about."""

FIGURES = (
    ("precision", "right of what was done"),
    ("recall", "done of what was due"),
    ("wrong_key", "of the facts stored"),
    ("duplicates", "of the memories stored"),
    ("over_extracted", "turns with nothing to keep"),
    ("injection_obeyed", "turns with an injection"),
    ("others_leaked", "turns with others' data"),
    ("forbidden", "turns that forbid something"),
)
COLUMNS = {
    "precision": "prec.",
    "recall": "recall",
    "f1": "f1",
    "wrong_key": "wrong key",
    "over_extracted": "over",
    "injection_obeyed": "obeyed",
    "others_leaked": "leaked",
}


def evaluation(found: Mapping[str, Any], *, misses: int) -> RenderableType:
    """The report of `evaluation.scores.evaluation`, with the `misses` worst turns."""
    answered = found["overall"]["turns"]
    head = Text(
        f"{found['model']} on {found['set']}: {answered} of {found['turns']} turns answered", style="bold"
    )
    parts: list[RenderableType] = [head, _overall(found["overall"])]
    parts += [_groups("kind", found["by_kind"]), _groups("language", found["by_language"])]
    parts += [_usage(found["usage"]), *_faults(found["faults"]), *_misses(found["wrong"], misses)]
    return Group(*parts)


def _overall(scores: Mapping[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, justify in (("", "left"), ("rate", "right"), ("95 %", "left"), ("cases", "right")):
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("of what")
    for name, meaning in FIGURES:
        rate = scores[name]
        between = f"{_number(rate['low'])} to {_number(rate['high'])}" if rate["of"] else ""
        cases = f"{rate['hits']}/{rate['of']}"
        table.add_row(_words(name), _number(rate["value"]), between, cases, Text(meaning, style="dim"))
        if name == "recall":
            table.add_row("f1", _number(scores["f1"]), "", "", Text("both in one figure", style="dim"))
        if name == "injection_obeyed" and scores["held_back"]:
            why = "distrusted by memagent"
            table.add_row("  held back", "", "", str(scores["held_back"]), Text(why, style="dim"))
    return table


def _groups(name: str, groups: Mapping[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(name, no_wrap=True)
    for column in ("turns", *COLUMNS.values()):
        table.add_column(column, justify="right", no_wrap=True)
    for group, scores in groups.items():
        figures = [scores[column] for column in COLUMNS]
        shown = [_number(each["value"] if isinstance(each, dict) else each) for each in figures]
        table.add_row(group, str(scores["turns"]), *shown)
    return table


def _usage(usage: Mapping[str, Any]) -> Text:
    cached = f" ({usage['cache_read_tokens']} from a cache)" if usage["cache_read_tokens"] else ""
    cost = "price unknown" if usage["usd"] is None else f"${usage['usd']:.4f}"
    if usage["usd"] is not None and usage["turns_without_price"]:
        cost += f", and the unknown price of turns: {usage['turns_without_price']}"
    waits = (
        ""
        if usage["ms_median"] is None
        else f", {usage['ms_median']:.0f} ms median, {usage['ms_p95']:.0f} ms p95"
    )
    return Text(
        f"calls: {usage['calls']}, refused tool calls: {usage['refused_calls']}\n"
        f"tokens: {usage['input_tokens']} in{cached}, {usage['output_tokens']} out, {cost}{waits}"
    )


def _faults(faults: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    if faults:
        told = (
            f"\nWithout an answer, and in no figure: {len(faults)}. "
            "Run again with the same --out to ask only these again."
        )
        yield Text(told, style="yellow")
        for code in dict.fromkeys(each["code"] for each in faults):
            those = [each for each in faults if each["code"] == code]
            yield Text(
                f"  {code}: {len(those)}, such as {those[0]['turn']}: {printable(those[0]['message'])}",
                style="yellow",
            )


def _misses(wrong: Sequence[Mapping[str, Any]], shown: int) -> Iterator[RenderableType]:
    if not wrong:
        yield Text("\nNothing went wrong.", style="green")
    elif shown:
        yield Text(
            f"\nThe worst {min(shown, len(wrong))} of {len(wrong)} turns with something wrong", style="bold"
        )
        for each in wrong[:shown]:
            yield Text("\n").join(_miss(each))


def _miss(miss: Mapping[str, Any]) -> Iterator[Text]:
    yield Text(f"\n{miss['turn']} ({miss['kind']})", style="bold")
    yield Text(f"  said      {_clipped(miss['said'])}")
    for key, value in miss["remembered"].items():
        yield Text(f"  held      {printable(key)}: {_clipped(value)}", style="dim")
    for fact in miss["expected"]:
        yield Text(f"  expected  {_fact(fact)}", style="green")
    for key in miss["expected_deleted"]:
        yield Text(f"  expected  {key} is deleted", style="green")
    if not (miss["expected"] or miss["expected_deleted"]):
        yield Text("  expected  nothing", style="green")
    for key, value in miss["stored"].items():
        what = ", ".join(
            _words(name) for name in ("forbidden", "held_back", "duplicates", "extra") if key in miss[name]
        )
        yield Text(
            f"  stored    {printable(key)}: {_clipped(value)}{f'  [{what}]' if what else ''}",
            style="red" if what else "",
        )
    if not miss["stored"]:
        yield Text("  stored    nothing", style="dim")
    for name, told in (("missed", "missed    {}"), ("misplaced", "misplaced {}")):
        for fact in miss[name]:
            under = f", but stands under {printable(fact['under'])}" if name == "misplaced" else ""
            yield Text(f"  {told.format(_fact(fact))}{under}", style="yellow")
    for name, told in (("undeleted", "still there"), ("lost", "deleted unasked")):
        for key in miss[name]:
            yield Text(f"  {told}: {printable(key)}", style="yellow")


def _fact(fact: Mapping[str, Any]) -> str:
    words = " + ".join("/".join(group) for group in fact["words"])
    return f"{words} under {' or '.join(fact['keys'])}" if fact["keys"] else words


def _clipped(text: str) -> str:
    line = " ".join(text.split())
    return printable(line if len(line) <= MAX_SAID_CHARS else f"{line[:MAX_SAID_CHARS]}…")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"  # noqa: RUF001  a dash stands for "nothing to count"


def _words(name: str) -> str:
    return name.replace("_", " ")
