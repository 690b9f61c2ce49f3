"""What a user can say to the session itself: `/new`, `/reset`, `/compact`. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

RESET_TRIGGERS = ("/new", "/reset")
COMPACT = "/compact"

_STRUCTURE = re.compile(r"\s*\[[^\]\n]{1,120}\]\s*")
"""What channels put before a message: `[Tue 10:00]`, `[Telegram Ada]` (O17)."""


class Ask(StrEnum):
    RESET = "reset"
    COMPACT = "compact"


@dataclass(frozen=True, slots=True)
class Command:
    """`rest` is what follows, with its case; `model` the model a reset switches to (O22)."""

    ask: Ask
    rest: str = ""
    model: str = ""


def command(
    text: str,
    *,
    authorised: bool = True,
    triggers: Sequence[str] = RESET_TRIGGERS,
    mentions: Sequence[str] = (),
    models: Collection[str] = (),
) -> Command | None:
    """The command a message is, None for ordinary text, which a stranger's commands are too (O16).

    A trigger is the whole message or stands before a space, in any case (O15). Structural prefixes and the names in
    `mentions` are left out before (O17). The first word after a reset may be one of `models` (O22).
    """
    if not authorised:
        return None
    said = _plain(text, mentions)
    rest = _after(said, COMPACT)
    if rest is None and said.lower().startswith(f"{COMPACT}:"):
        rest = said[len(COMPACT) + 1 :].strip()
    if rest is not None:
        return Command(Ask.COMPACT, rest)
    for trigger in triggers:
        rest = _after(said, trigger)
        if rest is not None:
            first, _, others = rest.partition(" ")
            model = next((each for each in models if first and each.lower() == first.lower()), "")
            return Command(Ask.RESET, others.strip() if model else rest, model)
    return None


def _after(said: str, trigger: str) -> str | None:
    head, rest = said[: len(trigger)], said[len(trigger) :]
    if head.lower() != trigger.lower() or (rest and not rest[0].isspace()):
        return None
    return rest.strip()


def _plain(text: str, mentions: Sequence[str]) -> str:
    said = text.strip()
    names = "|".join(re.escape(name.lstrip("@")) for name in mentions if name)
    mention = re.compile(rf"<?@?(?:{names})>?(?![\w])[:,]?\s*", re.IGNORECASE) if names else None
    while True:
        found = _STRUCTURE.match(said) or (mention.match(said) if mention else None)
        if found is None or found.end() == 0:
            return said
        said = said[found.end() :]


def greeting(now: datetime) -> str:
    """What a bare `/new` puts to the model in the user's place; `now` is in the user's zone (O22)."""
    return (
        "A new session begins. Greet the user in a sentence or two and ask what they would like to do. "
        f"Today is {now:%A, %Y-%m-%d} ({now.tzname() or 'local time'})."
    )
