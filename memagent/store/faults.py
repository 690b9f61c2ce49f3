"""The one boundary where redis-py's and RedisVL's errors become ours, narrowest first."""

from __future__ import annotations

import builtins
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memagent.errors import EngineMissing, IndexDrift, MemagentError, StoreFault, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

RUN_REDIS = "for example with `docker run -p 6379:6379 redis:8`"

NO_ENGINE = f"Redis has no query engine: use Redis 8 or Redis Stack, {RUN_REDIS}"

NO_INDEX = ("Unknown Index name", "no such index")

# What a server says. Found anywhere in the message, because a script's error quotes the inner one, or as redis-py's class,
# because that takes the code out of the message.
_SAID: tuple[tuple[tuple[str, ...], type[StoreFault], str], ...] = (
    (
        ("unknown command 'FT.", "unknown command `FT.", "Unknown Redis command called from script"),
        EngineMissing,
        NO_ENGINE,
    ),
    (
        (*NO_INDEX, "Unknown field", "Property `", "Error parsing vector similarity"),
        IndexDrift,
        "the search index is gone or is not as memagent made it: open the store again to make it anew",
    ),
    (
        ("Cannot block", "CROSSSLOT", "MovedError", "MOVED ", "AskError"),
        StoreFault,
        "this Redis is a cluster of several shards and was not known as one: give redis+cluster://host:port of a node, no proxy",
    ),
    (
        ("Cluster mode is not enabled",),
        StoreFault,
        "this Redis is no cluster: its URL begins with redis://",
    ),
    (
        ("READONLY", "ReadOnlyError"),
        StoreUnavailable,
        "Redis is read-only: it is a replica, or a failover is under way",
    ),
    (("MISCONF",), StoreUnavailable, "Redis cannot save to its disk and takes no writes: look at its log"),
    (
        ("OOM ", "OutOfMemoryError"),
        StoreUnavailable,
        "Redis is out of memory (`maxmemory`) and takes no writes: give it more",
    ),
    (("LOADING", "BusyLoadingError"), StoreUnavailable, "Redis is still loading its data: try again shortly"),
    (("BUSY ",), StoreUnavailable, "Redis is busy with a script of someone else: try again shortly"),
    (
        ("CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "TryAgainError", "NOREPLICAS", "UNKILLABLE"),
        StoreUnavailable,
        "Redis has no primary for this right now: a failover is under way, or a slot moves to another shard",
    ),
    (
        ("NOAUTH", "WRONGPASS", "NOPERM", "invalid username-password", "Authentication required"),
        StoreFault,
        "Redis does not let us in: check user and password in the Redis URL, and that the user may run scripts and FT commands",
    ),
    (("WRONGTYPE",), StoreFault, "a key of ours holds something else: another program uses the same prefix"),
)


@contextmanager
def redis_errors(doing: str) -> Iterator[None]:
    """Raise our errors for theirs; `doing` says what was being done, without any text of a user."""
    from redis import exceptions  # noqa: PLC0415  redis must not load for commands that need no store

    try:
        yield
    except (
        exceptions.RedisError,
        exceptions.RedisClusterException,
        OSError,
        builtins.TimeoutError,
    ) as error:
        raise mapped(error, doing) from error
    except MemagentError:
        raise
    except RuntimeError as error:
        # uvloop's word for a connection that was reset while we wrote to it, which redis-py lets through.
        if "handler is closed" in str(error):
            raise mapped(ConnectionResetError(), doing) from error
        raise
    except Exception as error:
        if type(error).__module__.startswith("redisvl"):
            raise mapped(error.__cause__ or error, doing) from error
        raise


def mapped(error: BaseException, doing: str) -> StoreFault:
    """Our error for one of theirs. The message names the kind of theirs, never what they quote: it may hold memory text."""
    from redis import exceptions  # noqa: PLC0415  see redis_errors

    text = _words_of(error)
    for signs, fault, advice in _SAID:
        if any(sign in text for sign in signs):
            return fault(f"{doing}: {advice}")
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError):
        return StoreFault(f"{doing}: Redis does not let us in: check user and password in the Redis URL")
    if isinstance(error, exceptions.TimeoutError | builtins.TimeoutError):
        return StoreUnavailable(f"{doing}: Redis did not answer in time")
    if isinstance(error, exceptions.ConnectionError | OSError):
        return StoreUnavailable(
            f"{doing}: Redis cannot be reached; is it running, and is the Redis URL right?"
        )
    if isinstance(error, exceptions.ClusterError | exceptions.RedisClusterException):
        return StoreUnavailable(f"{doing}: the Redis cluster cannot serve this right now")
    return StoreFault(f"{doing}: Redis refused ({type(error).__name__})")


def _words_of(error: BaseException | None) -> str:
    words: list[str] = []
    while error is not None and len(words) < 5:  # noqa: PLR2004  deeper than any chain of RedisVL
        words.append(f"{type(error).__name__}: {error}")
        error = error.__cause__
    return " ".join(words)
