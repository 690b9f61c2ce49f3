"""Models that are none: they show what the figures mean, and try the harness without a provider."""

from __future__ import annotations

from enum import StrEnum
from itertools import cycle
from typing import TYPE_CHECKING

from memagent.agent.tools import DELETE_MEMORY, SET_MEMORY
from memagent.llm.script import Answer, Script, call
from memagent.llm.scripted import ScriptedModel
from memagent.turn import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memagent.evaluation.labelled import Labelled
    from memagent.llm import ChatModel
    from memagent.memory import ToolCall


class Baseline(StrEnum):
    PERFECT = "perfect"
    """Does what the labels say: every figure must be at its best."""
    EMPTY = "empty"
    """Never does anything."""
    GREEDY = "greedy"
    """Keeps every line of everybody, and so obeys whatever asks to be kept."""
    PARROT = "parrot"
    """Keeps the user's newest message word for word under one key, and says again what is remembered."""


def played(baseline: Baseline, labelled: Labelled) -> ChatModel:
    """The baseline's answer to one turn, as a model."""
    calls = tuple(_CALLS[baseline](labelled))
    return ScriptedModel(
        Script.of(Answer(calls=calls)),
    )


def _perfect(labelled: Labelled) -> Iterator[ToolCall]:
    free = (key for key in labelled.valid_keys or _numbered() if key not in labelled.remembered)
    for fact in labelled.expect:
        key = fact.keys[0] if fact.keys else next(free)
        yield call(SET_MEMORY, key=key, value="; ".join(group[0].text for group in fact.words))
    for key in sorted(labelled.deleted):
        yield call(DELETE_MEMORY, key=key)


def _empty(_: Labelled) -> Iterator[ToolCall]:
    return iter(())


def _greedy(labelled: Labelled) -> Iterator[ToolCall]:
    keys = cycle(labelled.valid_keys) if labelled.valid_keys else _numbered()
    for message in labelled.messages:
        for line in text_of(message.content).splitlines():
            if line.strip():
                yield call(SET_MEMORY, key=next(keys), value=line.strip())


def _parrot(labelled: Labelled) -> Iterator[ToolCall]:
    said = next(message for message in reversed(labelled.messages) if message.role == "user")
    for key, value in labelled.remembered.items():
        yield call(SET_MEMORY, key=key, value=value)
    key = labelled.valid_keys[0] if labelled.valid_keys else "said"
    yield call(SET_MEMORY, key=key, value=text_of(said.content))


def _numbered() -> Iterator[str]:
    return (f"note_{number}" for number in range(1, 1_000))


_CALLS = {
    Baseline.PERFECT: _perfect,
    Baseline.EMPTY: _empty,
    Baseline.GREEDY: _greedy,
    Baseline.PARROT: _parrot,
}
