"""Which memories a request is about: the proven user's own, a partition of them, or a shared scope a backend may name."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from memagent.api.auth import May, Principal, needs
from memagent.errors import Forbidden, Unauthenticated
from memagent.memory import Scope, ScopeKind
from memagent.turn import MAX_ID_CHARS

BY_USER = frozenset({"token", "session", "fixed"})
"""Credentials that a user holds, not a backend."""

Agent = Annotated[
    str, Query(max_length=MAX_ID_CHARS, description="The partition of an agent that keeps its own memories.")
]
Shared = Annotated[
    str,
    Query(
        max_length=MAX_ID_CHARS, description="A shared scope instead of the user's own; for API keys only."
    ),
]


def scope(caller: Principal, *, agent: str, shared: str) -> Scope:
    """The scope that a caller may name; who shares what is the backend's to know, never a user's to say."""
    if shared:
        if caller.via in BY_USER:
            raise Forbidden("a user's own credential opens that user's memories only, no shared scope")
        return Scope(ScopeKind.SHARED, shared)
    if caller.user is None:
        raise Unauthenticated("no user is named: send `X-Memagent-User` with the API key")
    return Scope(ScopeKind.USER, caller.user, agent)


async def readable(
    caller: Annotated[Principal, Depends(needs(May.READ))], agent: Agent = "", shared: Shared = ""
) -> Scope:
    return scope(caller, agent=agent, shared=shared)


async def writable(
    caller: Annotated[Principal, Depends(needs(May.WRITE))], agent: Agent = "", shared: Shared = ""
) -> Scope:
    return scope(caller, agent=agent, shared=shared)


ReadScope = Annotated[Scope, Depends(readable)]
WriteScope = Annotated[Scope, Depends(writable)]
