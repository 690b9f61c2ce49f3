"""How pages leave the server: rendered from templates that escape everything, under headers that forbid everything else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib import resources
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from memagent.api.pages.language import LANGUAGES, language
from memagent.api.pages.visit import LANGUAGE_COOKIE, place_of

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from memagent.api.pages.visit import Visit

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: with it a browser says of our own forms that they come from nowhere.
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
NO_STORE = {"Cache-Control": "no-store"}
YEAR_S = 365 * 24 * 3600

TYPES = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""Everything a page loads."""

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Static:
    content: bytes
    digest: str


@lru_cache(maxsize=len(TYPES))
def static(name: str) -> Static:
    content = resources.files("memagent.api.pages").joinpath(f"static/{name}").read_bytes()
    return Static(content, sha256(content).hexdigest()[:16])


def address(name: str) -> str:
    """Where a file of ours is; another content has another address, so browsers may keep it."""
    return f"/static/{static(name).digest}/{name}"


@router.get("/static/{digest}/{name}")
async def static_file(digest: str, name: str) -> Response:
    if name not in TYPES or digest != static(name).digest:
        raise HTTPException(404, "there is no such file")
    kept = {"Cache-Control": f"public, max-age={YEAR_S}, immutable"}
    return Response(static(name).content, media_type=TYPES[name], headers={**HEADERS, **kept})


@lru_cache(maxsize=1)
def templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  only where pages are asked for

    made = Environment(
        loader=PackageLoader("memagent.api.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["address"] = address
    made.globals["languages"] = [language(code) for code in LANGUAGES]
    made.globals["place_of"] = place_of
    made.filters["marked"] = marked
    return made


def marked(text: str) -> Markup:
    """Text with what stands between backticks as code; all of it escaped."""
    from markupsafe import Markup  # noqa: PLC0415  beside jinja2

    code = Markup("<code>{}</code>")
    pieces = text.split("`")
    odd = len(pieces) % 2 == 0  # a backtick without its partner is text
    parts = [
        code.format(piece) if n % 2 and not (odd and n == len(pieces) - 1) else piece
        for n, piece in enumerate(pieces)
    ]
    return Markup("").join(parts)


def page(visit: Visit, name: str, /, *, status: int = 200, **shown: Any) -> HTMLResponse:
    """A page for this visitor, which nobody keeps a copy of."""
    text = templates().get_template(f"{name}.html.j2").render(visit=visit, say=visit.language, **shown)
    # What a user wrote may hold halves of characters, which no page can.
    answer = HTMLResponse(text.encode("utf-8", "replace"), status, headers={**HEADERS, **NO_STORE})
    answer.headers["Content-Language"] = visit.language.code
    answer.headers["Vary"] = "Accept-Language, Cookie"
    if visit.chosen_language:
        secure = (visit.request.app.state.options.public_url or str(visit.request.url)).startswith("https")
        answer.set_cookie(
            LANGUAGE_COOKIE,
            visit.chosen_language,
            max_age=YEAR_S,
            secure=secure,
            httponly=True,
            samesite="lax",
        )
    return answer


def onward(path: str) -> RedirectResponse:
    """After a form: to the page that shows what came of it."""
    return RedirectResponse(path, 303, headers={**HEADERS, **NO_STORE})
