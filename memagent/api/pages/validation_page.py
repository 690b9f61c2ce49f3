"""The page that checks a librechat.yaml while it is typed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, UploadFile
from fastapi.responses import HTMLResponse

from memagent.api.auth import KEY_PREFIX, May, prove
from memagent.api.pages.answers import page
from memagent.api.pages.visit import OpenVisit, Visit
from memagent.api.validation import MAX_TEXT_BYTES, run_check
from memagent.errors import Forbidden, MemagentError, Unauthenticated

router = APIRouter(include_in_schema=False)


@router.get("/admin/validate")
async def validate_page(visit: OpenVisit) -> HTMLResponse:
    """Open to everybody: it holds nothing. Who may have a text checked is decided when one is sent."""
    return shown(visit)


@router.post("/admin/validate")
async def validate(
    visit: OpenVisit,
    text: Annotated[str, Form(max_length=MAX_TEXT_BYTES)] = "",
    key: Annotated[str, Form(max_length=256)] = "",
    file: UploadFile | None = None,
) -> HTMLResponse:
    """Check the text, or the file in its place; the key is an admin's, where one is needed."""
    # Forms send every line end as two characters; places count the ones that were typed.
    typed = text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    content = await file.read() if file and file.filename else typed
    written = content.decode("utf-8", "replace")
    try:
        refuse_others(visit, key)
    except MemagentError as fault:
        return shown(visit, text=written, fault=fault, status=fault.status)
    return shown(visit, text=written, check=await run_check(visit.request.app, content))


def is_open_to(visit: Visit) -> bool:
    """Whether this visitor needs no key."""
    fixed = visit.caller is not None and visit.caller.via == "fixed"
    return fixed or bool(visit.request.app.state.options.public_validate)


def refuse_others(visit: Visit, key: str) -> None:
    """Raise `Unauthenticated` or `Forbidden` for a key that is no admin's."""
    if is_open_to(visit):
        return
    if not key.startswith(KEY_PREFIX):
        raise Unauthenticated("an admin's API key is needed to have a file checked here")
    credentials = visit.request.app.state.credentials
    caller = prove({"authorization": f"Bearer {key}"}, {}, credentials, now=visit.now)
    if May.ADMIN not in caller.may:
        raise Forbidden("this API key may not `admin`")


def shown(visit: Visit, *, status: int = 200, **values: Any) -> HTMLResponse:
    found = {"text": "", "check": None, "fault": None, **values}
    return page(visit, "validate", status=status, needs_key=not is_open_to(visit), **found)
