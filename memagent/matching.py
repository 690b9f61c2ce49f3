"""How well a memory answers a message: one score in 0..1, made of meaning and of words.

The store computes the same score next to the data; this is the formula it is held to. docs/recall.md tells how it was measured.
"""

from __future__ import annotations

LEXICAL_WEIGHT = 0.15
"""What shared words may add at most."""

LONG_MEMORY_TERMS = 16
"""From here on a memory is long. The longer it is, the less its vector says about any one name in it, and the more the
name itself tells; in a memory of five words the vector knows the name already, and words only add false friends."""


def score(cosine: float, *, shared: int, held: int) -> float:
    """Fuse the cosine of two vectors with the words: `held` terms in the memory, `shared` of them in the message."""
    return min(1.0, max(0.0, cosine) + lexical(shared=shared, held=held))


def lexical(*, shared: int, held: int) -> float:
    """Return what shared words add: each further one half of what is missing, in proportion to the memory's length."""
    return LEXICAL_WEIGHT * (1.0 - 0.5**shared) * min(1.0, held / LONG_MEMORY_TERMS)
