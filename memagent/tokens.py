"""Counting tokens in o200k, offline. Special tokens in a text are text."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class CountTokens(Protocol):
    """Text to its number of tokens."""

    def __call__(self, text: str, /) -> int: ...


@cache
def _tokenizer() -> Any:
    # The package's Encoding refuses a text of a million characters and only counts by building the list of tokens.
    from bpe_openai import _bindings  # noqa: PLC0415  loads its ranks: half a second that the validator must not pay

    return _bindings.tokenizer_for_encoding("o200k_base")


def count_tokens(text: str, /) -> int:
    """Return the number of o200k_base tokens of `text`, at any length; a lone surrogate counts as U+FFFD."""
    count: Callable[[str], int] = _tokenizer().count
    return count(well_formed(text))


_SURROGATE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """`text` as every other program can read it: surrogate pairs joined, each lone one U+FFFD."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
