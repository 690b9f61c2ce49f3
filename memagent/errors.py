"""Faults: what memagent raises, and nothing else.

Findings about a file are data (`memagent.config.findings`), never raised. A foreign error is mapped to one of these at
the boundary where it enters (`store.redis`, `llm.gateway`), narrowest first.

MemagentError
├── BadRequest              the caller's input cannot be used as it is
│   ├── InvalidKey          a memory key that this configuration does not allow
│   ├── LimitExceeded       a value, list or total that would pass its limit
│   └── NoUserKey           the endpoint takes a key or an address of the user, and the turn brings none
├── Unauthenticated         no user is proven
├── Forbidden               the user is proven and may not do this
│   └── PersonalizationOff  the user, or the configuration, switched memory off
├── NotFound                the named thing does not exist
│   ├── NoSuchMemory
│   ├── NoSuchTurn
│   └── NoSuchSession
├── Conflict                the named thing exists already, or changed meanwhile
├── Busy                    a queue is full; come back later
├── ConfigUnusable          the configuration has findings of level error; carries them
├── StoreFault              Redis
│   ├── StoreUnavailable    unreachable, timed out, loading, or read-only
│   ├── EngineMissing       reachable, but without the query engine
│   └── IndexDrift          an index of ours exists with another definition
├── ModelFault              the chat model
│   ├── ModelUnavailable    unreachable, timed out, rate limited, or failing
│   ├── ModelRefused        the key, the model or the request is not accepted
│   │   └── ContextTooLong  what was sent is larger than the model's window
│   └── ModelReplyInvalid   the answer cannot be read
└── EmbedderFault           the embedding model cannot be used
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memagent.config.findings import Finding


class MemagentError(Exception):
    """A fault with a stable code.

    `code` is for programs, the message for people: what, where, what to do. `retryable` says whether the same call may
    succeed later. `status` is its HTTP status, `exit_code` its process exit code.
    """

    code: ClassVar[str] = "memagent_error"
    retryable: ClassVar[bool] = False
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 2


class BadRequest(MemagentError):
    code = "bad_request"
    status = 400


class InvalidKey(BadRequest):
    code = "invalid_key"


class LimitExceeded(BadRequest):
    code = "limit_exceeded"


class NoUserKey(BadRequest):
    """The code is LibreChat's (spec/librechat.md §3.3)."""

    code = "no_user_key"


class Unauthenticated(MemagentError):
    code = "unauthenticated"
    status = 401


class Forbidden(MemagentError):
    code = "forbidden"
    status = 403


class PersonalizationOff(Forbidden):
    code = "personalization_off"


class NotFound(MemagentError):
    code = "not_found"
    status = 404
    exit_code = 1


class NoSuchMemory(NotFound):
    code = "no_such_memory"


class NoSuchTurn(NotFound):
    code = "no_such_turn"


class NoSuchSession(NotFound):
    code = "no_such_session"


class Conflict(MemagentError):
    code = "conflict"
    status = 409


class Busy(MemagentError):
    """A queue is full. `retry_after_s` is when to come back, in seconds."""

    code = "busy"
    retryable = True
    status = 429

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ConfigUnusable(MemagentError):
    """The configuration has findings of level error, all of them in `findings`."""

    code = "config_unusable"

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


class StoreFault(MemagentError):
    code = "store_fault"


class StoreUnavailable(StoreFault):
    code = "store_unavailable"
    retryable = True
    status = 503


class EngineMissing(StoreFault):
    code = "engine_missing"


class IndexDrift(StoreFault):
    code = "index_drift"


class ModelFault(MemagentError):
    code = "model_fault"
    status = 502


class ModelUnavailable(ModelFault):
    code = "model_unavailable"
    retryable = True
    status = 503


class ModelRefused(ModelFault):
    code = "model_refused"


class ContextTooLong(ModelRefused):
    code = "context_too_long"


class ModelReplyInvalid(ModelFault):
    code = "model_reply_invalid"


class EmbedderFault(MemagentError):
    code = "embedder_fault"
    retryable = True
    status = 503
