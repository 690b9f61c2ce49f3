"""Who looks at a page, in which language, and which of their memories they look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Query, Request

from memagent.api.auth import FORM_AUDIENCE, Credentials, Principal, principal, signed
from memagent.api.pages.language import LANGUAGES, Language, spoken
from memagent.api.scopes import BY_USER
from memagent.errors import BadRequest, Unauthenticated
from memagent.memory import Scope, ScopeKind
from memagent.turn import MAX_ID_CHARS

if TYPE_CHECKING:
    from datetime import datetime

    from memagent.service import Memagent

LANGUAGE_COOKIE = "memagent_language"
FORM_TIME = timedelta(hours=12)
"""As long as a session."""

GLOBAL = "global"
AGENT = "agent:"


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page. `caller` is None for whoever is not signed in."""

    request: Request
    language: Language
    caller: Principal | None = None

    @property
    def memory(self) -> Memagent:
        opened: Memagent = self.request.app.state.memory
        return opened

    @property
    def now(self) -> datetime:
        return self.memory.ports.clock()

    @property
    def user(self) -> str:
        """Raises `Unauthenticated`. Pages are a user's own: an API key opens none, whomever it names."""
        if self.caller is None or self.caller.user is None or self.caller.via not in BY_USER:
            raise Unauthenticated("nobody is signed in")
        return self.caller.user

    @property
    def signed_in(self) -> bool:
        return self.caller is not None and self.caller.user is not None and self.caller.via in BY_USER

    @property
    def by_session(self) -> bool:
        return self.caller is not None and self.caller.via == "session"

    @property
    def form_token(self) -> str:
        """What a form of this visitor's carries; empty for whoever has no forms to send."""
        if not self.signed_in:
            return ""
        accepted: Credentials = self.request.app.state.credentials
        return signed(
            self.user, accepted.session_secret, audience=FORM_AUDIENCE, expires=self.now + FORM_TIME
        )

    @property
    def chosen_language(self) -> str | None:
        """A language that this request asks for by its address, to be kept."""
        wish = self.request.query_params.get("lang")
        return wish if wish in LANGUAGES else None

    def scope(self, place: str) -> Scope:
        """The user's own memories in a place: the shared pool, an agent's partition, those for every agent."""
        if place == GLOBAL:
            return Scope(ScopeKind.GLOBAL, self.user)
        if place.startswith(AGENT):
            return Scope(ScopeKind.USER, self.user, place.removeprefix(AGENT))
        if place:
            raise BadRequest(
                "there is no such place: leave `place` empty, or `global`, or `agent:` and its id"
            )
        return Scope(ScopeKind.USER, self.user)


def place_of(scope: Scope) -> str:
    """How addresses name one of a user's own scopes."""
    if scope.kind is ScopeKind.GLOBAL:
        return GLOBAL
    return f"{AGENT}{scope.agent}" if scope.agent else ""


def language_of(request: Request) -> Language:
    return spoken(
        request.query_params.get("lang"),
        request.cookies.get(LANGUAGE_COOKIE),
        accepted=request.headers.get("accept-language", ""),
    )


async def open_visit(request: Request) -> Visit:
    """A visit by anybody; raises for a form that did not come from our page, not for who is not signed in."""
    caller: Principal | None = None
    try:
        caller = await principal(request)
    except Unauthenticated:
        caller = None
    return Visit(request, language_of(request), caller)


async def own_visit(visit: Annotated[Visit, Depends(open_visit)]) -> Visit:
    """A visit by a user who is signed in; raises `Unauthenticated`."""
    _ = visit.user
    return visit


def stranger(request: Request) -> Visit:
    """A visit as far as it is known when something failed: never raises."""
    return Visit(request, language_of(request))


OpenVisit = Annotated[Visit, Depends(open_visit)]
OwnVisit = Annotated[Visit, Depends(own_visit)]
Place = Annotated[
    str,
    Query(
        max_length=MAX_ID_CHARS + len(AGENT), description="Empty, `global`, or `agent:` and an agent's id."
    ),
]
