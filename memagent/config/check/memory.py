"""What is wrong in `memory` although every single value is allowed."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING

from memagent.config.check.draft import dotted
from memagent.config.check.instructions import check_instructions
from memagent.config.findings import Label, Level, LibreChat
from memagent.config.nodes import Scalar

if TYPE_CHECKING:
    from memagent.config.check.draft import Draft, Path

MEMORY: Path = ("memory",)
AGENT: Path = ("memory", "agent")
VALID_KEYS: Path = ("memory", "validKeys")

LIMITS = ("tokenLimit", "charLimit", "maxInputTokens", "messageWindowSize")

STORABLE_KEY = re.compile(r"[a-z_]+\Z")
"""What LibreChat's API and its database accept as a key (spec/librechat.md §6)."""

RESERVED_KEY = "nothing"
"""LibreChat answers every attempt to store this key with a failure, in any case (spec/librechat.md §6)."""

MAX_KEY_CHARS = 1_000
CHARS_PER_TOKEN = 8
"""No running text packs more characters into one o200k token; LibreChat sizes its input by the same figure (§4.3)."""
BYTE_COUNTED_CHARS = 4_096
"""LibreChat counts a longer text byte by byte (spec/librechat.md §4.4)."""
DEFAULTS = {"messageWindowSize": 5, "maxInputTokens": 12_000}
"""What stands for an absent key (spec/librechat.md §1.1)."""

MIN_MESSAGE_TOKENS = 8
"""A role and a few words: no chat has shorter messages on average."""


def check_memory(draft: Draft) -> None:
    if draft.mapping(MEMORY) is None:
        return
    _check_limits(draft)
    _check_valid_keys(draft)
    _check_sizes(draft)
    if draft.mapping(AGENT) is not None:
        _check_agent_forms(draft)
        _check_agent_switches(draft)
        check_instructions(draft)


def has_value(draft: Draft, path: Path) -> bool:
    """What LibreChat takes for given: present and truthy (spec/librechat.md §1.3)."""
    node = draft.node(path)
    return node is not None and not (isinstance(node, Scalar) and node.value in (None, "", False, 0))


def _check_limits(draft: Draft) -> None:
    for name in LIMITS:
        path = (*MEMORY, name)
        value = draft.number(path)
        if value is None or draft.is_blamed(path):
            continue
        if math.isinf(value):
            fault, effect = (
                "is infinite",
                "leave the key out for no limit" if name == "tokenLimit" else "write a whole number",
            )
        elif value < 0:
            fault, effect = "is negative", "write a whole number above 0"
        elif value == 0:
            fault, effect = "is 0", _ZERO[name]
        elif value != int(value):
            fault, effect = "is not a whole number", "write a whole number"
        else:
            continue
        draft.add(
            "MEM311",
            path,
            f"`{name}` {fault}, found `{draft.quote(_raw(draft, path))}`",
            span=draft.value_span(path),
            librechat=LibreChat.ACCEPTS,
            helps=(effect,),
        )


_ZERO = {
    "tokenLimit": "LibreChat reads 0 as no limit; leave the key out to say so",
    "charLimit": "LibreChat reads 0 as the default of 10000; leave the key out to say so",
    "maxInputTokens": "write a whole number above 0",
    "messageWindowSize": "with no message to read the agent learns nothing; use `disabled: true` or `agent.enabled: false`",
}


def _raw(draft: Draft, path: Path) -> str:
    node = draft.node(path)
    return node.raw if isinstance(node, Scalar) else ""


def _check_valid_keys(draft: Draft) -> None:
    items = draft.items(VALID_KEYS)
    node = draft.node(VALID_KEYS)
    if node is not None and not isinstance(node, Scalar) and not items and not draft.is_blamed(VALID_KEYS):
        draft.add(
            "MEM306",
            VALID_KEYS,
            "`validKeys` is empty",
            librechat=LibreChat.ACCEPTS,
            helps=("list the keys that may be stored, or leave `validKeys` out to allow any",),
            notes=("LibreChat reads an empty list as no restriction",),
        )
    first: dict[str, Path] = {}
    for index in range(len(items)):
        path = (*VALID_KEYS, index)
        key = draft.text(path)
        if key is None:
            continue
        if key in first:
            draft.add(
                "MEM307",
                path,
                f"`{draft.quote(key)}` is listed twice in `validKeys`",
                span=draft.value_span(path),
                librechat=LibreChat.ACCEPTS,
                labels=_label(draft, first[key], "first listed here"),
                helps=("remove one of them",),
            )
            continue
        first[key] = path
        _check_storable(draft, path, key)


def _label(draft: Draft, path: Path, text: str) -> tuple[Label, ...]:
    span = draft.value_span(path) or draft.document.span_at(path)
    return (Label(span, text),) if span else ()


def _check_storable(draft: Draft, path: Path, key: str) -> None:
    if not key.strip() or len(key) > MAX_KEY_CHARS:
        size = "empty" if not key.strip() else f"longer than {MAX_KEY_CHARS} characters"
        draft.add(
            "MEM203",
            path,
            f"a key in `validKeys` is {size}",
            span=draft.value_span(path),
            librechat=LibreChat.ACCEPTS,
            helps=(f"a key has 1 to {MAX_KEY_CHARS} characters",),
        )
    elif key.lower() == RESERVED_KEY:
        draft.add(
            "MEM308",
            path,
            f"the key `{key}` is never stored by LibreChat",
            span=draft.value_span(path),
            librechat=LibreChat.ACCEPTS,
            helps=("choose another name",),
        )
    elif not STORABLE_KEY.match(key):
        draft.add(
            "MEM308",
            path,
            f"the key `{draft.quote(key)}` is refused by LibreChat's API",
            span=draft.value_span(path),
            librechat=LibreChat.ACCEPTS,
            helps=(_storable_help(key),),
            notes=(
                "the agent could still write it, and users could then not edit it in LibreChat's memory panel",
            ),
        )


def _storable_help(key: str) -> str:
    letters = "".join(char for char in unicodedata.normalize("NFKD", key) if not unicodedata.combining(char))
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", letters).lower()
    plain = re.sub(r"_+", "_", re.sub(r"[^a-z]+", "_", words)).strip("_")
    rule = "only lowercase letters a to z and underscores can be stored"
    return f"{rule}: `{plain}`" if plain and len(plain) >= len(key) // 2 else rule


def _check_sizes(draft: Draft) -> None:
    chars, tokens = _limit(draft, "charLimit"), _limit(draft, "tokenLimit")
    if chars and tokens:
        path = (*MEMORY, "charLimit")
        if math.ceil(chars / CHARS_PER_TOKEN) > tokens:
            note = (
                f"{chars} characters are at least {math.ceil(chars / CHARS_PER_TOKEN)} tokens in any language"
            )
        elif chars > BYTE_COUNTED_CHARS and chars > tokens:
            note = f"LibreChat counts a text over {BYTE_COUNTED_CHARS} characters byte by byte: {chars} tokens or more"
        else:
            note = ""
        if note:
            draft.add(
                "MEM309",
                path,
                f"a memory of `charLimit` {chars} can never fit into `tokenLimit` {tokens}",
                span=draft.value_span(path),
                librechat=LibreChat.ACCEPTS,
                labels=_label(draft, (*MEMORY, "tokenLimit"), "for all memories together"),
                helps=("lower `charLimit`, or raise `tokenLimit`",),
                notes=(note,),
            )
    _check_window(draft)


def _check_window(draft: Draft) -> None:
    """The window against the budget, one of which may be the default of the other's absence."""
    given = [name for name in DEFAULTS if draft.entry((*MEMORY, name)) is not None]
    window, budget = (_limit(draft, name) if name in given else DEFAULTS[name] for name in DEFAULTS)
    if not given or not window or not budget or window * MIN_MESSAGE_TOKENS <= budget:
        return
    path = (*MEMORY, given[0])
    default = (
        ""
        if len(given) == len(DEFAULTS)
        else ", its default"
        if given[0] == "messageWindowSize"
        else " (5 is the default)"
    )
    draft.add(
        "MEM303",
        path,
        f"{window} messages never fit into `maxInputTokens` {budget}{default}",
        span=draft.value_span(path),
        librechat=LibreChat.ACCEPTS,
        labels=_label(draft, (*MEMORY, given[1]), f"{budget / window:.1f} tokens a message")
        if given[1:]
        else (),
        helps=(
            f"lower `messageWindowSize` to {max(budget // MIN_MESSAGE_TOKENS, 1)} or less, or raise `maxInputTokens`",
        ),
        notes=("what does not fit is cut off from the start, the newest text stays",),
    )


def _limit(draft: Draft, name: str) -> int:
    """A limit that makes sense by itself, 0 otherwise."""
    value = draft.number((*MEMORY, name))
    usable = value is not None and math.isfinite(value) and value > 0 and value == int(value)
    return int(value) if value is not None and usable and not draft.is_blamed((*MEMORY, name)) else 0


def _check_agent_forms(draft: Draft) -> None:
    """Exactly one of the two forms, complete. LibreChat prefers `id` (spec/librechat.md §3.4)."""
    if draft.is_blamed(AGENT) or any(
        path[:2] == AGENT for path in draft.blamed if len(path) == len(AGENT) + 1
    ):
        return
    given = [name for name in ("id", "provider", "model") if has_value(draft, (*AGENT, name))]
    if "id" in given and len(given) > 1:
        others = " and ".join(f"`{name}`" for name in given[1:])
        draft.add(
            "MEM302",
            AGENT,
            f"the memory agent has both `id` and {others}",
            span=draft.key_span((*AGENT, "id")),
            librechat=LibreChat.IGNORES,
            labels=tuple(
                Label(span, "not used beside `id`")
                for name in given[1:]
                if (span := draft.key_span((*AGENT, name))) is not None
            ),
            helps=("keep `id` for a saved agent, or `provider` and `model` for one described here",),
            notes=("LibreChat takes the saved agent and leaves the rest unread",),
        )
    elif "id" in given:
        _check_beside_id(draft)
    elif given != ["provider", "model"]:
        _report_incomplete(draft, given, librechat=LibreChat.IGNORES)


def report_incomplete(draft: Draft) -> None:
    """An agent that LibreChat rejects because neither form is complete."""
    _report_incomplete(
        draft,
        [name for name in ("provider", "model") if has_value(draft, (*AGENT, name))],
        librechat=LibreChat.REJECTS,
    )


def _report_incomplete(draft: Draft, given: list[str], *, librechat: LibreChat) -> None:
    if given:
        missing = "model" if given == ["provider"] else "provider"
        message = f"the memory agent has a `{given[0]}` and no `{missing}`"
    else:
        message = "the memory agent has neither an `id` nor a `provider` and `model`"
    empty = [name for name in ("id", "provider", "model") if draft.text((*AGENT, name)) == ""]
    listed = " and ".join(f"`{name}`" for name in empty)
    draft.add(
        "MEM301",
        AGENT,
        message,
        librechat=librechat,
        helps=("give `id` of a saved agent, or both `provider` and `model`",),
        notes=(f"an empty {listed} counts as absent: LibreChat then never runs the agent and says nothing",)
        if empty
        else (),
    )


def _check_beside_id(draft: Draft) -> None:
    for name in ("instructions", "model_parameters"):
        if draft.entry((*AGENT, name)) is not None:
            draft.add(
                "MEM314",
                (*AGENT, name),
                f"`{name}` has no effect beside `agent.id`",
                span=draft.key_span((*AGENT, name)),
                librechat=LibreChat.IGNORES,
                helps=("set it on the saved agent, or replace `id` by `provider` and `model`",),
            )


def _check_agent_switches(draft: Draft) -> None:
    if draft.flag((*MEMORY, "disabled")) or draft.flag((*AGENT, "enabled")) is False:
        return
    if draft.entry((*AGENT, "enabled")) is None and not draft.is_blamed(AGENT):
        draft.add(
            "MEM305",
            (*AGENT, "enabled"),
            "the memory agent has no `enabled: true`",
            span=draft.key_span(AGENT),
            librechat=LibreChat.IGNORES,
            helps=("add `enabled: true` under `agent`",),
            notes=(
                "memagent runs this agent; LibreChat since mid-2026 does not, and logs one line about it at startup",
            ),
        )
    if draft.flag((*MEMORY, "personalize")) is False:
        draft.add(
            "MEM310",
            (*MEMORY, "personalize"),
            f"`{dotted(AGENT)}` is set and `personalize` is `false`",
            span=draft.key_span((*MEMORY, "personalize")),
            level=Level.WARNING,
            librechat=LibreChat.ACCEPTS,
            labels=_label(draft, AGENT, "never runs in memagent"),
            helps=("set `personalize: true`, or remove the agent",),
            notes=(
                "memagent learns nothing without personalization; LibreChat only hides the users' own switch",
            ),
        )
