"""Who asks, and what they may do. A user is proven by LibreChat's token, by a session of ours, or by a backend that is trusted.

A backend's API key comes with the user in a header; a user's token is about that user alone, whatever else a request says.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import jwt
from fastapi import Depends, Request

from memagent.errors import ConfigUnusable, Forbidden, Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime

USER_HEADER = "X-Memagent-User"
KEY_PREFIX = "mk_"
SESSION_COOKIE = "memagent_session"
SESSION_AUDIENCE = "memagent-session"
LINK_AUDIENCE = "memagent-link"
FORM_AUDIENCE = "memagent-form"
FORM_FIELD = "token"
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class May(StrEnum):
    """What a credential is for. A user's own token or session may `read` and `write` that user, and nothing else."""

    TURNS = "turns"
    """Hand over turns and ask for context."""
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    """Dead letters, erasure, metrics; no user's memories by itself."""


OWN = frozenset({May.READ, May.WRITE})


@dataclass(frozen=True, slots=True)
class Principal:
    """A proven caller. `user` is None for a key that names nobody; `via` names the credential, for logs."""

    user: str | None
    may: frozenset[May]
    via: str


@dataclass(frozen=True, slots=True)
class ApiKey:
    name: str
    may: frozenset[May]
    digest: str


@dataclass(frozen=True, slots=True)
class Credentials:
    """What this server accepts. `jwt_secret` is LibreChat's `JWT_SECRET`, `session_secret` signs sessions of ours.

    `fixed_user` is everybody, on a server that one person runs for themselves on loopback.
    """

    keys: tuple[ApiKey, ...] = ()
    jwt_secret: str | None = None
    session_secret: str = ""
    fixed_user: str | None = None


def parse_keys(text: str) -> tuple[ApiKey, ...]:
    """Read `name:turns+read:sha256` rows, separated by blanks; raises `ConfigUnusable` that names the row, never a key."""
    keys = []
    for number, row in enumerate(text.split(), 1):
        parts = row.split(":")
        known = {may.value for may in May}
        digest = parts[2] if len(parts) == 3 else ""  # noqa: PLR2004  name, permissions, digest
        wanted = parts[1].split("+") if digest else []
        if len(digest) != 64 or set(digest) - set("0123456789abcdef") or not set(wanted) <= known:  # noqa: PLR2004  SHA-256
            raise ConfigUnusable(
                f"MEMAGENT_API_KEYS, row {number}: not `name:permissions:sha256` with permissions of "
                f"{'+'.join(sorted(known))}; `memagent key` makes one"
            )
        keys.append(ApiKey(parts[0], frozenset(May(each) for each in wanted), digest))
    return tuple(keys)


def new_key(name: str, may: frozenset[May]) -> tuple[str, str]:
    """A fresh key and its row for MEMAGENT_API_KEYS; the key is shown once and kept nowhere."""
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    return key, f"{name}:{'+'.join(sorted(may))}:{digest_of(key)}"


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def prove(
    headers: Mapping[str, str], cookies: Mapping[str, str], accepted: Credentials, *, now: datetime
) -> Principal:
    """The caller of a request; raises `Unauthenticated` or, for a user that a credential may not speak for, `Forbidden`."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    asked = headers.get(USER_HEADER.lower())
    if scheme.lower() == "bearer" and token:
        if token.startswith(KEY_PREFIX):
            return _by_key(token, asked, accepted)
        return _themselves(_claims(token, accepted.jwt_secret, now=now).get("id"), asked, "token")
    if SESSION_COOKIE in cookies:
        claims = _claims(cookies[SESSION_COOKIE], accepted.session_secret, now=now, audience=SESSION_AUDIENCE)
        return _themselves(claims.get("sub"), asked, "session")
    if accepted.fixed_user is not None:
        # One person's server has no backend but that person's own tools.
        return replace(_themselves(accepted.fixed_user, asked, "fixed"), may=OWN | {May.TURNS})
    raise Unauthenticated(
        f"no user is proven: send LibreChat's token as `Authorization: Bearer …`, or an API key and `{USER_HEADER}`"
    )


def _by_key(token: str, asked: str | None, accepted: Credentials) -> Principal:
    digest = digest_of(token)
    # Every key is compared, so that the time tells nothing about which one was near.
    found = [key for key in accepted.keys if hmac.compare_digest(key.digest, digest)]
    if not found:
        raise Unauthenticated("this API key is not known here: it may have been rotated out")
    return Principal(named(asked), found[0].may, found[0].name)


def named(user: str | None) -> str | None:
    """The user that a header names: nobody where LibreChat had nobody to put in its placeholder's place."""
    return None if not user or "{{" in user else user


def _themselves(user: Any, asked: str | None, via: str) -> Principal:
    if not isinstance(user, str) or not user:
        raise Unauthenticated("the token names no user")
    if asked is not None and asked != user:
        raise Forbidden("a user's own token speaks for that user only")
    return Principal(user, OWN, via)


def _claims(token: str, secret: str | None, *, now: datetime, audience: str | None = None) -> dict[str, Any]:
    if not secret:
        raise Unauthenticated("tokens are not accepted here: set JWT_SECRET to LibreChat's")
    try:
        # PyJWT reads the clock itself, so the times are checked here, against ours.
        claims = jwt.decode(
            token,
            secret,
            algorithms=["HS256"],
            audience=audience,
            options={"verify_exp": False, "verify_nbf": False},
        )
    except jwt.PyJWTError:
        raise Unauthenticated("the token is not valid: sign in again") from None
    if float(claims.get("exp", 0)) <= now.timestamp() or float(claims.get("nbf", 0)) > now.timestamp():
        raise Unauthenticated("the token has expired: sign in again")
    return dict(claims)


def signed(user: str, secret: str, *, audience: str, expires: datetime) -> str:
    """A token of ours: a login link's or a session's."""
    return jwt.encode(
        {"sub": user, "aud": audience, "exp": int(expires.timestamp())}, secret, algorithm="HS256"
    )


def opened(token: str, accepted: Credentials, *, audience: str, now: datetime) -> str:
    """The user whom a token of ours names; raises `Unauthenticated` when it is over, not ours, or for something else."""
    user = _claims(token, accepted.session_secret, now=now, audience=audience).get("sub")
    if not isinstance(user, str) or not user:
        raise Unauthenticated("the token names no user")
    return user


# -- dependencies of routes --------------------------------------------------------------------------------------------
#
# Coroutines all of them: a plain function would be sent through a thread, which costs more than what it does.


async def principal(request: Request) -> Principal:
    state = request.app.state
    now = state.memory.ports.clock()
    found = prove(request.headers, request.cookies, state.credentials, now=now)
    if found.via == "fixed":
        refuse_renamed(request)
    if found.via in {"session", "fixed"}:
        await refuse_forged(request, found, now=now)
    return found


def refuse_renamed(request: Request) -> None:
    """Who needs no credential is served under this machine's own names only: a page elsewhere may point its name here."""
    if request.url.hostname not in LOOPBACK:
        raise Forbidden("a server for one person answers to 127.0.0.1 and localhost only")


async def refuse_forged(request: Request, caller: Principal, *, now: datetime) -> None:
    """A page elsewhere may send a visitor's cookie along, never our header, nor a form's token, which names the user.

    A server for one person also takes what no browser sent: every browser says where such a request comes from.
    """
    if request.method in {"GET", "HEAD", "OPTIONS"} or request.headers.get("x-requested-with") == "memagent":
        return
    if caller.via == "fixed" and not {"origin", "sec-fetch-site"} & set(request.headers):
        return
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() in FORMS:
        token = (await request.form()).get(FORM_FIELD)
        accepted = request.app.state.credentials
        with suppress(Unauthenticated):
            if opened(str(token), accepted, audience=FORM_AUDIENCE, now=now) == caller.user:
                return
    raise Forbidden("this request did not come from memagent's own page: open it again and try once more")


def needs(may: May) -> Callable[[Principal], Awaitable[Principal]]:
    """A dependency: the caller, if they may."""

    async def allowed(caller: Annotated[Principal, Depends(principal)]) -> Principal:
        if may not in caller.may:
            raise Forbidden(f"this credential may not `{may.value}`")
        return caller

    return allowed


def user_of(may: May) -> Callable[[Principal], Awaitable[str]]:
    """A dependency: the proven user, for a caller who may."""

    async def user(caller: Principal = Depends(needs(may))) -> str:  # noqa: B008  a closure's name cannot stand in an annotation
        if caller.user is None:
            raise Unauthenticated(f"no user is named: send `{USER_HEADER}` with the API key")
        return caller.user

    return user


ReadUser = Annotated[str, Depends(user_of(May.READ))]
WriteUser = Annotated[str, Depends(user_of(May.WRITE))]
TurnUser = Annotated[str, Depends(user_of(May.TURNS))]
Admin = Annotated[Principal, Depends(needs(May.ADMIN))]
Proven = Annotated[Principal, Depends(principal)]
