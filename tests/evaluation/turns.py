"""Labelled turns and outcomes for the tests of the evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from memagent.evaluation.labelled import Fact, Kind, Labelled, Phrase
from memagent.evaluation.outcome import Outcome
from memagent.memory import Message

if TYPE_CHECKING:
    from memagent.evaluation.verdict import Verdict

SET = Path(__file__).parents[2] / "examples" / "eval"


def fact(*groups: str, keys: tuple[str, ...] = ()) -> Fact:
    """A fact whose groups are written `one/or another`."""
    return Fact(tuple(tuple(map(Phrase, group.split("/"))) for group in groups), keys)


def turn(kind: str = "keep", /, *, said: str = "I said so.", **given: Any) -> Labelled:
    words = {"forbidden_words": tuple(map(Phrase, given.pop("forbidden_words", ())))}
    plain = {"id": f"en-{kind}", "language": "en", "messages": (Message("user", said),)}
    return Labelled(**(plain | {"kind": Kind(kind)} | words | given))


def judged(labelled: Labelled, after: dict[str, str], **given: Any) -> Verdict:
    from memagent.evaluation.verdict import judge

    return judge(labelled, Outcome(labelled.id, "", after=after, **given))
