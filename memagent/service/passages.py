"""What memory answers from beside keyed memories: what was literally said, and the notes of a workspace.

It keeps turns, recalls by itself before an answer, and serves the two tools that a model searches with.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memagent.agent.context import quoted_words
from memagent.errors import StoreFault
from memagent.service import hands
from memagent.service.recall import NOTES, TURNS
from memagent.service.transcripts import session_of
from memagent.sessions.auto_recall import AutoRecall, RecallPolicy
from memagent.sessions.candidates import Question, ask
from memagent.sessions.memory_tools import MEMORY_GET, MEMORY_SEARCH, MemoryTools, unavailable
from memagent.sessions.notes import PATIENCE_S
from memagent.sessions.search import SOURCE_NOTES, SOURCE_TURNS
from memagent.sessions.turns import SESSION_PREFIX
from memagent.store.keys import scope_id
from memagent.turn import text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from memagent.llm import Embedder, Vector
    from memagent.memory import Scope
    from memagent.service.ports import Ports
    from memagent.service.receipt import RecallNote
    from memagent.service.transcripts import Transcripts
    from memagent.sessions.auto_recall import Recollection
    from memagent.sessions.notes import NoteIndex
    from memagent.sessions.search import Hit
    from memagent.turn import Turn

TOOLS = (MEMORY_SEARCH, MEMORY_GET)

SOURCE_NAMES = {SOURCE_TURNS: TURNS, SOURCE_NOTES: NOTES}


@dataclass(frozen=True, slots=True)
class Passages:
    """`transcripts` and `notes` are those that are configured. `when` is MEMAGENT_AUTO_RECALL.

    `watched` says that somebody keeps the notes' index like the files, so that a search need not look.
    """

    embedder: Embedder | None
    clock: Callable[[], datetime]
    when: str
    transcripts: Transcripts | None = None
    notes: NoteIndex | None = None
    watched: bool = False

    async def keep(self, turn: Turn, note: RecallNote | None) -> Mapping[str, str]:
        """Keep what was said in this turn; fingerprints of what auto recall put into this conversation lately.

        Raises `StoreFault`.
        """
        shown = [str(each["citation"]) for each in note.passages] if note else []
        if self.transcripts is not None:
            shown = list(await self.transcripts.keep(turn, shown=shown))
        words: dict[str, str] = {}
        for citation, text in (await self._cited(scope_id(turn.own), shown)).items():
            words |= quoted_words(text, citation)
        return words

    async def recall(
        self,
        turn: Turn,
        vector: Vector | None,
        *,
        sources: Collection[str] | None = None,
        patient: bool = False,
    ) -> Recollection:
        """What this turn brings back of turns and notes, best first; never raises a fault.

        `vector` is that of the turn's query, so that it is embedded once (T27). `sources` None is recall as it comes by
        itself; named, these are searched whatever MEMAGENT_AUTO_RECALL says. `patient` waits a little for notes that
        are not indexed yet.
        """
        question = await ask(turn.query, None)
        if self.embedder is not None and vector is not None:
            question = Question(question.text, question.terms, self.embedder.id, vector, self.embedder.floor)
        turns = self.transcripts if sources is None or TURNS in sources else None
        recall = AutoRecall(
            self.embedder,
            notes=self.notes if sources is None or NOTES in sources else None,
            turns=turns.index if turns else None,
            policy=self._policy(by_itself=sources is None, patient=patient),
        )
        # Whoever answers sees what was handed over; the newest message is what is asked with.
        in_sight = [text_of(message.content) for message in turn.messages]
        return await recall.recall(
            scope_id(turn.own),
            turn.query,
            now=self.clock(),
            start=all(message.role != "assistant" for message in turn.messages),
            session=session_of(turn),
            in_sight=in_sight,
            question=question,
        )

    async def catch_up(self) -> None:
        """Bring turns to the current embedder, and the notes' index to the files; stays with them where it is `watched`.

        Faults are logged: what cannot be had now is found by words, or as it was.
        """
        if self.transcripts is not None:
            await self.transcripts.catch_up()
        if self.notes is None:
            return
        if not self.watched:
            await self.notes.freshen(patience_s=0)
            return
        async for _ in self.notes.watch(stop=asyncio.Event()):
            pass

    async def look(self) -> str:
        """What is kept, in words; raises `StoreFault`, or `NotFound` for a notes folder that is gone."""
        parts = []
        if self.transcripts is not None:
            await self.transcripts.index.live("doctor")
            parts.append("turns are kept")
        if self.notes is not None:
            files = await asyncio.to_thread(self.notes.workspace.files)
            indexed = "" if await self.notes.live() else ", not indexed yet"
            parts.append(f"{len(files)} notes{indexed}")
        return "; ".join(parts)

    def tools(self, scope: Scope) -> MemoryTools:
        """`memory_search` and `memory_get` over what was said in this scope, and the notes."""
        return MemoryTools(
            scope_id(scope),
            clock=self.clock,
            notes=self.notes,
            turns=self.transcripts.index if self.transcripts else None,
        )

    def _policy(self, *, by_itself: bool, patient: bool) -> RecallPolicy:
        # The budget is the turn's, and kept by who waits.
        patience_s = None if self.watched else PATIENCE_S if patient else 0.0
        return RecallPolicy(
            at_start=not by_itself or self.when in {"start", "both"},
            per_turn=not by_itself or self.when in {"turn", "both"},
            budget_s=None,
            patience_s=patience_s,
        )

    async def _cited(self, owner: str, citations: Sequence[str]) -> Mapping[str, str]:
        """The words of citations; those that are gone are left out."""
        places = {citation: _place(citation) for citation in citations}
        said = {each: at for each, at in places.items() if at[0].startswith(SESSION_PREFIX)}
        found: dict[str, str] = {}
        if self.transcripts is not None and said:
            turns = [(path, first) for path, first, _ in said.values()]
            texts = await self.transcripts.index.texts(owner, turns)
            found |= {
                each: texts[path, first] for each, (path, first, _) in said.items() if (path, first) in texts
            }
        if self.notes is not None:
            for each in places.keys() - said.keys():
                path, first, last = places[each]
                found[each] = await asyncio.to_thread(
                    self.notes.workspace.lines, path, first=first, count=last - first + 1
                )
        return found


async def answer(ports: Ports, passages: Passages, scope: Scope, name: str, arguments: str) -> dict[str, Any]:
    """Answer a model's call of one of `TOOLS`, whatever it sends; nothing is told of a user who has memory switched off."""
    try:
        if not await hands.personalization(ports, scope.owner):
            return {"results": [], "disabled": True, "error": hands.OPTED_OUT}
    except StoreFault as fault:
        return unavailable(fault)
    return await passages.tools(scope).call(name, arguments)


def _place(citation: str) -> tuple[str, int, int]:
    """Path, first and last of a citation as `Hit.citation` writes it."""
    path, _, lines = citation.rpartition("#")
    first, last = (int(part.removeprefix("L")) for part in lines.split("-"))
    return path, first, last


def told(hits: Sequence[Hit]) -> tuple[dict[str, Any], ...]:
    """Hits as a receipt keeps them: where and how well, never what."""
    return tuple(
        {
            "source": SOURCE_NAMES.get(hit.source, hit.source),
            "citation": hit.citation,
            "score": round(hit.score, 4),
            "parts": {name: round(part, 4) for name, part in hit.parts.items()},
        }
        for hit in hits
    )
