"""Learning from a turn: gate, prompt, model, apply, receipt. Exactly once per message id."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

from memagent.agent.context import injected_words
from memagent.agent.evidence import Witnesses
from memagent.agent.extract import extract
from memagent.agent.ledger import Held, Ledger, Rules
from memagent.agent.prompt import Budget, Prompt, build
from memagent.config.endpoints import resolve_target
from memagent.config.placeholders import BodyIds, UserFields, expand_special
from memagent.config.settings import AgentOff, MemoryOff
from memagent.errors import EmbedderFault, MemagentError, ModelFault, StoreFault
from memagent.service import hands
from memagent.service.embedding import embedded
from memagent.service.recall import MEMORIES, recall
from memagent.service.receipt import Cost, Decision, Reason, RecallNote, Receipt, done
from memagent.store import CONSENT
from memagent.tokens import count_tokens
from memagent.turn import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from memagent.agent.extract import Extraction
    from memagent.config.agents import AgentSpec
    from memagent.config.endpoints import ModelTarget
    from memagent.memory import Memory
    from memagent.service.ports import Ports
    from memagent.store import Edit
    from memagent.turn import Turn

log = logging.getLogger("memagent.observe")


@dataclass(slots=True)
class Stopwatch:
    """Milliseconds per step; the monotonic clock is measured, never decided by."""

    spent: dict[str, float] = field(default_factory=dict)
    _started: float = field(default_factory=perf_counter)

    def lap(self, name: str) -> None:
        now = perf_counter()
        self.spent[name] = round(self.spent.get(name, 0.0) + (now - self._started) * 1000, 2)
        self._started = now

    def timings(self) -> dict[str, float]:
        """Every step so far, and their sum."""
        return {**self.spent, "total": round(sum(self.spent.values()), 2)}


async def observe(
    ports: Ports, turn: Turn, *, recalled: RecallNote | None, quoted: Mapping[str, str] | None = None
) -> Receipt:
    """Learn from one turn and say what was done; raises `StoreFault` when that cannot even be written down.

    `quoted` are fingerprints of what auto recall put into the chat (`agent.context.quoted_words`): not read again.
    """
    watch = Stopwatch()
    blank = skipped(turn, at=ports.clock())
    agent = ports.settings.memory.agent
    nothing = switched_off(ports, turn)
    if nothing is not None or agent is None:
        return nothing or replace(blank, reason=Reason.AGENT_NOT_USABLE)
    standing = await ports.store.standing(turn.scopes, turn.message_id, switch=CONSENT)
    earlier, (memories, *others) = standing.receipt, standing.memories
    if earlier is not None and earlier.get("decision") == Decision.RAN:
        return replace(
            blank,
            reason=Reason.ALREADY_SEEN,
            detail=f"learned from at {earlier['at']}; nothing was done again",
        )
    if not any(text_of(message.content).strip() for message in turn.messages if message.role == "user"):
        return replace(blank, reason=Reason.NOTHING_SAID, detail="no message of the user has any text")
    if standing.switch is False:
        return opted_out(turn, at=ports.clock())
    watch.lap("read")
    note = recalled if recalled is not None else await _recalled(ports, turn)
    watch.lap("recall")
    blank = replace(blank, recall=note)
    try:
        injected = injected_words(memory for held in (*others, memories) for memory in held if memory.trusted)
        receipt = await _learn(
            ports,
            turn,
            memories,
            agent=agent,
            injected=injected,
            quoted=quoted or {},
            receipt=blank,
            watch=watch,
        )
    except StoreFault:
        raise
    except MemagentError as fault:
        log.warning("a turn failed", extra={"code": fault.code, "message_id": turn.message_id})
        receipt = failed(blank, fault)
    receipt = replace(receipt, timings_ms=watch.timings())
    kept_with_edits = receipt.decision is Decision.RAN or receipt.reason == Reason.ALREADY_SEEN
    if not kept_with_edits:
        await ports.store.save_receipt(turn.own, turn.message_id, receipt.to_json())
    return receipt


def off(ports: Ports) -> tuple[str, str] | None:
    """Why this configuration learns nothing from anybody, if so."""
    memory = ports.settings.memory
    if memory.off is not None:
        return memory.off.value, OFF_BECAUSE[memory.off]
    if not memory.agent_usable:
        return Reason.AGENT_NOT_USABLE, AGENT_OFF_BECAUSE[memory.agent_off or AgentOff.NO_AGENT]
    return None


OFF_BECAUSE = {
    MemoryOff.NO_BLOCK: "there is no `memory:` block",
    MemoryOff.DISABLED: "`memory.disabled` is true",
    MemoryOff.NOT_PERSONALIZED: "`memory.personalize` is false",
}
AGENT_OFF_BECAUSE = {
    AgentOff.NO_AGENT: "`memory.agent` is not set, so nothing is learned",
    AgentOff.DISABLED: "`memory.agent.enabled` is false, so nothing is learned",
    AgentOff.NO_AGENTS_FILE: "`memory.agent.id` names a saved agent, and MEMAGENT_AGENTS_FILE does not say where they are",
}


async def _recalled(ports: Ports, turn: Turn) -> RecallNote:
    """The turn's own search, where its backend asked for no context; a search that fails is noted and counts nothing."""
    try:
        return (await recall(ports, turn, sources=(MEMORIES,))).note
    except MemagentError as fault:
        return RecallNote(error=fault.code)


async def _learn(
    ports: Ports,
    turn: Turn,
    memories: Sequence[Memory],
    *,
    agent: AgentSpec,
    injected: Mapping[str, str],
    quoted: Mapping[str, str],
    receipt: Receipt,
    watch: Stopwatch,
) -> Receipt:
    target = target_of(ports, turn, agent)
    # Words of a memory are remembered already; those of a passage the user may yet say, and have them remembered.
    unread = {**quoted, **injected}
    prompt = _prompt(ports, turn, memories, agent=agent, target=target, injected=unread)
    ledger = Ledger(
        {memory.key: Held(memory.tokens, memory.value) for memory in memories},
        rules=rules_of(ports),
        count=count_tokens,
        witnesses=Witnesses(prompt.window, conversation_id=turn.conversation_id),
        injected=injected,
    )
    watch.lap("prompt")
    extraction = await extract(ports.models(target), prompt, ledger)
    watch.lap("model")
    drafted = asked(receipt, extraction)
    if extraction.fault is not None and not extraction.edits:
        return failed(drafted, extraction.fault)
    edits = await _embedded(ports, extraction.edits)
    watch.lap("embed")
    limits = hands.limits(ports, turn.own, forget=receipt.recall.searched)
    applied = await ports.store.apply(
        turn.own,
        edits,
        limits=limits,
        now=ports.clock(),
        message_id=turn.message_id,
        receipt=replace(drafted, timings_ms=watch.timings()).to_json(),
    )
    watch.lap("apply")
    return done(drafted, applied)


def rules_of(ports: Ports) -> Rules:
    memory = ports.settings.memory
    return Rules(memory.valid_keys, memory.token_limit, memory.char_limit)


def _prompt(
    ports: Ports,
    turn: Turn,
    memories: Sequence[Memory],
    *,
    agent: AgentSpec,
    target: ModelTarget,
    injected: Mapping[str, str],
) -> Prompt:
    memory = ports.settings.memory
    name = str(turn.user_fields.get("name") or turn.user_fields.get("username") or "")
    return build(
        turn.messages,
        memories,
        rules=rules_of(ports),
        budget=Budget(memory.message_window_size, memory.max_input_tokens),
        count=count_tokens,
        instructions=expand_special(agent.instructions, now=ports.clock(), user_name=name) or None,
        injected=injected,
        system_role=not target.merge_system_into_user,
    )


def target_of(ports: Ports, turn: Turn, agent: AgentSpec) -> ModelTarget:
    """The agent's model for this turn; raises `ModelRefused` or `NoUserKey` when it cannot be called."""
    return resolve_target(
        ports.settings,
        agent=agent,
        environ=ports.environ,
        user=UserFields(turn.user, turn.user_fields),
        body=BodyIds(turn.conversation_id, turn.message_id),
        user_key=turn.user_key,
        user_base_url=turn.user_base_url,
        timeout_s=ports.options.model_timeout_s,
    )


async def _embedded(ports: Ports, edits: Sequence[Edit]) -> list[Edit]:
    """The edits with their vectors; without them when the embedder is down, to be embedded later (T48)."""
    try:
        return await embedded(ports.embedder, edits)
    except EmbedderFault as fault:
        log.warning("new memories are not searched yet", extra={"code": fault.code})
        return list(edits)


# -- receipts ----------------------------------------------------------------------------------------------------------


def skipped(turn: Turn, *, at: datetime) -> Receipt:
    """The receipt of a turn that nothing was done for yet."""
    return Receipt(
        user=turn.user,
        conversation_id=turn.conversation_id,
        message_id=turn.message_id,
        at=at.isoformat(),
        decision=Decision.SKIPPED,
    )


def switched_off(ports: Ports, turn: Turn) -> Receipt | None:
    """The receipt of a turn that this configuration learns nothing from, if so."""
    why = off(ports)
    return None if why is None else replace(skipped(turn, at=ports.clock()), reason=why[0], detail=why[1])


def opted_out(turn: Turn, *, at: datetime) -> Receipt:
    return replace(skipped(turn, at=at), reason=Reason.OPTED_OUT, detail=hands.OPTED_OUT)


def failed(receipt: Receipt, fault: MemagentError) -> Receipt:
    error = {"code": fault.code, "message": str(fault), "retryable": fault.retryable}
    step = "the model" if isinstance(fault, ModelFault) else "memory"
    return replace(receipt, decision=Decision.FAILED, detail=f"{step} failed: {fault}", error=error)


def asked(receipt: Receipt, extraction: Extraction) -> Receipt:
    """The receipt with what the model was asked and did."""
    usage = extraction.usage
    fault = extraction.fault
    return replace(
        receipt,
        decision=Decision.RAN,
        model=extraction.calls[-1].model if extraction.calls else "",
        stopped=extraction.stopped.value,
        error={"code": fault.code, "message": str(fault), "retryable": fault.retryable} if fault else None,
        calls=tuple(
            {
                "model": call.model,
                "finish_reason": call.finish_reason,
                "tool_calls": call.tool_calls,
                "input_tokens": call.usage.input_tokens,
                "output_tokens": call.usage.output_tokens,
                "cache_read_tokens": call.usage.cache_read_tokens,
                "usd": call.usage.cost_usd,
            }
            for call in extraction.calls
        ),
        tools=tuple(
            {"tool": each.tool, "key": each.key, "outcome": each.status.value, "told": each.text}
            for each in extraction.tool_outcomes
        ),
        cost=Cost(
            calls=len(extraction.calls),
            input_tokens=usage.input_tokens + usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
            usd=usage.cost_usd,
        ),
    )
