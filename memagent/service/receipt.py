"""The receipt of a turn: what was decided, asked, changed and recalled, and what it cost. It holds keys, never values."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from memagent.agent.tools import RETRYABLE, ToolStatus
from memagent.store import EditStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memagent.store import Applied, Kept

REFUSED = RETRYABLE | {ToolStatus.MISSING, ToolStatus.TOO_MANY}
"""Tool calls that came to nothing, for the receipt."""


class Decision(StrEnum):
    RAN = "ran"
    SKIPPED = "skipped"
    FAILED = "failed"


class Reason(StrEnum):
    """Why a turn was skipped, beside the reasons that the configuration has (`config.settings.MemoryOff`)."""

    OPTED_OUT = "opted_out"
    AGENT_NOT_USABLE = "agent_not_usable"
    ALREADY_SEEN = "already_seen"
    NOTHING_SAID = "nothing_said"


@dataclass(frozen=True, slots=True)
class RecallNote:
    """What recall did for this turn. `matches` are the best candidates: scope, key, score, parts, used, reason."""

    searched: bool = False
    embedder: str = ""
    floor: float = 0.0
    matches: tuple[Mapping[str, Any], ...] = ()
    prefix: tuple[str, ...] = ()
    """Keys whose memories stand in the prefix."""
    tail: tuple[str, ...] = ()
    """Keys whose memories came back from the drawer."""
    error: str | None = None
    """The code of what kept the search from answering; the chat went on without it."""
    passages: tuple[Mapping[str, Any], ...] = ()
    """What auto recall put in of turns and notes: source, citation, score, parts."""
    passages_error: str | None = None
    """The code of what kept auto recall from answering."""

    def to_json(self) -> dict[str, Any]:
        """The note as JSON has it, sharing its parts."""
        return _shallow(self)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> RecallNote:
        """A note as JSON gives it back, an older one too."""
        rows = {name: tuple(kept.get(name, ())) for name in ("matches", "prefix", "tail", "passages")}
        return cls(**{**kept, **rows})


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens and money of all model calls; `usd` is None when a price is unknown."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    user: str
    conversation_id: str
    message_id: str
    at: str
    """ISO 8601, UTC."""
    decision: Decision
    reason: str = ""
    detail: str = ""
    """The reason in a sentence, for people."""
    error: Mapping[str, Any] | None = None
    """Of a failed turn: `code`, `message`, `retryable`."""
    recall: RecallNote = field(default_factory=RecallNote)
    model: str = ""
    stopped: str = ""
    calls: tuple[Mapping[str, Any], ...] = ()
    """One per call to the model: tokens, cost, how it ended."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """One per tool call: name, key, outcome, and what the model was told."""
    set: tuple[str, ...] = ()
    refreshed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    refused: tuple[Mapping[str, str], ...] = ()
    forgotten: tuple[str, ...] = ()
    tokens: int | None = None
    """All values of the scope together, after this turn."""
    entries: int | None = None
    cost: Cost = field(default_factory=Cost)
    timings_ms: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The receipt as JSON has it, sharing its parts: they are never changed."""
        return {**_shallow(self), "recall": self.recall.to_json(), "cost": _shallow(self.cost)}


def _shallow(value: Receipt | RecallNote | Cost) -> dict[str, Any]:
    found = ((each.name, getattr(value, each.name)) for each in fields(value))
    return {name: [*part] if isinstance(part, tuple) else part for name, part in found}


def done(receipt: Receipt, applied: Applied, *, again: bool = False) -> Receipt:
    """The receipt with what became of the edits; `again` takes what an earlier apply of the same message came to."""
    if applied.opted_out:
        return replace(
            receipt,
            decision=Decision.SKIPPED,
            reason=Reason.OPTED_OUT,
            detail="switched off while the model was asked",
        )
    if applied.duplicate and not again:
        return replace(
            receipt,
            decision=Decision.SKIPPED,
            reason=Reason.ALREADY_SEEN,
            detail="applied meanwhile by another worker",
        )

    def keys(status: EditStatus) -> tuple[str, ...]:
        return tuple(outcome.key for outcome in applied.outcomes if outcome.status is status)

    by_ledger = [
        {"key": tool["key"], "why": tool["outcome"]} for tool in receipt.tools if tool["outcome"] in REFUSED
    ]
    by_store = [{"key": each.key, "why": each.refusal.value} for each in applied.outcomes if each.refusal]
    return replace(
        receipt,
        set=keys(EditStatus.SET),
        refreshed=keys(EditStatus.REFRESHED),
        deleted=keys(EditStatus.DELETED),
        refused=tuple(by_ledger + by_store),
        forgotten=tuple(memory.key for memory in applied.forgotten),
        tokens=applied.totals.tokens,
        entries=applied.totals.entries,
    )


def whole(kept: Kept) -> Receipt:
    """The receipt of a message from what the store keeps: it is written with the edits, before what comes of them is known."""
    receipt = _read(kept.receipt)
    return receipt if kept.applied is None else done(receipt, kept.applied, again=True)


def _read(kept: Mapping[str, Any]) -> Receipt:
    """A receipt from its JSON."""
    rows = {name: tuple(kept[name]) for name in TUPLES}
    return Receipt(
        **{
            **kept,
            **rows,
            "decision": Decision(kept["decision"]),
            "recall": RecallNote.from_json(kept["recall"]),
            "cost": Cost(**kept["cost"]),
        }
    )


TUPLES = ("calls", "tools", "set", "refreshed", "deleted", "refused", "forgotten")
