"""Sessions bound to memory: summaries by the memory agent's model, and what is about to leave a context learned first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from memagent.errors import ModelFault, ModelUnavailable
from memagent.service.observe import observe, target_of
from memagent.service.receipt import Decision, Reason, RecallNote
from memagent.sessions.keys import MAIN
from memagent.sessions.owners import workspace
from memagent.sessions.service import Sessions
from memagent.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memagent.llm import ChatModel
    from memagent.memory import Message
    from memagent.service import Memagent
    from memagent.sessions.compactor import Window
    from memagent.sessions.files import Workspace
    from memagent.sessions.flush import Flush, FlushRequest
    from memagent.sessions.registry import SessionRegistry
    from memagent.sessions.service import SessionSettings


def open_sessions(
    memory: Memagent,
    user: str,
    *,
    agent: str = MAIN,
    own: bool = False,
    settings: SessionSettings | None = None,
    registry: SessionRegistry | None = None,
    window: Window | None = None,
) -> Sessions:
    """The sessions of one agent in the data folder; what they lose is learned as `user`'s.

    `own` are the user's sessions with that agent, in a folder of their own: those that the service shows to that user.

    `window` knows a model's context window by its name, as `Gateway.context_window` does. Without a usable memory agent there is no model for summaries:
    then compaction says so and changes nothing.
    """
    return Sessions(
        workspace(memory.ports.options.data_dir, owner=user if own else None, agent=agent),
        clock=memory.ports.clock,
        settings=settings,
        registry=registry,
        model=summary_model(memory, user),
        window=window,
        flush=flush_into(memory, user),
    )


def summary_model(memory: Memagent, user: str) -> ChatModel | None:
    """The memory agent's model; None when this configuration has none that can be called."""
    agent = memory.ports.settings.memory.agent
    if agent is None:
        return None
    try:
        return memory.ports.models(target_of(memory.ports, Turn(user, "", ()), agent))
    except ModelFault:
        return None


def flush_into(memory: Memagent, user: str) -> Flush:
    """Learn what a session is about to lose, a window at a time, and note what was learned where notes are kept.

    Raises what keeps the agent from learning it.
    """
    size = memory.ports.settings.memory.message_window_size

    async def flush(request: FlushRequest) -> None:
        keys: dict[str, None] = {}
        for number, piece in enumerate(pieces(request.messages, size)):
            message_id = f"{request.session_id}:{request.entry_id}:{number}"
            turn = Turn(user, message_id, piece, conversation_id=request.session_id)
            # A flush is no turn of the user's: it searches nothing, counts no day, and is no second hearing of what was said.
            receipt = await observe(memory.ports, turn, recalled=RecallNote())
            if receipt.decision is Decision.FAILED:
                raise ModelUnavailable(f"the memory agent could not learn ({receipt.reason})")
            keys |= dict.fromkeys(receipt.set)
            if receipt.reason == Reason.ALREADY_SEEN:  # a flush that ended before it was noted down
                keys |= dict.fromkeys((await memory.why(user, message_id))["set"])
        await note_down(memory, user, tuple(keys), path=request.note)

    return flush


async def note_down(memory: Memagent, user: str, keys: Sequence[str], *, path: str) -> None:
    """Append what was learned under these keys to a day's note, where notes are kept; a line that stands there is not repeated."""
    notes = memory.ports.passages.notes if memory.ports.passages else None
    if notes is None or not keys:
        return
    learned = {each.key: each.value for each in await memory.list(user) if each.trusted}
    lines = [f"- {' '.join(learned[key].split())}" for key in keys if key in learned]
    await asyncio.to_thread(_append, notes.workspace, path, lines)


def _append(workspace: Workspace, path: str, lines: Sequence[str]) -> None:
    known = set(workspace.lines(path).splitlines())
    if new := [line for line in lines if line not in known]:
        workspace.append(path, "\n".join(new))


def pieces(messages: Sequence[Message], size: int) -> Iterator[tuple[Message, ...]]:
    """Consecutive pieces of at most `size` messages that begin at a user message; a longer turn is one piece."""
    piece: list[Message] = []
    for turn in _turns(messages):
        if piece and len(piece) + len(turn) > size:
            yield tuple(piece)
            piece = []
        piece += turn
    if piece:
        yield tuple(piece)


def _turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    turn: list[Message] = []
    for message in messages:
        if message.role == "user" and turn:
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn
