"""What was literally said: every turn that is handed over is kept once, with its conversation, its date and its speaker.

It is kept per owner (a user, or a user with one agent that has a memory of its own), and found by `sessions.turn_search`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memagent.agent.context import strip_injected
from memagent.errors import MemagentError
from memagent.sessions.turns import Utterance
from memagent.store.keys import owner_in, scope_id
from memagent.store.numbers import Claim
from memagent.turn import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from memagent.memory import Message
    from memagent.sessions.turns import TurnIndex
    from memagent.sessions.vectors import VectorStore
    from memagent.store.numbers import TurnNumbers
    from memagent.turn import Turn

log = logging.getLogger("memagent.transcripts")

UNNAMED = "unnamed"
"""The conversation of turns whose backend names none."""

NAME_BYTES = 12
"""Of what a message is known by within one conversation."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """One thing that was said in a turn, and what it is known by."""

    speaker: str
    text: str
    claim: Claim


class Transcripts:
    """Keeps what is said. Safe to use from many processes: a thing handed over twice is one row."""

    def __init__(self, index: TurnIndex, numbers: TurnNumbers, *, clock: Callable[[], datetime]) -> None:
        self.index = index
        self._numbers = numbers
        self._clock = clock

    async def keep(self, turn: Turn, *, shown: Sequence[str] = ()) -> tuple[str, ...]:
        """Keep this turn's message and the answers around it, once; citations that went into this conversation lately.

        Nothing is kept of a user who has memory switched off when this runs. `shown` are the citations of this turn's
        context. An embedder that is down leaves rows that are found by their words. Raises `StoreFault`; then the same
        turn can be handed over again.
        """
        said, session = spoken(turn), session_of(turn)
        claims = [each.claim for each in said]
        claimed = await self._numbers.claim(
            turn.own, session, claims, at=self._clock(), message_id=turn.message_id, shown=shown
        )
        new = [
            (each, number)
            for each, number in zip(said, claimed.numbers, strict=False)
            if number is not None and not number.written
        ]
        if new:
            rows = [Utterance(session, at.number, each.speaker, each.text, at.at) for each, at in new]
            owner = scope_id(turn.own)
            written = await self.index.say(owner, rows)
            embedder = self.index.embedder.id if self.index.embedder else ""
            await self._numbers.spoke(owner, "" if written.unembedded else embedder)
            noted = await self._numbers.written(
                turn.own, session, [each.claim for each, _ in new], [at for _, at in new]
            )
            if not noted:
                await self.index.forget(owner, session)
        return claimed.shown

    async def catch_up(self) -> int:
        """Give every turn a vector of the current embedder; how many owners were brought up to date.

        A fault is logged, and the next start tries again; the turns stay searchable by their words.
        """
        embedder = self.index.embedder
        done = 0
        if embedder is None:
            return done
        try:
            for owner in await self._numbers.behind(embedder.id):
                await self.index.catch_up(owner)
                await self._numbers.caught_up(owner, embedder.id)
                done += 1
        except MemagentError as fault:
            log.warning("turns are searched by their words for now", extra={"code": fault.code})
        return done


async def erase_turns(
    user: str, *, numbers: TurnNumbers, vectors: Callable[[], VectorStore]
) -> Mapping[str, int]:
    """Erase all that was kept of what a user said and heard, counted; nothing when nothing was. Raises `StoreFault`.

    The numbers go first: a turn under way finds its own gone after writing, and takes its rows back.
    """
    names = await numbers.erase(user)
    if not names:
        return {}
    opened = vectors()
    try:
        passages = sum([await opened.erase(owner) for owner in sorted({owner_in(name) for name in names})])
    finally:
        await opened.close()
    await numbers.erased(user, names)
    return {"conversations": len(names), "passages": passages}


def session_of(turn: Turn) -> str:
    """The session that a turn's words are kept and cited under."""
    return turn.conversation_id or UNNAMED


# -- what was said -------------------------------------------------------------------------------------------------------


def spoken(turn: Turn) -> tuple[Spoken, ...]:
    """The newest message of the user, what answers it, and what answered the one before: all else came with earlier turns.

    Blocks that memagent put into the chat are no part of it.
    """
    asked = [at for at, message in enumerate(turn.messages) if message.role == "user"]
    if not asked:
        return ()
    newest = asked[-1]
    said: list[Spoken] = []
    if len(asked) > 1:
        before = asked[-2]
        said += _answers(turn.messages[before], turn.messages[before + 1 : newest])
    question = turn.messages[newest]
    names = tuple(dict.fromkeys([_name("id", turn.message_id), *_names(question)]))
    claim = Claim(names, marks=(_mark(question),))
    said.append(Spoken(question.name or question.role, _words(question), claim))
    return (*said, *_answers(question, turn.messages[newest + 1 :], names=names))


def _answers(
    question: Message, messages: Sequence[Message], *, names: tuple[str, ...] = ()
) -> Iterator[Spoken]:
    after = tuple(dict.fromkeys((*names, *_names(question), _mark(question))))
    for message in messages:
        text = _words(message)
        if message.role == "assistant" and text:
            known_by = (_name("answer", _words(question), text), *_names(message))
            yield Spoken(message.name or message.role, text, Claim(known_by, after=after))


def _names(message: Message) -> tuple[str, ...]:
    return (_name("id", message.id),) if message.id else ()


def _mark(question: Message) -> str:
    """What an answer finds its question by where messages have no ids."""
    return _name("said", _words(question))


def _words(message: Message) -> str:
    return "\n".join(text_of(each.content) for each in strip_injected([message], {})).strip()


def _name(*parts: str) -> str:
    words = json.dumps(parts).encode()
    return base64.urlsafe_b64encode(hashlib.blake2b(words, digest_size=NAME_BYTES).digest()).decode()
