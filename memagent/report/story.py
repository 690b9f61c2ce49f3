"""A receipt told as a story: did memory run for this message, what did it know, what did it do, what did it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

ENDINGS = {
    "done": "Everything it asked for was looked at.",
    "nothing": "It found nothing worth keeping.",
    "empty_reply": "It answered with nothing at all, which is how a model ends its turn when in doubt.",
    "cut_off": "Its answer was cut off at the model's output limit before it called a tool.",
    "filtered": "The provider withheld its answer.",
    "repeating": "It only repeated calls that it had made before, so the loop was ended.",
    "limit": "It was refused as often as it may be, so the loop was ended.",
    "failed": "A later call failed; what it had asked for before stands.",
}


def told(receipt: Mapping[str, Any]) -> RenderableType:
    """The story, one sentence a line."""
    return Group(
        *(Text(line) if line.startswith(" ") else Text(line, style="bold") for line in sentences(receipt))
    )


def sentences(receipt: Mapping[str, Any]) -> Iterator[str]:
    where = f" of conversation {receipt['conversation_id']}" if receipt["conversation_id"] else ""
    yield f"Message {receipt['message_id']}{where}, {receipt['at'][:19].replace('T', ' ')} UTC"
    yield f"  Memory {_decided(receipt)}."
    yield "What came to mind"
    yield from (f"  {line}" for line in _recall(receipt["recall"]))
    if receipt["decision"] != "skipped":
        yield "What the model did"
        yield from (f"  {line}" for line in _model(receipt))
        yield "What changed"
        yield from (f"  {line}" for line in _changes(receipt))
        spent = receipt["timings_ms"]
        if spent:
            steps = ", ".join(
                f"{name} {value:.0f} ms" for name, value in spent.items() if name != "total" and value >= 1
            )
            yield f"  It took {spent['total']:.0f} ms" + (f" ({steps})." if steps else ".")


def _decided(receipt: Mapping[str, Any]) -> str:
    match receipt["decision"]:
        case "ran":
            return "ran"
        case "failed":
            again = "it may be tried again" if receipt["error"]["retryable"] else "trying again will not help"
            return f"did not get through: {receipt['detail']} [{receipt['error']['code']}]; {again}"
        case _:
            return f"was skipped, {receipt['reason'].replace('_', ' ')}: {receipt['detail']}"


def _recall(note: Mapping[str, Any]) -> Iterator[str]:
    if note["error"]:
        yield f"The search did not answer ({note['error']}); nothing aged, and the chat went on."
    elif not note["searched"]:
        yield "Nothing was searched for: no embedder, or the message is too short to match anything."
    yield f"{len(note['prefix'])} memories stood in the prefix" + (
        f": {_names(note['prefix'])}." if note["prefix"] else "."
    )
    for match in note["matches"][:5]:
        if match["used"]:
            back = ", and so came back from the drawer" if match["dormant"] else ""
            yield f"`{match['key']}` matched at {match['score']:.2f} (floor {note['floor']:.2f}){back}."
        else:
            yield f"`{match['key']}` stood at {match['score']:.2f}: {match['reason'].replace('_', ' ')}."
    for passage in note.get("passages", ()):
        yield f"Of {passage['source']}, {passage['citation']} came into the context, at {passage['score']:.2f}."
    if note.get("passages_error"):
        yield f"Turns and notes did not answer ({note['passages_error']})."


def _model(receipt: Mapping[str, Any]) -> Iterator[str]:
    cost = receipt["cost"]
    if not cost["calls"]:
        yield "It was never reached."
        return
    price = f", {cost['usd']:.6f} USD" if cost["usd"] is not None else ", price unknown"
    times = "once" if cost["calls"] == 1 else f"{cost['calls']} times"
    yield f"{receipt['model']} was asked {times}: {cost['input_tokens']} tokens in, {cost['output_tokens']} out{price}."
    for tool in receipt["tools"]:
        key = f" `{tool['key']}`" if tool["key"] else ""
        yield f"{tool['tool']}{key}: {tool['outcome'].replace('_', ' ')}."
    yield ENDINGS.get(receipt["stopped"], receipt["stopped"])


def _changes(receipt: Mapping[str, Any]) -> Iterator[str]:
    for name in ("set", "refreshed", "deleted", "forgotten"):
        if receipt[name]:
            yield f"{name.capitalize()}: {_names(receipt[name])}."
    for refused in receipt["refused"]:
        yield f"Refused: `{refused['key']}` ({refused['why'].replace('_', ' ')})."
    if not any(receipt[name] for name in ("set", "refreshed", "deleted", "forgotten")):
        yield "Nothing."
    if receipt["tokens"] is not None:
        yield f"{receipt['entries']} memories, {receipt['tokens']} tokens in all."


NAMES_SHOWN = 8


def _names(keys: list[str]) -> str:
    shown = ", ".join(f"`{key}`" for key in keys[:NAMES_SHOWN])
    return shown + (f" and {len(keys) - NAMES_SHOWN} more" if len(keys) > NAMES_SHOWN else "")
