"""What of a transcript a model is shown, and how large that is. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memagent.errors import BadRequest
from memagent.memory import Message
from memagent.sessions import transcript
from memagent.sessions.message_json import from_json
from memagent.sessions.usage import context_size, read_usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memagent.llm import Usage
    from memagent.sessions.estimator import TokenCountEstimator
    from memagent.sessions.transcript import Entry, Record

UNFINISHED = ("aborted", "error")
"""Ways an answer stops whose usage says nothing about the context."""


@dataclass(frozen=True, slots=True)
class Item:
    """One message of the context and the entry it comes from."""

    message: Message
    entry: Entry

    @property
    def is_copy(self) -> bool:
        """Whether it was said in a session before this one."""
        return "copiedFrom" in self.entry.data

    @property
    def usage(self) -> Usage | None:
        """What the call that made this answer reported, if it ended well."""
        if self.message.role != "assistant" or self.entry.data.get("stopReason") in UNFINISHED:
            return None
        return read_usage(self.entry.data.get("usage"))


@dataclass(frozen=True, slots=True)
class Context:
    """The summary that stands for what was compacted, the messages after it, and the state they are sent with."""

    summary: str | None
    items: tuple[Item, ...]
    model: str | None = None
    thinking_level: str | None = None
    unreadable: int = 0
    fresh_from: int = 0
    """The first item that was said after the newest compaction; what calls before it reported is stale (O44)."""

    @property
    def messages(self) -> tuple[Message, ...]:
        head = (summary_message(self.summary),) if self.summary is not None else ()
        return (*head, *(item.message for item in self.items))

    def size(self, estimator: TokenCountEstimator) -> int:
        """Tokens of the context: what the newest finished answer's call reported, and an estimate of all after it (O43).

        Only calls made since the newest compaction count (O44); without one, all is estimated.
        """
        for at in range(len(self.items) - 1, self.fresh_from - 1, -1):
            usage = self.items[at].usage
            if usage is not None and (known := context_size(usage) + usage.output_tokens):
                return known + sum(estimator.count_message(item.message) for item in self.items[at + 1 :])
        return estimator.count_messages(self.messages)


def context(record: Record, *, leaf: str | None = None) -> Context:
    """The context at `leaf`, the newest entry by default (O29): the entries from there up to the root.

    Of several compactions the newest on that path holds: its summary, the entries from its `firstKeptEntryId` on, the
    entries after it. An unknown `firstKeptEntryId` keeps nothing from before.
    """
    path = path_to(record.entries, leaf or record.leaf)
    at = max((n for n, entry in enumerate(path) if entry.type == transcript.COMPACTION), default=None)
    kept, after, summary = path, path, None
    if at is not None:
        summary = str(path[at].data.get("summary") or "")
        first = path[at].data.get("firstKeptEntryId")
        start = next((n for n in range(at) if path[n].id == first), at)
        after = path[at + 1 :]
        kept = path[start:at] + after
    items: list[Item] = []
    unreadable, fresh_from = 0, 0
    for n, entry in enumerate(kept):
        if n == len(kept) - len(after):
            fresh_from = len(items)
        try:
            message = _message(entry)
        except BadRequest:
            unreadable += 1
            continue
        if message is not None:
            items.append(Item(message, entry))
    states = {entry.type: entry.data for entry in path}
    return Context(
        summary,
        tuple(items),
        model=_state(states, transcript.MODEL, "model"),
        thinking_level=_state(states, transcript.THINKING_LEVEL, "thinkingLevel"),
        unreadable=unreadable,
        fresh_from=fresh_from if after else len(items),
    )


def path_to(entries: Sequence[Entry], leaf: str | None) -> list[Entry]:
    """The entries from the root to `leaf`; an entry whose parent is missing counts as a root."""
    by_id = {entry.id: entry for entry in entries}
    path: list[Entry] = []
    here = by_id.pop(leaf, None) if leaf else None
    while here is not None:
        path.append(here)
        here = by_id.pop(here.parent_id, None) if here.parent_id else None
    return path[::-1]


def summary_message(summary: str) -> Message:
    """A summary as a model is shown it: as the user's text, between tags it cannot close (O30)."""
    return Message(
        "user", f"What was said before was summarised to save room.\n\n{tagged('summary', summary)}"
    )


def tagged(name: str, text: str) -> str:
    """Text between tags that nothing in it can close: text is data."""
    return f"<{name}>\n{defused(name, text)}\n</{name}>"


def defused(name: str, text: str) -> str:
    """Text without a closing tag `name`, in any case."""
    return re.sub(rf"<\s*/\s*(?={re.escape(name)})", "< /", text, flags=re.IGNORECASE)


def _message(entry: Entry) -> Message | None:
    match entry.type:
        case transcript.MESSAGE if entry.data.get("stopReason") == "error":
            return None  # a failed answer is kept, and not shown (O46)
        case transcript.MESSAGE:
            return from_json(entry.data.get("message"))
        case transcript.BRANCH_SUMMARY:
            text = tagged("summary", str(entry.data.get("summary") or ""))
            return Message(
                "user", f"Another branch of this conversation was left; it came to this.\n\n{text}"
            )
        case transcript.CUSTOM_MESSAGE:
            return Message("user", str(entry.data.get("content") or ""))
    return None


def _state(states: Mapping[str, Mapping[str, Any]], kind: str, name: str) -> str | None:
    value = states.get(kind, {}).get(name)
    return str(value) if value else None
