"""The key that was meant: an alias table first, then names that look alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CUTOFF = 0.72
"""Measured on real files: below it the hints are noise (`session` for `version`), above it they are right."""

CERTAIN_LENGTH = 5
"""A shorter name is too close to too many others for one wrong letter to be a certain slip."""


@dataclass(frozen=True, slots=True)
class Meant:
    """`name` is the key that was probably meant; `certain` says that a repair needs nobody's judgement."""

    name: str
    certain: bool


OPPOSITES = frozenset((frozenset(("enabled", "disabled")), frozenset(("includetools", "filteredtools"))))
"""Names that look alike and mean the opposite: never suggested for each other."""

MEMORY_ALIASES: Mapping[str, str] = {
    "enabled": "`memory` is on unless `disabled: true`; `enabled` belongs under `agent`",
    "enable": "`memory` is on unless `disabled: true`",
    "keys": "the list of allowed keys is called `validKeys`",
    "allowedkeys": "the list of allowed keys is called `validKeys`",
    "maxtokens": "the total size of all memories is `tokenLimit`; the size of what the agent reads is `maxInputTokens`",
    "maxchars": "the size of one memory is `charLimit`",
    "windowsize": "the number of messages the agent reads is `messageWindowSize`",
    "window": "the number of messages the agent reads is `messageWindowSize`",
    "agents": "there is one memory agent, and its key is `agent`",
    "personalization": "the switch is called `personalize`",
}
"""Folded keys of `memory` that a likeness would answer wrongly, or not at all."""

AGENT_ALIASES: Mapping[str, str] = {
    "disabled": "the agent is switched with `enabled: true` or `enabled: false`",
    "endpoint": "the endpoint's name goes into `provider`",
    "prompt": "the agent's prompt is called `instructions`",
    "systemprompt": "the agent's prompt is called `instructions`",
    "parameters": "the model's parameters go into `model_parameters`",
    "params": "the model's parameters go into `model_parameters`",
    "agentid": "the saved agent's id goes into `id`",
}

CUSTOM_ALIASES: Mapping[str, str] = {
    "url": "the endpoint's address is called `baseURL`",
    "endpoint": "the endpoint's address is called `baseURL`",
    "apibase": "the endpoint's address is called `baseURL`",
    "key": "the endpoint's key is called `apiKey`",
    "token": "the endpoint's key is called `apiKey`",
    "defaultmodel": "the endpoint's models go into `models.default`",
    "icon": "the icon is called `iconURL`",
    "label": "the name shown in the menu is `modelDisplayLabel`",
    "fetch": "`fetch` belongs under `models`",
    "default": "`default` belongs under `models`",
}

BUILT_IN_ALIASES: Mapping[str, str] = {
    "apikey": "a built-in endpoint takes its key from the server's environment, for example `OPENAI_API_KEY`",
    "models": "a built-in endpoint takes its models from the server's environment, for example `OPENAI_MODELS`",
    "name": "only custom endpoints have a name; they stand in a list under `endpoints.custom`",
    "enabled": "a built-in endpoint is there if the server's environment has its key",
    "disabled": "a built-in endpoint is there if the server's environment has its key",
}


def fold(name: str) -> str:
    """`valid_keys`, `valid-keys` and `ValidKeys` are one name."""
    return name.casefold().replace("_", "").replace("-", "").replace(" ", "")


def meant(name: str, known: Iterable[str]) -> Meant | None:
    """The one of `known` that `name` was meant to be, or None.

    Certain are a name that differs in case or separators only, and a name of some length that is one slip of the finger
    away from exactly one known name.
    """
    folded = fold(name)
    by_fold: dict[str, str] = {}
    for candidate in known:
        if frozenset((folded, fold(candidate))) not in OPPOSITES:
            by_fold.setdefault(fold(candidate), candidate)
    if folded in by_fold:
        return Meant(by_fold[folded], certain=True)
    slips = [candidate for candidate in by_fold if _one_slip(folded, candidate)]
    if len(slips) == 1 and len(folded) >= CERTAIN_LENGTH:
        return Meant(by_fold[slips[0]], certain=True)
    from difflib import get_close_matches  # noqa: PLC0415  only a file with a fault pays for it

    near = get_close_matches(folded, by_fold, n=1, cutoff=CUTOFF)
    return Meant(by_fold[near[0]], certain=False) if near else None


def _one_slip(written: str, right: str) -> bool:
    """One letter wrong, missing or too many, or two neighbours swapped."""
    if abs(len(written) - len(right)) > 1:
        return False
    start = 0
    while start < min(len(written), len(right)) and written[start] == right[start]:
        start += 1
    a, b = written[start:], right[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and len(b) > 1 and a[2:] == b[2:])
