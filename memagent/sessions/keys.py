"""Session keys: what a chat is called. They encode the agent, the channel and the chat, and are always lower case."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAIN = "main"
GLOBAL = "global"
UNKNOWN = "unknown"
MAX_AGENT_ID_CHARS = 64

_VALID_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_NOT_IN_AGENT_ID = re.compile(r"[^a-z0-9_-]+")
_THREAD = re.compile(r":(?:thread|topic):")
_GROUP = re.compile(r":(?:group|channel):")
_MIN_PARTS = 3


class KeyKind(StrEnum):
    DIRECT = "direct"
    GROUP = "group"
    THREAD = "thread"


class DirectScope(StrEnum):
    """Who shares a direct chat's session (O07)."""

    MAIN = "main"
    PER_PEER = "per-peer"
    PER_CHANNEL_PEER = "per-channel-peer"
    PER_ACCOUNT_CHANNEL_PEER = "per-account-channel-peer"


@dataclass(frozen=True, slots=True)
class AgentKey:
    """A key of one agent: `rest` is everything after `agent:<agent>:`."""

    agent: str
    rest: str


def fold(key: str) -> str:
    """A key as it is stored and compared (O05)."""
    return key.strip().lower()


def lock_name(key: str) -> str:
    """The key as the name of its lock: any text, one length."""
    return sha256(fold(key).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def agent_id(text: str) -> str:
    """An agent's id out of any text; `main` when nothing is left of it (O04)."""
    lowered = text.strip().lower()
    if _VALID_AGENT_ID.fullmatch(lowered):
        return lowered
    return _NOT_IN_AGENT_ID.sub("-", lowered).strip("-")[:MAX_AGENT_ID_CHARS] or MAIN


def parse(key: str) -> AgentKey | None:
    """The agent and the rest of an agent's key; None for any other key and for a malformed one (O06)."""
    parts = fold(key).split(":")
    if len(parts) < _MIN_PARTS or parts[0] != "agent" or not all(parts[:_MIN_PARTS]):
        return None
    return AgentKey(parts[1], ":".join(parts[2:]))


def main_key(agent: str = MAIN, main: str = MAIN) -> str:
    """The agent's main direct chat (O01)."""
    return f"agent:{agent_id(agent)}:{fold(main) or MAIN}"


def group_key(agent: str, channel: str, group: str) -> str:
    """A group chat of a channel (O02)."""
    return f"agent:{agent_id(agent)}:{fold(channel) or UNKNOWN}:group:{fold(group) or UNKNOWN}"


def channel_key(agent: str, channel: str, room: str) -> str:
    """A room of a channel (O02)."""
    return f"agent:{agent_id(agent)}:{fold(channel) or UNKNOWN}:channel:{fold(room) or UNKNOWN}"


def cron_key(job: str) -> str:
    """A scheduled job's runs (O03)."""
    return f"cron:{fold(job) or UNKNOWN}"


def hook_key(uuid: str) -> str:
    """A run that a webhook started (O03)."""
    return f"hook:{fold(uuid) or UNKNOWN}"


def stored_key(key: str, *, agent: str = MAIN, run: str = "") -> str:
    """A key as the store has it: under its agent's prefix, with the run of a job at its end (O03). `global` stays."""
    folded = fold(key)
    if folded != GLOBAL and parse(folded) is None:
        folded = f"agent:{agent_id(agent)}:{folded or MAIN}"
    return f"{folded}:run:{fold(run)}" if run else folded


def thread_key(parent: str, thread: str, *, topic: bool = False) -> str:
    """A thread, or a topic, of the chat `parent` (O08)."""
    return f"{fold(parent)}:{'topic' if topic else 'thread'}:{fold(thread) or UNKNOWN}"


def parent_of(key: str) -> str | None:
    """The chat a thread belongs to: what stands before the last thread marker (O08); None without one."""
    folded = fold(key)
    last = max((found.start() for found in _THREAD.finditer(folded)), default=0)
    return folded[:last] or None


def kind_of(key: str, *, thread: bool = False, group: bool = False) -> KeyKind:
    """What kind of chat: a thread before a group before a direct one, by flag or by the key's markers (O09)."""
    folded = fold(key)
    if thread or _THREAD.search(folded):
        return KeyKind.THREAD
    if group or _GROUP.search(folded):
        return KeyKind.GROUP
    return KeyKind.DIRECT


def direct_key(
    *,
    agent: str = MAIN,
    channel: str = "",
    account: str = "",
    peer: str = "",
    scope: DirectScope = DirectScope.MAIN,
    main: str = MAIN,
    links: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """A direct chat's key; without a peer it is the main chat (O07).

    `links` gives one name to peers who are one person: `{"ada": ["telegram:7", "8"]}`; scope `main` needs none.
    """
    who = fold(peer)
    if scope is DirectScope.MAIN or not who:
        return main_key(agent, main)
    where = fold(channel) or UNKNOWN
    who = _linked(where, who, links or {})
    match scope:
        case DirectScope.PER_PEER:
            rest = f"direct:{who}"
        case DirectScope.PER_CHANNEL_PEER:
            rest = f"{where}:direct:{who}"
        case DirectScope.PER_ACCOUNT_CHANNEL_PEER:
            rest = f"{where}:{fold(account) or 'default'}:direct:{who}"
    return f"agent:{agent_id(agent)}:{rest}"


def _linked(channel: str, peer: str, links: Mapping[str, Sequence[str]]) -> str:
    for name, peers in links.items():
        if {peer, f"{channel}:{peer}"} & {fold(each) for each in peers}:
            return fold(name)
    return peer
