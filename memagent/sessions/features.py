"""What is known about one turn that may answer a question, and what that is worth. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Features:
    """Each in 0..1. `near_…` is the better of the turns before and after, `session` the best turn of the session."""

    words: float = 0.0
    vector: float = 0.0
    near_words: float = 0.0
    near_vector: float = 0.0
    date: float = 0.0
    speaker: float = 0.0
    session: float = 0.0

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


WEIGHTS = Features(
    words=0.42, vector=0.33, near_words=0.10, near_vector=0.05, date=0.04, speaker=0.03, session=0.03
)


def weigh(features: Features) -> float:
    """A score in 0..1."""
    weights = WEIGHTS.to_dict()
    return sum(weights[name] * value for name, value in features.to_dict().items())
