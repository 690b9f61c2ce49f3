"""Names in Redis: the only place where a key, an index name or a filter value is spelled.

    ma:m:{u:alice}u::<key>      one memory (hash); `ma:m:` is what the index watches
    ma:<kind>:{u:alice}u::      one per scope: `s` state, `k` keys by creation, `u` last matches, `f` fingerprints,
                                `h` history, `l` lanes, `i` message ids, `d` what changed lately,
                                `b` + lane: keys by date of last use, `r` + message id: receipts
    ma:c:{u:alice}              a user's preferences, in the same slot as all scopes of that user
    ma:p:{u:alice}              a user's scopes: the own pool, the partitions of agents, the global one
    ma:<kind>:{u:alice}         a user's turns: `q` ids that wait, `w` lease of the worker, `y` all ids by expiry, `t` + id: one turn
    ma:n:{u:alice}              names of the conversations of a user whose turns are numbered; behind each name the numbers of one:
                                ma:n:{u:alice}u::<digest>
    ma:spoken                   whose turns are searched, and with whose vectors
    ma:waiting, ma:dead         handles of the turns of everybody that wait, and of those that were given up, by time
    ma:swept                    is there while nobody need sweep

The part in braces holds a kind and a percent-encoded owner, the part behind it a kind and a percent-encoded agent; neither can
contain `{`, `}` or `:` of its own, so no two scopes share a key, whatever people are called. What follows is the memory's
key as it is, any characters, but for `%` and NUL, which are written `%25` and `%00`.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from memagent.errors import BadRequest, InvalidKey
from memagent.lexicon import fold, terms
from memagent.memory import MAX_KEY_CHARS, Scope, ScopeKind

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SCOPE_CHARS = 1_024
"""Of an encoded scope: far above any user id, and under the engine's limit for one tag, past which tags are cut."""

NO_EMBEDDER = "none"
"""Stands in a memory's embedder field while it has no vector."""

_LETTERS = {ScopeKind.USER: "u", ScopeKind.GLOBAL: "g", ScopeKind.SHARED: "s"}
_KINDS = {letter: kind for kind, letter in _LETTERS.items()}
_PER_SCOPE = ("s", "k", "u", "f", "h", "l", "i")


def scope_id(scope: Scope) -> str:
    """`scope` as printable ASCII, different for different scopes; raises `BadRequest` past `MAX_SCOPE_CHARS`."""
    return "{" + _slot(scope) + "}" + _tail(scope)


def slot_tag(scope: Scope) -> str:
    """What Redis finds the slot of all keys of a scope by: equal for all scopes of one user, another for each shared one."""
    return "{" + _slot(scope) + "}"


def scope_from_id(text: str) -> Scope:
    """Return the scope that `scope_id` made `text` of."""
    slot, _, tail = text.removeprefix("{").partition("}")
    letter, _, agent = tail.partition(":")
    owner = slot.partition(":")[2]
    return Scope(
        _KINDS[letter], unquote(owner, errors="surrogatepass"), unquote(agent[:-1], errors="surrogatepass")
    )


@lru_cache(maxsize=4096)
def script_keys(prefix: str, scope: Scope) -> tuple[str, ...]:
    """Keys and key prefixes of one scope, in the order in which `lua/scope.lua` names them."""
    identity = scope_id(scope)
    kept = [f"{prefix}:{kind}:{identity}" for kind in _PER_SCOPE]
    return (
        *kept,
        consent_key(prefix, scope),
        memory_prefix(prefix) + identity,
        f"{prefix}:b:{identity}",
        f"{prefix}:r:{identity}",
        partitions_key(prefix, scope),
        f"{prefix}:d:{identity}",
    )


def memory_prefix(prefix: str) -> str:
    """What the index watches."""
    return f"{prefix}:m:"


def receipt_key(prefix: str, scope: Scope, message_id: str) -> str:
    return f"{prefix}:r:{scope_id(scope)}{plain(message_id, 'message id')}"


def consent_key(prefix: str, scope: Scope) -> str:
    """Preferences of the user whose memories these are; a shared scope's name is nobody's, so it has none."""
    return f"{prefix}:c:{{{_slot(scope)}}}"


def partitions_key(prefix: str, scope: Scope) -> str:
    """The scopes of the user whose memories these are."""
    return f"{prefix}:p:{{{_slot(scope)}}}"


def queue_keys(prefix: str, user: str) -> list[str]:
    """Keys of a user's turns, in the order in which `lua/queue.lua` names them; the fourth is what a turn's id is put behind."""
    lane = queue_name(user)
    return [f"{prefix}:{kind}:{lane}" for kind in ("q", "w", "y", "t", "c")]


def queue_name(user: str) -> str:
    """A user in the name of a turn: `{u:alice}`, the slot of everything that user has."""
    return "{" + _slot(Scope(ScopeKind.USER, user)) + "}"


def turn_handle(user: str, turn_id: str) -> str:
    """One turn among everybody's."""
    return queue_name(user) + turn_id


def of_handle(handle: str) -> tuple[str, str]:
    """Whose turn, and its id."""
    lane, _, turn_id = handle.rpartition("}")
    return unquote(lane.removeprefix("{u:"), errors="surrogatepass"), turn_id


def conversations_key(prefix: str, user: str) -> str:
    return f"{prefix}:n:{queue_name(user)}"


def conversation_name(scope: Scope, conversation: str) -> str:
    """One conversation of a user among all of that user's, whatever it is called."""
    digest = hashlib.blake2b(
        conversation.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES
    ).hexdigest()
    return scope_id(scope) + digest


def owner_in(name: str) -> str:
    """The scope's id in a conversation's name."""
    return name[: -2 * _DIGEST_BYTES]


_DIGEST_BYTES = 16


def numbers_key(prefix: str, name: str) -> str:
    """Where the turns of a conversation, by its name, are numbered."""
    return f"{prefix}:n:{name}"


def spoken_key(prefix: str) -> str:
    return f"{prefix}:spoken"


def waiting_key(prefix: str) -> str:
    return f"{prefix}:waiting"


def dead_key(prefix: str) -> str:
    return f"{prefix}:dead"


def swept_key(prefix: str) -> str:
    return f"{prefix}:swept"


def news_channel(prefix: str) -> str:
    """Where it is told that a turn's state changed; not a key."""
    return f"{prefix}:news"


def user_keys_pattern(prefix: str, user: str) -> str:
    """A pattern of every key that a user has here. An encoded name holds none of a pattern's signs."""
    return f"{prefix}:?:{queue_name(user)}*"


def scope_and_key(prefix: str, name: str) -> tuple[Scope, str]:
    """Whose memory a Redis key is, and under which key."""
    identity, key = split_name(prefix, name)
    return scope_from_id(identity), key


def split_name(prefix: str, name: str) -> tuple[str, str]:
    rest = name.removeprefix(memory_prefix(prefix))
    end = rest.index(":", rest.index(":", rest.index("}")) + 1) + 1
    return rest[:end], rest[end:].replace("%00", "\0").replace("%25", "%")


def embedder_tag(embedder: str) -> str:
    """A short name for an embedder id that is safe in field names and filters."""
    return hashlib.blake2b(embedder.encode(), digest_size=6).hexdigest() if embedder else NO_EMBEDDER


def vector_field(embedder: str) -> str:
    """The field of this embedder's vectors: a wrong dimension in a shared field would drop the whole memory from the index."""
    return f"v_{embedder_tag(embedder)}"


def check_prefix(prefix: str) -> str:
    """Return `prefix`; raises `BadRequest` unless it is made of letters, digits, `-`, `_` and `.`."""
    if not prefix or not all(sign.isascii() and (sign.isalnum() or sign in "-_.") for sign in prefix):
        raise BadRequest(f"the key prefix {prefix!r} must be letters, digits, `-`, `_` and `.`")
    return prefix


def memory_key(key: str) -> str:
    """Return `key`; raises `InvalidKey` for an empty, overlong or unencodable one."""
    if not key:
        raise InvalidKey("a memory key cannot be empty")
    if len(key) > MAX_KEY_CHARS:
        raise InvalidKey(f"a memory key has at most {MAX_KEY_CHARS} characters, not {len(key)}")
    try:
        return plain(key, "memory key")
    except BadRequest as error:
        raise InvalidKey(str(error)) from None


def plain(text: str, what: str) -> str:
    """Return `text`; raises `BadRequest` for half a surrogate pair, which no encoding can carry."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(
            f"the {what} holds half of a character at position {error.start}: send whole text"
        ) from None
    return text


def tag_words(tags: Sequence[str]) -> list[str]:
    """Tags as they are compared, each once, in one order: `#channel`, or the folded words of a keyword."""
    return sorted({_tag_word(tag.strip()) for tag in tags if tag.strip()})


def channel_tag(channel: str) -> str:
    return "#" + channel.removeprefix("#").casefold()


def _tag_word(tag: str) -> str:
    return channel_tag(tag) if tag.startswith("#") else " ".join(terms(tag)) or fold(tag)


def _slot(scope: Scope) -> str:
    shared = scope.kind is ScopeKind.SHARED
    return f"{'s' if shared else 'u'}:{_encoded(scope.owner)}"


def _tail(scope: Scope) -> str:
    return f"{_LETTERS[scope.kind]}:{_encoded(scope.agent)}:"


def _encoded(part: str) -> str:
    encoded = quote(part, safe="", errors="surrogatepass")
    if len(encoded) > MAX_SCOPE_CHARS:
        raise BadRequest(
            f"the name of a scope takes {len(encoded)} bytes; at most {MAX_SCOPE_CHARS} are possible"
        )
    return encoded
