"""What a person does to memories by hand: put, rename, accept, forget, undo, switch off and on.

Everything here is tied to no turn, so nothing is ever forgotten to make room (T39): a full list refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memagent.admission import check_key, check_value
from memagent.errors import Conflict, LimitExceeded, NoSuchMemory, PersonalizationOff
from memagent.lexicon import terms
from memagent.memory import Scope, ScopeKind, Source
from memagent.service.embedding import embed_unsearched, passage
from memagent.service.recall import memory_is_off
from memagent.store import CONSENT, DeleteMemory, EditStatus, Limits, Refusal, SetMemory
from memagent.tokens import count_tokens

if TYPE_CHECKING:
    from memagent.memory import Memory
    from memagent.service.ports import Ports
    from memagent.store import Change, EditOutcome


def limits(ports: Ports, scope: Scope, *, forget: bool = False) -> Limits:
    """What this scope may hold, by the configuration and by memagent's own settings."""
    options = ports.options
    shared = scope.kind is ScopeKind.SHARED
    return Limits(
        tokens=ports.settings.memory.token_limit,
        entries=options.max_shared_memories if shared else options.max_memories,
        forget=forget and options.memory_decay_enabled,
        dormant_after_days=options.dormant_after_days,
    )


def dormant_after(ports: Ports) -> int | None:
    """Unused days after which a memory shows as dormant; None while decay is off (T44)."""
    options = ports.options
    return options.dormant_after_days if options.memory_decay_enabled else None


async def put(
    ports: Ports,
    scope: Scope,
    key: str,
    value: str,
    *,
    source: Source = Source.USER,
    tags: tuple[str, ...] = (),
    create_only: bool = False,
    rename_from: str | None = None,
) -> Memory:
    """Write one memory by hand, which protects it (T33).

    Raises `InvalidKey`, `BadRequest` for a value, `LimitExceeded`, `Conflict` when the key is taken, `NoSuchMemory` when
    there is nothing to rename, `PersonalizationOff`.
    """
    memory = ports.settings.memory
    check_key(key, valid_keys=memory.valid_keys)
    check_value(value, char_limit=memory.char_limit)
    refuse_if_off(ports)
    vector, embedder = await passage(ports.embedder, value)
    edit = SetMemory(
        key=key,
        value=value,
        tokens=count_tokens(value),
        source=source,
        vector=vector,
        embedder=embedder,
        terms=terms(value),
        tags=tags,
        create_only=create_only,
        rename_from=rename_from,
    )
    return await _by_hand(ports, scope, edit)


async def _by_hand(ports: Ports, scope: Scope, edit: SetMemory) -> Memory:
    applied = await ports.store.apply(scope, [edit], limits=limits(ports, scope), now=ports.clock())
    if applied.opted_out:
        raise PersonalizationOff(OPTED_OUT)
    outcome = applied.outcomes[0]
    raise_if_refused(outcome, edit, ports)
    written = await ports.store.get(scope, outcome.key)
    if written is None:
        raise Conflict(
            f"`{edit.key}` was deleted by someone else at the same moment; write it again if it should stay"
        )
    return written


async def accept(ports: Ports, scope: Scope, key: str) -> Memory:
    """Take what a tool or a quotation brought in for the user's own words: from here on it is recalled, and protected (T33).

    What is trusted already stays as it is. Raises `NoSuchMemory`, `PersonalizationOff`.
    """
    refuse_if_off(ports)
    found = await ports.store.get(scope, key)
    if found is None:
        raise NoSuchMemory(f"there is no memory under `{key}`")
    if found.trusted:
        return found
    edit = SetMemory(
        key, found.value, found.tokens, source=Source.USER, terms=terms(found.value), rename_from=key
    )
    written = await _by_hand(ports, scope, edit)
    # Words that changed meanwhile are replaced by those the user saw, which have no vector yet.
    await embed_unsearched(ports, scope)
    return written


async def forget(ports: Ports, scope: Scope, key: str) -> None:
    """Delete one memory; raises `NoSuchMemory`. Allowed while memory is switched off: it only takes away."""
    limit = Limits(entries=None)
    applied = await ports.store.apply(
        scope, [DeleteMemory(key, source=Source.USER)], limits=limit, now=ports.clock()
    )
    if applied.outcomes[0].status is EditStatus.MISSING:
        raise NoSuchMemory(f"there is no memory under `{key}`")


async def undo(ports: Ports, scope: Scope, change_id: str | None = None) -> Change:
    """Take back one change, the newest if none is named; the change that takes it back is returned.

    Raises `NotFound`, `Conflict` when the memory changed since, `LimitExceeded` when it no longer fits, `PersonalizationOff`.
    """
    refuse_if_off(ports)
    change = await ports.store.undo(scope, change_id, limits=limits(ports, scope), now=ports.clock())
    await embed_unsearched(ports, scope)
    return change


async def personalization(ports: Ports, user: str) -> bool:
    """Whether the user has memory switched on; on until they switch it off, if the configuration has it at all."""
    if memory_is_off(ports):
        return False
    return await ports.store.preference(user, CONSENT) is not False


async def set_personalization(ports: Ports, user: str, *, on: bool) -> None:
    """Switch memory on or off for one user; what is remembered stays until they delete it."""
    if on:
        refuse_if_off(ports)
    await ports.store.set_preference(user, CONSENT, on)


def refuse_if_off(ports: Ports) -> None:
    if memory_is_off(ports):
        raise PersonalizationOff(
            "memory is switched off in the configuration (`memory.disabled` or `memory.personalize`)"
        )


OPTED_OUT = "this user has personalization switched off: nothing is remembered until they switch it on"


def raise_if_refused(outcome: EditOutcome, edit: SetMemory, ports: Ports) -> None:
    if outcome.status is EditStatus.MISSING:
        raise NoSuchMemory(f"there is no memory under `{edit.rename_from}` to rename")
    limit = ports.settings.memory.token_limit
    match outcome.refusal:
        case None:
            return
        case Refusal.EXISTS:
            raise Conflict(f"there is a memory under `{edit.key}` already")
        case Refusal.LIST_FULL:
            raise LimitExceeded(
                f"the list is full ({ports.options.max_memories} memories): delete one to make room, "
                "for example with `memagent memories delete`"
            )
        case Refusal.TOO_MANY_PARTITIONS:
            raise LimitExceeded(
                "this user's memories are spread over too many agents: empty one of the partitions to make room"
            )
        case Refusal.ALREADY_EXCEEDED | Refusal.WOULD_EXCEED:
            raise LimitExceeded(
                f"`{edit.key}` would take {edit.tokens} tokens, and {outcome.tokens} of the {limit} allowed are in use: "
                "shorten it, or delete another memory"
            )
        case Refusal.USER_SAID_OTHERWISE:
            raise Conflict(
                f"`{edit.key}` holds what the user said; what only the assistant said does not replace it"
            )
