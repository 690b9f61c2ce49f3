"""RE2: whether a pattern is one of its, and how many instructions it compiles to."""

from __future__ import annotations


def program_size(pattern: str) -> int | None:
    """TODO"""
    return 1
