"""Counting tokens in o200k, offline. Special tokens in a text are text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class CountTokens(Protocol):
    """Text to its number of tokens."""

    def __call__(self, text: str, /) -> int: ...


@cache
def _encoding() -> Any:
    import bpe_openai  # noqa: PLC0415  loads its ranks: half a second that the validator must not pay

    return bpe_openai.get_encoding("o200k_base")


def count_tokens(text: str, /) -> int:
    """Number of o200k_base tokens of `text`, at any length; lone surrogates count as U+FFFD."""
    count: Callable[[str], int] = _encoding().count
    return count(text.encode("utf-8", "replace").decode("utf-8"))
