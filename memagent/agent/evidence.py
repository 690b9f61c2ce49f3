"""Who said what a memory says: the words of the window that stand behind it, found by the terms they share.

The model that wrote the memory is not asked. A user's own words count most; text they quote and what a tool printed is
somebody else's, and stays untrusted until the user accepts it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from memagent.lexicon import terms
from memagent.memory import MAX_QUOTE_CHARS, Evidence, Source
from memagent.tokens import well_formed
from memagent.window import text_of_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memagent.memory import Message

ENOUGH = 0.5
"""Of the best supported speaker's share of a memory's terms, the part at which a better trusted speaker is believed."""


class Voice(IntEnum):
    """Speakers, best trusted first."""

    USER = 0
    ASSISTANT = 1
    OTHER = 2
    """Tools, and what the user only quotes."""


@dataclass(frozen=True, slots=True)
class Support:
    """What stands behind one memory."""

    source: Source
    trusted: bool
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class _Passage:
    """A stretch of one message by one speaker."""

    voice: Voice
    message_id: str
    text: str
    terms: frozenset[str]


_VOICES = {"user": Voice.USER, "assistant": Voice.ASSISTANT}
_FENCE = re.compile(r"^\s{0,3}(?:```|~~~)")
_QUOTED = re.compile(r"^\s{0,3}>")
_SENTENCE_END = re.compile("(?<=[.!?…。！？।])\\s+|(?<=[。！？])|[\r\n]+")  # noqa: RUF001  full-width marks end sentences


class Witnesses:
    """The speakers of one window."""

    def __init__(self, messages: Sequence[Message], *, conversation_id: str = "") -> None:
        self._conversation_id = conversation_id
        # Newest first: of equal witnesses the latest is the one to show.
        self._passages = [passage for message in reversed(messages) for passage in _passages(message)]
        self._hearsay = any(passage.voice is Voice.OTHER for passage in self._passages)

    def support(self, value: str) -> Support:
        """Find who said `value`.

        A memory that shares no term with the window (another language, an inference) is the agent's reading of the
        user, unless the window holds a tool's or quoted text: then nobody can tell, and it is not trusted.
        """
        wanted = frozenset(terms(value))
        best = {voice: self._best(voice, wanted) for voice in Voice}
        top = max((share for share, _ in best.values()), default=0.0)
        if top == 0:
            source = Source.TOOL if self._hearsay else Source.AGENT
            return Support(source, not self._hearsay, Evidence(self._conversation_id))
        voice = next(voice for voice in Voice if best[voice][0] >= ENOUGH * top)
        passage = best[voice][1]
        quote = "" if passage is None else _quote(passage.text, wanted)
        message_id = "" if passage is None else passage.message_id
        source = {Voice.USER: Source.AGENT, Voice.ASSISTANT: Source.ASSISTANT, Voice.OTHER: Source.TOOL}[
            voice
        ]
        return Support(source, voice is not Voice.OTHER, Evidence(self._conversation_id, message_id, quote))

    def _best(self, voice: Voice, wanted: frozenset[str]) -> tuple[float, _Passage | None]:
        """How much of `wanted` this speaker said in all, and the passage that says most of it."""
        spoken = [passage for passage in self._passages if passage.voice is voice]
        together = frozenset[str]().union(*(passage.terms for passage in spoken))
        found = wanted & together
        if not found:
            return 0.0, None
        return len(found) / len(wanted), max(spoken, key=lambda passage: len(passage.terms & wanted))


def _passages(message: Message) -> Iterator[_Passage]:
    text = well_formed(text_of_parts(message.content))
    voice = _VOICES.get(message.role, Voice.OTHER)
    if message.role in {"system", "developer"} or not text.strip():
        return  # Instructions are nobody's statement about the user.
    own, quoted = _unquoted(text) if voice is Voice.USER else (text, "")
    for speaker, part in ((voice, own), (Voice.OTHER, quoted)):
        if part.strip():
            yield _Passage(speaker, message.id or "", part, frozenset(terms(part)))


def _unquoted(text: str) -> tuple[str, str]:
    """Separate a user's own lines from those they quote: behind `>`, or in a fenced block."""
    own: list[str] = []
    quoted: list[str] = []
    fenced = False
    for line in text.splitlines():
        fence = _FENCE.match(line) is not None
        (quoted if fenced or fence or _QUOTED.match(line) else own).append(line)
        fenced ^= fence
    return "\n".join(own), "\n".join(quoted)


def _quote(text: str, wanted: frozenset[str]) -> str:
    """Pick the sentence that shares most with the memory, bounded to `MAX_QUOTE_CHARS`."""
    sentences = [sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    best = max(sentences or [text.strip()], key=lambda sentence: len(wanted & frozenset(terms(sentence))))
    return _bounded(best, wanted)


def _bounded(sentence: str, wanted: Iterable[str]) -> str:
    if len(sentence) <= MAX_QUOTE_CHARS:
        return sentence
    folded = sentence.casefold()
    places = [place for term in wanted if (place := folded.find(term)) >= 0]
    room = MAX_QUOTE_CHARS - 2
    start = max(0, min(min(places, default=0) - room // 4, len(sentence) - room))
    piece = sentence[start : start + room]
    before = "…" if start else ""
    after = "…" if start + room < len(sentence) else ""
    return f"{before}{piece.strip()}{after}"
