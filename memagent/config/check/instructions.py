"""Keys that the memory agent's instructions name and that `validKeys` does not hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memagent.config.findings import LibreChat
from memagent.config.spelling import fold, meant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memagent.config.check.draft import Draft, Path
    from memagent.config.findings import Span

INSTRUCTIONS: Path = ("memory", "agent", "instructions")
VALID_KEYS: Path = ("memory", "validKeys")

NOT_KEYS = frozenset({"set_memory", "delete_memory", "valid_keys", "token_limit", "char_limit"})
"""Identifiers that prompts mention and that are no memory keys."""

_LISTED = re.compile(
    r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+[\"'`*]*(?P<key>[A-Za-z][\w-]*)[\"'`*]*[ \t]*(?::|[-\u2013\u2014] |$)",
    re.MULTILINE,
)
_QUOTED = re.compile(r"(?P<quote>[\"'`])(?P<key>[A-Za-z]\w*)(?P=quote)")
_SNAKE = re.compile(r"(?<![\w{$./-])(?P<key>[a-z]+(?:_[a-z0-9]+)+)(?![\w}./-])")


def check_instructions(draft: Draft) -> None:
    """A finding for each key that is named as one: in a list with real keys, quoted and nearly right, or in snake case."""
    text = draft.text(INSTRUCTIONS)
    keys = [key for index in range(len(draft.items(VALID_KEYS))) if (key := draft.text((*VALID_KEYS, index)))]
    if not text or not keys or draft.is_blamed(INSTRUCTIONS):
        return
    for name in dict.fromkeys(_named(text, keys)):
        near = meant(name, keys)
        where = _find(draft, name)
        draft.add(
            "MEM312",
            INSTRUCTIONS,
            f"the instructions name the key `{draft.quote(name)}`, which `validKeys` does not hold",
            span=where,
            librechat=LibreChat.ACCEPTS,
            helps=(f"a key with a similar name exists: `{near.name}`",)
            if near
            else ("add it to `validKeys`, or take it out of the instructions",),
            notes=("every attempt to store under it is refused",),
        )


def _named(text: str, keys: list[str]) -> Iterator[str]:
    allowed = frozenset(keys)
    listed = [match["key"] for match in _LISTED.finditer(text)]
    if allowed.intersection(listed):
        yield from (name for name in listed if name not in allowed and name.islower())
    for match in _QUOTED.finditer(text):
        name = match["key"]
        near = meant(name, keys)
        if name not in allowed and near and near.certain and fold(name) not in NOT_KEYS:
            yield name
    for match in _SNAKE.finditer(text):
        if match["key"] not in allowed and match["key"] not in NOT_KEYS:
            yield match["key"]


def _find(draft: Draft, name: str) -> Span | None:
    """The first place of `name` in the instructions as they are written."""
    node = draft.node(INSTRUCTIONS)
    if node is None:
        return None
    match = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)").search(node.source.text, node.start, node.end)
    return node.source.span(*match.span()) if match else None
