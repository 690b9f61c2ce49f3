"""The plan of one turn over what is remembered: every call of the model is checked against it before the store sees it.

The order of the checks and the texts are LibreChat's (spec/librechat.md §4.6); where memagent decides otherwise, design §6
says so. The store checks the limits once more in its atomic step; this ledger is how the model hears of them in time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memagent.admission import RESERVED_KEY, normal_key, utf16_length
from memagent.agent.tools import DELETE_MEMORY, SET_MEMORY, ToolOutcome, ToolStatus, arguments, specs
from memagent.lexicon import fingerprint, terms
from memagent.memory import MAX_KEY_CHARS, Source
from memagent.store import DeleteMemory, SetMemory
from memagent.tokens import well_formed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memagent.agent.evidence import Support, Witnesses
    from memagent.llm import ToolSpec
    from memagent.memory import ToolCall
    from memagent.store import Edit
    from memagent.tokens import CountTokens


@dataclass(frozen=True, slots=True)
class Held:
    """A memory as the ledger sees it: its value and what that costs."""

    tokens: int
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of `memory:` in librechat.yaml; None, zero and empty are "no limit" (a negative limit is always passed)."""

    valid_keys: tuple[str, ...] = ()
    token_limit: float | None = None
    char_limit: float | None = None


class Ledger:
    """What is remembered, and what this turn is about to change.

    `held` is every memory of the scope that is written to. `injected` maps the fingerprint of a text that memagent itself
    put into the chat to its key: such words are remembered already, wherever they are kept. `witnesses` tell who said it.
    """

    def __init__(
        self,
        held: Mapping[str, Held],
        *,
        rules: Rules,
        count: CountTokens,
        witnesses: Witnesses,
        injected: Mapping[str, str] | None = None,
    ) -> None:
        self._held = dict(held)
        self._rules = rules
        self._count = count
        self._witnesses = witnesses
        self._total = sum(memory.tokens for memory in held.values())
        self._known = dict(injected or {}) | {fingerprint(memory.value): key for key, memory in held.items()}
        self._done: dict[tuple[str, str], ToolOutcome] = {}
        self._moves: dict[str, str] = {}
        self._edits: list[Edit] = []

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return specs(self._rules.valid_keys)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """What the store has to do, in the order the model asked for it."""
        return tuple(self._edits)

    @property
    def total(self) -> int:
        """Tokens of all values together, as they will be."""
        return self._total

    def run(self, call: ToolCall) -> ToolOutcome:
        """Check one call and enter it; what is wrong with it is an outcome, never an exception."""
        given = arguments(call)
        if isinstance(given, ToolOutcome):
            return given
        key, value = well_formed(given["key"]), well_formed(given.get("value", ""))
        signature = (call.name, json.dumps([key, value]))
        before = self._done.get(signature)
        if before is not None:
            return ToolOutcome(call.id, call.name, before.key, ToolStatus.REPEATED, before.text)
        outcome = self._set(call, key, value.strip()) if call.name == SET_MEMORY else self._delete(call, key)
        if outcome.edits:
            self._edits += outcome.edits
            self._done = {call: past for call, past in self._done.items() if _still_stands(past, outcome.key)}
        self._done[signature] = outcome
        return outcome

    def _set(self, call: ToolCall, key: str, value: str) -> ToolOutcome:
        refused = self._refuse(call, key, value)
        if refused is not None:
            return refused
        key = self._resolved(key)
        words = fingerprint(value)
        elsewhere = self._known.get(words)
        if elsewhere is not None and elsewhere != key:
            self._moves[elsewhere] = key
            return self._already(call, elsewhere, value)
        tokens = self._count(value)
        base = self._total - (self._held[key].tokens if key in self._held else 0)
        refused = self._exceed(call, key, base=base, tokens=tokens)
        if refused is not None:
            return refused
        held, support = Held(tokens, value), self._witnesses.support(value)
        self._put(key, held)
        same = elsewhere == key
        return ToolOutcome(
            call.id,
            SET_MEMORY,
            key,
            ToolStatus.REFRESHED if same else ToolStatus.SET,
            f'Memory set for key "{key}" ({tokens} tokens)',
            {"key": key, "value": value, "tokenCount": tokens, "type": "update"},
            () if same and not _said_by_user(support) else (self._edit(key, held, support),),
        )

    def _resolved(self, key: str) -> str:
        """Return the key as it is kept: a key that exists or is allowed as it is, any other one normalised."""
        return key if key in self._held or self._rules.valid_keys else normal_key(key)

    def _put(self, key: str, held: Held) -> None:
        self._take(key)
        self._held[key] = held
        self._known[fingerprint(held.value)] = key
        self._total += held.tokens

    def _take(self, key: str) -> Held | None:
        held = self._held.pop(key, None)
        if held is not None:
            self._total -= held.tokens
            words = fingerprint(held.value)
            if self._known.get(words) == key:
                del self._known[words]
        return held

    def _refuse(self, call: ToolCall, key: str, value: str) -> ToolOutcome | None:
        rules = self._rules
        if utf16_length(key) > MAX_KEY_CHARS:
            text = f"Key exceeds maximum length of {MAX_KEY_CHARS} characters."
            return _refused(call, "", ToolStatus.KEY_TOO_LONG, text)
        if rules.char_limit and utf16_length(value) > rules.char_limit:
            text = f"Value exceeds maximum length of {plain_number(rules.char_limit)} characters."
            return _refused(call, key, ToolStatus.VALUE_TOO_LONG, text)
        refused = self._refuse_key(call, key)
        if refused is None and not value:
            return _refused(call, key, ToolStatus.VALUE_EMPTY, f'The value for key "{key}" is empty.')
        return refused

    def _refuse_key(self, call: ToolCall, key: str) -> ToolOutcome | None:
        valid = self._rules.valid_keys
        if valid and key not in valid:
            text = f'Invalid key "{key}". Must be one of: {", ".join(valid)}'
            return _refused(call, key, ToolStatus.INVALID_KEY, text)
        if self._resolved(key.strip()) in {"", RESERVED_KEY}:
            text = f'The key "{key}" cannot be used. Choose one of lower-case letters a to z, digits and underscores.'
            return _refused(call, key, ToolStatus.KEY_UNUSABLE, text)
        return None

    def _exceed(self, call: ToolCall, key: str, *, base: int, tokens: int) -> ToolOutcome | None:
        limit = self._rules.token_limit
        if not limit or (base < limit and base + tokens <= limit):
            return None
        if base >= limit:
            status, over, total = ToolStatus.ALREADY_EXCEEDED, base - limit, base
            text = "Memory storage exceeded. Cannot save new memories."
        else:
            status, over, total = ToolStatus.WOULD_EXCEED, base + tokens - limit, base + tokens
            text = "Memory storage would exceed limit. Cannot save this memory."
        detail = {
            "errorType": status.value,
            "tokenCount": plain_number(over),
            "totalTokens": total,
            "tokenLimit": plain_number(limit),
        }
        value = json.dumps(detail, separators=(",", ":"))
        artifact = {"key": "system", "type": "error", "value": value, "tokenCount": base}
        return ToolOutcome(call.id, call.name, key, status, text, artifact)

    def _already(self, call: ToolCall, key: str, value: str) -> ToolOutcome:
        """Answer a set of words that are remembered elsewhere; only the user's own saying so makes them fresh again."""
        support = self._witnesses.support(value)
        held = self._held.get(key)
        edits = (self._edit(key, held, support),) if held is not None and _said_by_user(support) else ()
        return ToolOutcome(
            call.id,
            SET_MEMORY,
            key,
            ToolStatus.REFRESHED,
            f'Already remembered under key "{key}".',
            edits=edits,
        )

    def _edit(self, key: str, held: Held, support: Support) -> SetMemory:
        return SetMemory(
            key=key,
            value=held.value,
            tokens=held.tokens,
            source=support.source,
            evidence=support.evidence,
            terms=terms(held.value),
            trusted=support.trusted,
        )

    def _delete(self, call: ToolCall, key: str) -> ToolOutcome:
        valid = self._rules.valid_keys
        if valid and key not in valid:
            text = f'Invalid key "{key}". Must be one of: {", ".join(valid)}'
            return _refused(call, key, ToolStatus.INVALID_KEY, text)
        key = self._resolved(key)
        held = self._take(key)
        if held is None:
            return _refused(call, key, ToolStatus.MISSING, f'Failed to delete memory for key "{key}"')
        return ToolOutcome(
            call.id,
            DELETE_MEMORY,
            key,
            ToolStatus.DELETED,
            f'Memory deleted for key "{key}"',
            {"key": key, "type": "delete"},
            (DeleteMemory(key), *self._moved(key, held)),
        )

    def _moved(self, old: str, held: Held) -> tuple[Edit, ...]:
        """Carry out a set that was answered with "already remembered", now that the old key of its words is gone.

        A model renames by setting the new key and then deleting the old one: without this the words would be lost.
        """
        key = self._moves.pop(old, None)
        if key is None:
            return ()
        self._put(key, held)
        return (self._edit(key, held, self._witnesses.support(held.value)),)


def _still_stands(past: ToolOutcome, changed: str) -> bool:
    """Whether a past call would end the same way after `changed` changed."""
    return past.key != changed and past.status not in {ToolStatus.WOULD_EXCEED, ToolStatus.ALREADY_EXCEEDED}


def _said_by_user(support: Support) -> bool:
    return support.source is Source.AGENT and bool(support.evidence.quote)


def _refused(call: ToolCall, key: str, status: ToolStatus, text: str) -> ToolOutcome:
    return ToolOutcome(call.id, call.name, key, status, text)


def plain_number(number: float | None) -> Any:
    """Return a whole number without its `.0`, as JavaScript writes it."""
    return int(number) if number is not None and float(number).is_integer() else number
