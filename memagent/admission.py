"""What may be remembered: which keys, and which values. One rule for the agent, for hands and for imports.

With `validKeys` a key is one of them, exactly. Without, a key is `[a-z0-9_]+`, at most 1,000 characters; an agent's key is
brought into that shape, a person's is refused with the shape it should have (design §6). Lengths are UTF-16 code units, as
LibreChat counts them (spec/librechat.md §4.6).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memagent.errors import BadRequest, InvalidKey, LimitExceeded
from memagent.lexicon import fold
from memagent.memory import MAX_KEY_CHARS

if TYPE_CHECKING:
    from collections.abc import Sequence

RESERVED_KEY = "nothing"
"""LibreChat's models use it to say that there is nothing to remember; no memory may be called that, in any case."""

_KEY = re.compile(r"[a-z0-9_]+")
_NOT_IN_A_KEY = re.compile(r"[^a-z0-9_]+")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def utf16_length(text: str) -> int:
    """Length as JavaScript counts it: a character beyond the basic plane is two."""
    return len(text) + sum(char > "\uffff" for char in text)


def normal_key(key: str) -> str:
    """Fold any words to `[a-z0-9_]+`: `Größe (cm)` is `grosse_cm`; empty when nothing is left."""
    return _NOT_IN_A_KEY.sub("_", fold(key)).strip("_")


def check_key(key: str, *, valid_keys: Sequence[str]) -> None:
    """Raise `InvalidKey` unless a memory may stand under `key`; the message names the keys or the shape that may."""
    if utf16_length(key) > MAX_KEY_CHARS:
        raise InvalidKey(
            f"a key has at most {MAX_KEY_CHARS:,} characters, and this one has {utf16_length(key):,}"
        )
    if key.casefold() == RESERVED_KEY:
        raise InvalidKey(f"`{RESERVED_KEY}` cannot be a key: it means that there is nothing to remember")
    if valid_keys:
        if key not in valid_keys:
            raise InvalidKey(f"{key!r} is not one of the keys of this configuration: {', '.join(valid_keys)}")
    elif not _KEY.fullmatch(key):
        better = normal_key(key)
        hint = f": use `{better}`" if better and better != RESERVED_KEY else ""
        raise InvalidKey(f"{key!r} is not a key: lowercase letters, digits and `_` only{hint}")


def check_value(value: str, *, char_limit: int | None) -> None:
    """Raise `BadRequest` or `LimitExceeded` unless `value` can be remembered whole."""
    if not value.strip():
        raise BadRequest("a memory needs a value: an empty one says nothing")
    if _UNSTORABLE.search(value):
        raise BadRequest("a value cannot hold a NUL character or half of a surrogate pair: remove it")
    if char_limit and utf16_length(value) > char_limit:
        raise LimitExceeded(
            f"a value has at most {char_limit:,} characters (`memory.charLimit`), and this one has "
            f"{utf16_length(value):,}: shorten it, or split it over two keys"
        )
