"""Between values and what the scripts read and write: JSON, milliseconds, half-precision vectors."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memagent.errors import BadRequest, Conflict, LimitExceeded, NotFound, PersonalizationOff
from memagent.lexicon import fingerprint
from memagent.memory import MAX_QUOTE_CHARS, Evidence, Memory, Scope, Source
from memagent.store import (
    Applied,
    Change,
    DeleteMemory,
    EditOutcome,
    EditStatus,
    Hit,
    Refusal,
    SetMemory,
    Totals,
)
from memagent.store.index import SEPARATOR, stored_term
from memagent.store.keys import embedder_tag, memory_key, plain, scope_id, tag_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memagent.llm import Vector
    from memagent.store import Edit, Limits

DAY_S = 86_400


dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def milliseconds(at: datetime) -> int:
    """Since 1970; raises `ValueError` for a time without zone: its date would be anybody's guess."""
    if at.tzinfo is None:
        raise ValueError("times carry their zone")
    return int(at.timestamp() * 1000)


def day_number(at: datetime) -> int:
    """Return the UTC date as days since 1970 (T14)."""
    return milliseconds(at) // (DAY_S * 1000)


@lru_cache(maxsize=8192)
def moment(milliseconds_text: str | int) -> datetime:
    return datetime.fromtimestamp(int(milliseconds_text) / 1000, UTC)


def half_precision(vector: Vector, dimensions: int | None) -> bytes:
    """Bytes of the vector as the index holds it; raises `BadRequest` when it is not one: it would hide its memory."""
    import numpy as np  # noqa: PLC0415  loads for vectors only

    array = np.asarray(vector, dtype=np.float32)
    if array.ndim != 1 or (dimensions is not None and array.shape[0] != dimensions):
        raise BadRequest(f"a vector of this embedder has {dimensions} dimensions, not shape {array.shape}")
    with np.errstate(over="ignore"):
        halves = array.astype("<f2")
    if not np.isfinite(halves).all() or not halves.any():
        raise BadRequest("a vector must be finite and not zero")
    return halves.tobytes()


def scope_row(scope: Scope) -> dict[str, Any]:
    return {"scope": scope_id(scope), "kind": scope.kind.value}


def joined_terms(terms: Sequence[str]) -> str:
    return SEPARATOR.join(dict.fromkeys(filter(None, map(stored_term, terms))))


def joined_tags(tags: Sequence[str]) -> str:
    return SEPARATOR.join(tag_words(tags))


def limits_row(limits: Limits) -> dict[str, Any]:
    row: dict[str, Any] = {
        "forget": limits.forget,
        "days": limits.dormant_after_days,
        "partitions": limits.partitions,
    }
    if limits.tokens is not None:
        row["tokens"] = limits.tokens
    if limits.entries is not None:
        row["entries"] = limits.entries
    return row


def edit_row(edit: Edit) -> dict[str, Any]:
    """One edit as `lua/apply.lua` reads it, without its vector. Raises `InvalidKey` and `BadRequest`."""
    row: dict[str, Any] = {
        "key": memory_key(edit.key),
        "source": edit.source.value,
        "evidence": _evidence_json(edit.evidence),
    }
    if isinstance(edit, DeleteMemory):
        return {"op": "delete", **row}
    if not edit.value.strip():
        raise BadRequest(f"the value of `{edit.key}` is blank: a memory needs words (T50)")
    row |= {
        "op": "set",
        "value": plain(edit.value, "value"),
        "tokens": edit.tokens,
        "terms": joined_terms(edit.terms),
        "print": fingerprint(edit.value),
        "trusted": "1" if edit.trusted else "0",
        "create_only": edit.create_only,
    }
    if edit.tags:
        row |= {"tags": dumps([plain(tag, "tag") for tag in edit.tags]), "words": joined_tags(edit.tags)}
    if edit.rename_from is not None:
        row["rename_from"] = memory_key(edit.rename_from)
    return row


def memory_id(attempt: str, place: int, now: datetime) -> str:
    """24 hex digits, made as MongoDB's are: the second of creation, then what no other memory has (spec/librechat.md §6)."""
    rest = hashlib.blake2b(f"{attempt}/{place}".encode(), digest_size=8).hexdigest()
    return f"{int(now.timestamp()) & 0xFFFFFFFF:08x}{rest}"


def edit_rows(
    edits: Sequence[Edit], dimensions: Mapping[str, int], *, attempt: str, now: datetime
) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Rows of all edits, and the vectors they number from 2 on. `attempt` is what makes the ids of new memories unique."""
    rows, vectors = [], []
    for place, edit in enumerate(edits):
        row = {**edit_row(edit), "id": memory_id(attempt, place, now)}
        if isinstance(edit, SetMemory) and edit.vector is not None and edit.embedder:
            vectors.append(half_precision(edit.vector, dimensions.get(edit.embedder)))
            row |= {"emb": embedder_tag(edit.embedder), "vector": len(vectors) + 1}
        rows.append(row)
    return rows, vectors


def memory_of(row: Mapping[str, Any], *, embedder: str, dormant_after_days: int | None) -> Memory:
    """`embedder` is the tag of the current one; `dormant_after_days` None is decay switched off."""
    unused = int(row["unused"])
    return Memory(
        key=row["key"],
        value=row["value"],
        tokens=int(row["tokens"]),
        created_at=moment(row["created"]),
        updated_at=moment(row["updated"]),
        source=Source(row["source"]),
        protected=row["protected"] == "1",
        trusted=row["trusted"] == "1",
        unused_days=unused,
        dormant=dormant_after_days is not None and unused >= dormant_after_days,
        searched=row["emb"] == embedder,
        last_matched_at=_matched(row),
        evidence=_evidence_of(row["evidence"]),
        tags=() if row["tags"] in {"", "[]"} else tuple(json.loads(row["tags"])),
        id=row["id"],
    )


def _matched(row: Mapping[str, Any]) -> datetime | None:
    return moment(int(float(row["matched"]))) if row["matched"] else None


def totals_of(row: Mapping[str, Any]) -> Totals:
    return Totals(tokens=int(row["tokens"]), entries=int(row["entries"]))


def applied_of(answer: Mapping[str, Any], *, embedder: str, dormant_after_days: int | None) -> Applied:
    outcomes = tuple(
        EditOutcome(
            key=row["key"],
            status=EditStatus(row["status"]),
            refusal=Refusal(row["refusal"]) if row.get("refusal") else None,
            before=row.get("before"),
            tokens=int(row["tokens"]),
        )
        for row in answer.get("outcomes", ())
    )
    forgotten = tuple(
        memory_of(row, embedder=embedder, dormant_after_days=dormant_after_days)
        for row in answer.get("forgotten", ())
    )
    return Applied(
        outcomes,
        forgotten,
        totals_of(answer["totals"]),
        duplicate=bool(answer.get("duplicate")),
        opted_out=bool(answer.get("opted_out")),
    )


def hit_of(row: Mapping[str, Any], scope: Scope, active: Memory | None, view: Mapping[str, Any]) -> Hit:
    """A hit; `active` is its memory where the prefix has it: then only its counters are sent."""
    told = row["memory"]
    return Hit(
        scope=scope,
        memory=memory_of(told, **view) if active is None else _counted(active, told),
        score=float(row["score"]),
        parts={"vector": float(row["vector"]), "lexical": float(row["lexical"])},
        used=bool(row["used"]),
        reason=row["reason"],
    )


def _counted(memory: Memory, told: Mapping[str, Any]) -> Memory:
    unused, matched = int(told["unused"]), _matched(told)
    if (unused, matched) == (memory.unused_days, memory.last_matched_at):
        return memory
    return replace(memory, unused_days=unused, last_matched_at=matched)


def change_of(row: Mapping[str, Any]) -> Change:
    return Change(
        id=row["id"],
        at=moment(row["at"]),
        op=row["op"],
        key=row["key"],
        before=row["before"],
        after=row["after"],
        source=Source(row["source"]),
        evidence=_evidence_of(row["evidence"]),
        undoes=row["undoes"],
    )


def undone_of(answer: Mapping[str, Any], change_id: str | None) -> Change:
    """The change that took another back.

    Raises `NotFound`, `Conflict`, `PersonalizationOff` or `LimitExceeded`, as the script says.
    """
    match answer.get("error"):
        case None:
            return change_of(answer["change"])
        case "not_found":
            named = "a change to take back" if change_id is None else f"a change `{change_id}`"
            raise NotFound(f"there is not {named}: it is taken back already, or older than the history")
        case "conflict":
            raise Conflict(f"`{answer['key']}` has changed since: take the later change back first")
        case "opted_out":
            raise PersonalizationOff(
                "personalization is off: nothing can be brought back until it is on again"
            )
        case "list_full":
            raise LimitExceeded(f"the list is full: delete a memory before bringing `{answer['key']}` back")
        case _:
            raise LimitExceeded(
                f"bringing `{answer['key']}` back would pass the token limit: delete a memory first"
            )


NO_EVIDENCE = Evidence()


@lru_cache(maxsize=4096)
def _evidence_of(text: str) -> Evidence:
    if text in {"", "{}"}:
        return NO_EVIDENCE
    kept = json.loads(text)
    return Evidence(kept.get("c", ""), kept.get("m", ""), kept.get("q", ""))


def _evidence_json(evidence: Evidence) -> str:
    kept = {"c": evidence.conversation_id, "m": evidence.message_id, "q": evidence.quote[:MAX_QUOTE_CHARS]}
    return dumps({name: plain(text, "evidence") for name, text in kept.items() if text})
