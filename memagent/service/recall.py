"""Recall on the way to the answer: one embedding, one search, a prefix that stays and a tail that changes.

Where turns or notes are kept, auto recall asks them meanwhile, with the same vector. All of it has a budget and fails open: a chat never breaks because memory is down.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from memagent.agent.context import render_prefix, render_tail
from memagent.deadline import within
from memagent.errors import EmbedderFault, MemagentError
from memagent.lexicon import terms
from memagent.service.receipt import RecallNote
from memagent.store import Recalled, RecallQuery
from memagent.turn import text_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from memagent.llm import Embedder, Vector
    from memagent.memory import Memory
    from memagent.service.ports import Ports
    from memagent.sessions.auto_recall import Recollection
    from memagent.store import Hit
    from memagent.turn import Turn

log = logging.getLogger("memagent.recall")


@dataclass(frozen=True, slots=True)
class Context:
    """What goes into the prompt: `prefix` first, byte-identical until a memory changes state; `tail` beside the documents.

    Both are empty strings when there is nothing to say. `note` is what the receipt keeps of it.
    """

    prefix: str = ""
    tail: str = ""
    note: RecallNote = field(default_factory=RecallNote)
    recalled: Recalled | None = None


OVER_BUDGET = "over_budget"
"""The search did not answer within MEMAGENT_RECALL_BUDGET_MS."""


def memory_is_off(ports: Ports) -> bool:
    """The configuration switches memory off for everybody."""
    return not ports.settings.memory.enabled


MEMORIES, TURNS, NOTES = SOURCES = ("memories", "turns", "notes")
"""What may be asked; keyed memories always stand, the others where they are configured."""


async def context(ports: Ports, turn: Turn) -> Context:
    """The memories for this turn within the recall budget; empty, with the reason in the note, when it cannot be had."""
    if memory_is_off(ports):
        return Context()
    deadline = asyncio.get_running_loop().time() + ports.options.recall_budget_ms / 1000
    try:
        return await recall(ports, turn, deadline=deadline)
    except TimeoutError:
        code = OVER_BUDGET
    except MemagentError as fault:
        code = fault.code
    log.warning("recall failed open", extra={"code": code, "message_id": turn.message_id})
    return Context(note=RecallNote(error=code))


async def recall(
    ports: Ports,
    turn: Turn,
    *,
    commit: bool = True,
    sources: Collection[str] | None = None,
    deadline: float | None = None,
) -> Context:
    """Search for this turn's message, count the day, and render what matters; raises `StoreFault`.

    `commit` false answers the same and counts nothing: explaining must not change what it explains. `sources` names what
    is asked, else what a turn asks; without keyed memories nothing counts. Past `deadline`, on the loop's clock, keyed
    memories raise `TimeoutError`, and turns and notes are left out.
    """
    wanted = sources is None or MEMORIES in sources
    async with AsyncExitStack() as opened:
        vector, error = await within(_left(deadline), _embed(ports.embedder, turn.query))
        aside = None if error else _begin(ports, turn, vector, sources, patient=deadline is None)
        if aside is not None:
            opened.push_async_callback(_stop, aside)
        query = recall_query(ports, turn, vector, commit=commit and wanted)
        recalled = await within(_left(deadline), ports.store.recall(turn.scopes, query))
        if recalled.opted_out:
            return Context(note=RecallNote(error="opted_out"), recalled=recalled)
        found = _found(ports, recalled if wanted else replace(recalled, active=(), hits=()), error)
        return found if aside is None else await _with_passages(found, aside, deadline)


def _left(deadline: float | None) -> float | None:
    """Seconds until then, on the loop's clock."""
    return None if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())


def _found(ports: Ports, recalled: Recalled, error: str | None) -> Context:
    """The context of keyed memories alone."""
    back = tuple(hit.memory for hit in recalled.hits if hit.used and hit.memory.dormant)
    note = RecallNote(
        searched=recalled.searched,
        embedder=ports.embedder.id if ports.embedder else "",
        floor=_floor(ports),
        matches=tuple(match(hit) for hit in recalled.hits[:MATCHES_KEPT]),
        prefix=tuple(memory.key for memory in recalled.active),
        tail=tuple(memory.key for memory in back),
        error=error,
    )
    prefix = _prefix_text(_Prefix(recalled.etag, recalled.active)) if recalled.active else ""
    return Context(prefix, render_tail(back), note, recalled)


@dataclass(frozen=True, slots=True)
class _Prefix:
    """Active memories; the etag alone says which, for it changes exactly when they do."""

    etag: str
    active: tuple[Memory, ...] = field(compare=False)


@lru_cache(maxsize=256)
def _prefix_text(prefix: _Prefix) -> str:
    return render_prefix(prefix.active)


def _begin(
    ports: Ports, turn: Turn, vector: Vector | None, sources: Collection[str] | None, *, patient: bool
) -> asyncio.Task[Recollection] | None:
    """Ask turns and notes beside the keyed search; None when nobody wants them."""
    passages = ports.passages
    if passages is None or (passages.when == "off" if sources is None else not {TURNS, NOTES} & {*sources}):
        return None
    return asyncio.create_task(passages.recall(turn, vector, sources=sources, patient=patient))


async def _stop(task: asyncio.Task[Recollection]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _with_passages(
    found: Context, aside: asyncio.Task[Recollection], deadline: float | None
) -> Context:
    """The context with what turns and notes brought back, if they answer in time."""
    from memagent.service.passages import told  # noqa: PLC0415  only where passages are kept

    done, _ = await asyncio.wait({aside}, timeout=_left(deadline))
    if not done:
        return replace(found, note=replace(found.note, passages_error=OVER_BUDGET))
    if bug := aside.exception():
        log.error("a bug in auto recall", extra={"kind": type(bug).__name__})
        return replace(found, note=replace(found.note, passages_error="internal_error"))
    back = aside.result()
    tail = "\n\n".join(block for block in (found.tail, back.text) if block)
    return replace(
        found, tail=tail, note=replace(found.note, passages=told(back.hits), passages_error=back.error)
    )


MATCHES_KEPT = 10
"""Candidates a receipt keeps: enough to see what nearly counted."""


def recall_query(ports: Ports, turn: Turn, vector: Vector | None, *, commit: bool) -> RecallQuery:
    options = ports.options
    words = terms(turn.query)
    return RecallQuery(
        now=ports.clock(),
        vector=vector,
        embedder=ports.embedder.id if ports.embedder else "",
        terms=words,
        floor=_floor(ports),
        used=options.used_set,
        decay=options.memory_decay_enabled,
        dormant_after_days=options.dormant_after_days,
        commit=commit,
        context_terms=lambda: _in_sight(turn),
        channel=turn.channel,
    )


def match(hit: Hit) -> dict[str, object]:
    """A candidate as a receipt keeps it: where and how well, never what."""
    return {
        "scope": hit.scope.kind.value,
        "key": hit.memory.key,
        "score": round(hit.score, 4),
        "parts": {name: round(part, 4) for name, part in hit.parts.items()},
        "used": hit.used,
        "dormant": hit.memory.dormant,
        "reason": hit.reason,
    }


def _in_sight(turn: Turn) -> tuple[str, ...]:
    """The words of the whole visible history: a tagged memory is in reach while its tag stands there (T20)."""
    # Message by message: nearly all of them were read for the turn before.
    said = (terms(text_of(message.content)) for message in turn.messages[-VISIBLE_MESSAGES:])
    return tuple(dict.fromkeys(chain.from_iterable(said)))


VISIBLE_MESSAGES = 80
"""What a chat still shows of itself (spec/seeds.md §2.6)."""


def _floor(ports: Ports) -> float:
    if ports.options.match_floor is not None:
        return ports.options.match_floor
    return ports.embedder.floor if ports.embedder else 1.0


async def _embed(embedder: Embedder | None, query: str) -> tuple[Vector | None, str | None]:
    if embedder is None or not query:
        return None, None
    try:
        return await embedder.query(query), None
    except EmbedderFault as error:
        log.warning("the embedder failed; answering without a search", extra={"code": error.code})
        return None, error.code
