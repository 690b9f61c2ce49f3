"""Memories in and out: memagent's own export, and bringing memories in from it or from elsewhere (`service.imports`)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from memagent.admission import check_key, check_value, normal_key
from memagent.errors import MemagentError, PersonalizationOff
from memagent.lexicon import fingerprint, terms
from memagent.memory import ScopeKind, Source
from memagent.service import hands
from memagent.service.embedding import embedded
from memagent.service.imports import Format, Wanted, read
from memagent.service.imports.own import VERSION
from memagent.store import CONSENT, EditOutcome, EditStatus, Refusal, SetMemory
from memagent.tokens import count_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.memory import Memory, Scope
    from memagent.service.imports import Incoming
    from memagent.service.ports import Ports
    from memagent.store import Change, Limits


def as_json(memory: Memory) -> dict[str, Any]:
    """One memory as people and programs get it: everything but its vector."""
    return {
        "key": memory.key,
        "value": memory.value,
        "tokens": memory.tokens,
        "source": memory.source.value,
        "protected": memory.protected,
        "trusted": memory.trusted,
        "created_at": memory.created_at.isoformat(),
        "updated_at": memory.updated_at.isoformat(),
        "last_matched_at": memory.last_matched_at.isoformat() if memory.last_matched_at else None,
        "unused_days": memory.unused_days,
        "dormant": memory.dormant,
        "searched": memory.searched,
        "tags": list(memory.tags),
        "evidence": asdict(memory.evidence),
    }


def change_json(change: Change) -> dict[str, Any]:
    return {**asdict(change), "at": change.at.isoformat(), "source": change.source.value}


def exported(memories: Sequence[Memory], *, user: str) -> dict[str, Any]:
    """Memagent's own export; `bring_in` takes it back."""
    return {"memagent": VERSION, "user": user, "memories": [as_json(memory) for memory in memories]}


def as_markdown(memories: Sequence[Memory], *, user: str) -> str:
    """For people: one point per memory, oldest first; what waits for review says so."""
    lines = [f"# What is remembered about {user}", ""]
    for memory in sorted(memories, key=lambda memory: (memory.created_at, memory.key)):
        value = memory.value.strip().replace("\n", "\n  ")
        review = "" if memory.trusted else ", to review"
        lines.append(f"- **{memory.key}**: {value} _({memory.updated_at.date().isoformat()}{review})_")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was, or in a dry run would be, taken in; `refused` says why, item by item. No value is in it."""

    taken: tuple[str, ...]
    known: tuple[str, ...]
    """Keys whose words were remembered already."""
    refused: tuple[dict[str, str], ...]
    """`key`, `code`, `why`; without a key for what has no name, or is counted together."""
    dry_run: bool
    format: Format

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "format": self.format.value}


async def bring_in(
    ports: Ports, scope: Scope, data: Any, *, source: Format | None, owner: str | None, dry_run: bool
) -> ImportReport:
    """Import decoded data in one atomic step; what does not fit is reported, never cut.

    `source` None finds the format out; `owner` is whose memories are wanted where data holds several people's. Imported
    memories are not protected (T34) and nothing is forgotten for them (T39). Raises `BadRequest` when the whole cannot be
    read, and then nothing is stored.
    """
    hands.refuse_if_off(ports)
    if scope.kind is not ScopeKind.SHARED and await ports.store.preference(scope.owner, CONSENT) is False:
        raise PersonalizationOff(hands.OPTED_OUT)
    format, found = read(data, source, Wanted(owner, scope.agent))  # noqa: A001  the word for it
    memories = await ports.store.list(scope)
    edits: list[SetMemory] = []
    refused = [asdict(each) for each in found.left_out]
    for item in keyed(found.items, memories, valid_keys=ports.settings.memory.valid_keys):
        try:
            edits.append(_edit(ports, item))
        except MemagentError as fault:
            refused.append({"key": item.key, "code": fault.code, "why": str(fault)})
    limits = hands.limits(ports, scope)
    if dry_run:
        outcomes = rehearsed(memories, edits, limits)
    else:
        vectored = await embedded(ports.embedder, edits)
        applied = await ports.store.apply(scope, vectored, limits=limits, now=ports.clock())
        if applied.opted_out:
            raise PersonalizationOff(hands.OPTED_OUT)
        outcomes = applied.outcomes
    return _report(ports, edits, outcomes, refused=refused, dry_run=dry_run, format=format)


def rehearsed(
    memories: Sequence[Memory], edits: Sequence[SetMemory], limits: Limits
) -> tuple[EditOutcome, ...]:
    """What the store would answer to these edits, by its own rules, without asking it."""
    held = {memory.key: memory.value for memory in memories}
    tokens = {memory.key: memory.tokens for memory in memories}
    outcomes = []
    for edit in edits:
        known = {fingerprint(value): key for key, value in held.items()}
        where = known.get(fingerprint(edit.value))
        base = sum(tokens.values()) - tokens.get(edit.key, 0)
        refusal = None
        if where is None and limits.tokens and base + edit.tokens > limits.tokens:
            refusal = Refusal.ALREADY_EXCEEDED if base >= limits.tokens else Refusal.WOULD_EXCEED
        elif (
            where is None
            and limits.entries is not None
            and edit.key not in held
            and len(held) >= limits.entries
        ):
            refusal = Refusal.LIST_FULL
        elif where is None:
            held[edit.key], tokens[edit.key] = edit.value, edit.tokens
        status = EditStatus.REFUSED if refusal else EditStatus.REFRESHED if where else EditStatus.SET
        outcomes.append(EditOutcome(where or edit.key, status, refusal, tokens=sum(tokens.values())))
    return tuple(outcomes)


def keyed(
    items: Sequence[Incoming], memories: Sequence[Memory], *, valid_keys: Sequence[str]
) -> list[Incoming]:
    """The items under the keys they will have: a key of their own as it is, any other one where nothing else stands."""
    taken = {memory.key: fingerprint(memory.value) for memory in memories}
    as_named = [item.named and (bool(valid_keys) or item.key == normal_key(item.key)) for item in items]
    taken |= {item.key: fingerprint(item.value) for item, own in zip(items, as_named, strict=True) if own}
    found = []
    for item, own in zip(items, as_named, strict=True):
        words, number = fingerprint(item.value), 1
        wish = item.key if valid_keys else normal_key(item.key) or item.key
        key = wish
        while not own and taken.get(key, words) != words:
            number += 1
            key = f"{wish}_{number}"
        taken[key] = words
        found.append(replace(item, key=key))
    return found


def _edit(ports: Ports, item: Incoming) -> SetMemory:
    memory = ports.settings.memory
    check_key(item.key, valid_keys=memory.valid_keys)
    check_value(item.value, char_limit=memory.char_limit)
    return SetMemory(
        key=item.key,
        value=item.value,
        tokens=count_tokens(item.value),
        source=Source.IMPORT,
        terms=terms(item.value),
        tags=item.tags,
        trusted=item.trusted,
    )


def _report(
    ports: Ports,
    edits: Sequence[SetMemory],
    outcomes: Sequence[EditOutcome],
    *,
    refused: list[dict[str, str]],
    dry_run: bool,
    format: Format,  # noqa: A002  the word for it
) -> ImportReport:
    taken, known = [], []
    for edit, outcome in zip(edits, outcomes, strict=True):
        match outcome.status:
            case EditStatus.SET:
                taken.append(outcome.key)
            case EditStatus.REFRESHED:
                known.append(outcome.key)
            case _:
                try:
                    hands.raise_if_refused(outcome, edit, ports)
                except MemagentError as fault:
                    refused.append({"key": edit.key, "code": fault.code, "why": str(fault)})
    return ImportReport(tuple(taken), tuple(known), tuple(refused), dry_run, format)
