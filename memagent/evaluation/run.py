"""The asking: each labelled turn through the real prompt, ledger and loop, with nothing else around it. No Redis, no search."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memagent.agent.context import injected_words
from memagent.agent.evidence import Witnesses
from memagent.agent.extract import Stopped, extract
from memagent.agent.ledger import Held, Ledger, Rules
from memagent.agent.prompt import Budget, build
from memagent.agent.tools import RETRYABLE
from memagent.errors import ModelFault
from memagent.evaluation.outcome import Outcome
from memagent.memory import Memory
from memagent.store import SetMemory
from memagent.tokens import count_tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from memagent.agent.extract import Extraction
    from memagent.agent.prompt import Prompt
    from memagent.evaluation.labelled import Labelled
    from memagent.evaluation.outcome import Results
    from memagent.llm import ChatModel

STORED_AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
"""When everything that a turn remembers was stored: dates stand in the prompt, and it must be the same every time."""

UNANSWERED = frozenset({Stopped.CUT_OFF, Stopped.FILTERED})
"""Ends that say nothing about what the model would remember."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How every turn is asked. `name` and `settings` make two askings different: the answers of one are not the other's.

    `attempts` and `pause_s` are for a provider that is busy: so many tries, the pause doubling after each.
    """

    name: str
    models: Callable[[Labelled], ChatModel]
    settings: Mapping[str, Any] = field(default_factory=dict)
    instructions: str | None = None
    budget: Budget = field(default_factory=Budget)
    char_limit: float | None = None
    system_role: bool = True
    concurrency: int = 4
    attempts: int = 3
    pause_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Watch:
    """Seconds, and waiting for them."""

    seconds: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


async def evaluate(
    turns: Sequence[Labelled],
    asking: Asking,
    results: Results,
    *,
    watch: Watch,
    told: Callable[[Outcome], None] = lambda _: None,
) -> dict[str, Outcome]:
    """Every turn's outcome by its id. What `results` knows already is not asked again; a model's fault is an outcome."""
    room = asyncio.Semaphore(asking.concurrency)

    async def one(turn: Labelled) -> Outcome:
        async with room:
            question = _Question(turn, asking)
            known = results.get(turn.id, question.digest)
            outcome = known or await question.ask(watch)
            if known is None:
                results.add(outcome)
            told(outcome)
            return outcome

    return {outcome.turn: outcome for outcome in await asyncio.gather(*map(one, turns))}


class _Question:
    """One turn as the model is asked about it."""

    def __init__(self, turn: Labelled, asking: Asking) -> None:
        self._turn = turn
        self._asking = asking
        self._rules = Rules(turn.valid_keys, None, asking.char_limit)
        memories = [
            Memory(key, value, count_tokens(value), STORED_AT, STORED_AT)
            for key, value in turn.remembered.items()
        ]
        self._injected = injected_words(memories)
        self._prompt: Prompt = build(
            turn.messages,
            memories,
            rules=self._rules,
            budget=asking.budget,
            count=count_tokens,
            instructions=asking.instructions,
            injected=self._injected,
            system_role=asking.system_role,
        )

    @property
    def digest(self) -> str:
        """32 hex digits of everything that the answer depends on."""
        asked = [
            self._asking.name,
            sorted(self._asking.settings.items()),
            [(message.role, message.content) for message in self._prompt.messages],
        ]
        text = json.dumps(asked, ensure_ascii=False, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    async def ask(self, watch: Watch) -> Outcome:
        pause = self._asking.pause_s
        for attempts_left in range(self._asking.attempts - 1, -1, -1):
            outcome, again = await self._attempt(watch)
            if not again or not attempts_left:
                break
            await watch.sleep(pause)
            pause *= 2
        return outcome

    async def _attempt(self, watch: Watch) -> tuple[Outcome, bool]:
        """One try, and whether another may end better."""
        ledger = Ledger(
            {key: Held(count_tokens(value), value) for key, value in self._turn.remembered.items()},
            rules=self._rules,
            count=count_tokens,
            witnesses=Witnesses(self._prompt.window, conversation_id=self._turn.id),
            injected=self._injected,
        )
        started = watch.seconds()
        try:
            extraction = await extract(self._asking.models(self._turn), self._prompt, ledger)
        except ModelFault as fault:
            return Outcome(self._turn.id, self.digest, fault=fault.code, told=str(fault)), fault.retryable
        ms = round((watch.seconds() - started) * 1000, 1)
        later = extraction.fault
        return self._outcome(extraction, ms), later is not None and later.retryable

    def _outcome(self, extraction: Extraction, ms: float) -> Outcome:
        after = dict(self._turn.remembered)
        trusted: dict[str, bool] = {}
        for edit in extraction.edits:
            after.pop(edit.key, None)
            if isinstance(edit, SetMemory):
                after[edit.key] = edit.value
                trusted[edit.key] = edit.trusted
        code, told = _fault(extraction)
        usage = extraction.usage
        return Outcome(
            turn=self._turn.id,
            asked=self.digest,
            after=after,
            untrusted=tuple(sorted(key for key, held in trusted.items() if not held and key in after)),
            stopped=extraction.stopped.value,
            fault=code,
            told=told,
            calls=len(extraction.calls),
            refused_calls=sum(each.status in RETRYABLE for each in extraction.tool_outcomes),
            input_tokens=usage.input_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
            usd=usage.cost_usd,
            ms=ms,
        )


def _fault(extraction: Extraction) -> tuple[str, str]:
    """Code and words of what kept the model from finishing, if anything did."""
    if extraction.fault is not None:
        return extraction.fault.code, str(extraction.fault)
    if extraction.stopped in UNANSWERED:
        return extraction.stopped.value, "the provider ended the answer before the model called a tool"
    return "", ""
