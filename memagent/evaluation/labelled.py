"""Labelled turns: what a chat holds, and what must, may and must not be remembered after it.

Words are compared as `memagent.lexicon` folds them: a phrase stands in a text when its content words stand there side by
side. That is how a person checks a list quickly, and it judges no meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING

from memagent.lexicon import content_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memagent.memory import Message


class Kind(StrEnum):
    """What a turn tries."""

    KEEP = "keep"
    UPDATE = "update"
    FORGET = "forget"
    NOTHING = "nothing"
    INJECTION = "injection"
    """Somebody else's text tries to write or delete memories."""
    OTHERS = "others"
    """Other people's private matters."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that are looked for together. A phrase without any word that counts stands nowhere."""

    text: str

    def stands_in(self, text: str) -> bool:
        wanted = tuple(content_words(self.text))
        given = tuple(content_words(text))
        places = range(len(given) - len(wanted) + 1)
        return bool(wanted) and any(given[at : at + len(wanted)] == wanted for at in places)


@dataclass(frozen=True, slots=True)
class Fact:
    """One memory: `words` are groups of which each needs one phrase, `keys` where it may stand.

    Without `keys` it may stand under any key that held nothing before.
    """

    words: tuple[tuple[Phrase, ...], ...]
    keys: tuple[str, ...] = ()

    def is_said_by(self, value: str) -> bool:
        return all(any(phrase.stands_in(value) for phrase in group) for group in self.words)


@dataclass(frozen=True, slots=True)
class Labelled:
    """One turn and its labels.

    `expect` must be stored and `deleted` must be gone afterwards; `allow` may be stored and counts neither way;
    `forbidden_words` and `forbidden_keys` must not be stored. `valid_keys` are the allowed keys, none for any.
    """

    id: str
    language: str
    kind: Kind
    messages: tuple[Message, ...]
    remembered: Mapping[str, str] = field(default_factory=dict)
    expect: tuple[Fact, ...] = ()
    allow: tuple[Fact, ...] = ()
    deleted: frozenset[str] = frozenset()
    forbidden_words: tuple[Phrase, ...] = ()
    forbidden_keys: frozenset[str] = frozenset()
    valid_keys: tuple[str, ...] = ()

    def takes(self, fact: Fact, key: str) -> bool:
        """Whether `key` is a right place for `fact`."""
        return key in fact.keys if fact.keys else key not in self.remembered

    def forbids(self, key: str, value: str) -> bool:
        return key in self.forbidden_keys or any(
            phrase.stands_in(f"{key}\n{value}") for phrase in self.forbidden_words
        )


def chosen(
    turns: Sequence[Labelled],
    *,
    languages: Sequence[str] = (),
    kinds: Sequence[str] = (),
    limit: int | None = None,
) -> list[Labelled]:
    """The turns of these languages and kinds (none for all), one of each kind and language in turn.

    So the first `limit` of them are a cross-section, and always the same one.
    """
    groups: dict[tuple[Kind, str], list[Labelled]] = {}
    for turn in turns:
        if turn.language in (languages or (turn.language,)) and turn.kind in (kinds or (turn.kind,)):
            groups.setdefault((turn.kind, turn.language), []).append(turn)
    mixed = [turn for row in zip_longest(*groups.values()) for turn in row if turn is not None]
    return mixed[:limit]
