"""Checking a librechat.yaml over HTTP and on its page: who may, what is found, and that nothing of it stays."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from memagent.api.findings import checked
from memagent.api.validation import MAX_TEXT_BYTES
from memagent.config.check import check
from memagent.config.document import parse
from tests.api.pages.conftest import Text, post, visitor

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "sk-abcdefghijklmnopqrstuvwxyz123456"
BAD = f"""version: '1.3.5'
memory:
  disabled: flase
  charlimit: 10
endpoints:
  custom:
    - name: Gateway
      apiKey: "{SECRET}"
      baseURL: https://gateway.example.org/v1
      models: {{default: [small]}}
"""


async def test_an_admins_key_has_a_file_checked(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        answer = await service.admin().post("/v1/validate", content=BAD)
        found = answer.json()
        assert answer.status_code == 200
        assert found["outcome"] == "exits"
        assert [each["code"] for each in found["findings"]] == [
            each.code for each in check(parse(BAD.encode(), "librechat.yaml"))
        ]
        assert found["findings"][0]["location"] == {"row": 3, "column": 13}
        assert SECRET not in answer.text


async def test_nobody_else_does_unless_it_is_opened(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        assert (await service.client().post("/v1/validate", content=BAD)).status_code == 401
        assert (await service.as_user("ada").post("/v1/validate", content=BAD)).status_code == 403
        client = await visitor(service, "ada", **{"X-Requested-With": "memagent"})
        assert (await client.post("/v1/validate", content=BAD)).status_code == 403
    async with open_service(environ={"MEMAGENT_PUBLIC_VALIDATE": "true"}) as service:
        assert (await service.client().post("/v1/validate", content=BAD)).status_code == 200


async def test_who_runs_it_for_themselves_needs_no_key(open_service: Callable[..., Any]) -> None:
    async with open_service(fixed_user="me") as service:
        client = service.client(Host="127.0.0.1", Accept="text/html")
        assert (await client.post("/v1/validate", content=BAD)).status_code == 200
        assert Text((await client.get("/admin/validate")).text).values("key") == []


async def test_the_page_shows_findings_with_their_frames(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        client = await visitor(service, None)
        key = service.keys["admin"]
        page = Text((await client.post("/admin/validate", data={"text": BAD, "key": key})).text)
        assert "LibreChat says what is wrong and exits." in page.text
        assert "^^^^^" in page.text
        assert "Line 3, column 13" in page.text
        assert key not in page.text
        assert page.text.count(SECRET) == 1, "what was typed stays in its field, no finding repeats it"
        sent = await client.post(
            "/admin/validate", data={"key": key}, files={"file": ("librechat.yaml", BAD)}
        )
        assert "Line 3, column 13" in sent.text


@pytest.mark.parametrize(
    ("key", "status"), [("", 401), ("nonsense", 401), ("mk_unknown", 401), ("backend", 403)]
)
async def test_the_page_checks_for_admins_only(
    open_service: Callable[..., Any], key: str, status: int
) -> None:
    async with open_service() as service:
        client = await visitor(service, None)
        sent = service.keys.get(key, key)
        answer = await client.post("/admin/validate", data={"text": BAD, "key": sent})
        assert answer.status_code == status
        assert "MEM2" not in answer.text
        assert "flase" in answer.text, "what was typed is not lost"


async def test_a_signed_in_users_session_is_no_admin(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        client = await visitor(service, "ada")
        assert (await post(client, "/admin/validate", text=BAD)).status_code == 401


async def test_what_is_sent_is_neither_logged_nor_kept(
    open_service: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with open_service() as service:
            await service.admin().post("/v1/validate", content=BAD.replace("flase", "qwertz-word"))
            client = service.app.state.memory.ports.store.client
            prefix = service.app.state.memory.ports.options.key_prefix
            kept = [key async for key in client.scan_iter(match=f"{prefix}*")]
            dump = b"".join([await client.dump(key) or b"" for key in kept])
    assert "qwertz" not in caplog.text
    assert b"qwertz" not in dump


async def test_a_file_that_is_too_large_is_not_looked_at(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        at, over = b"#" * MAX_TEXT_BYTES, b"#" * (MAX_TEXT_BYTES + 1)
        assert (await service.admin().post("/v1/validate", content=at)).status_code == 200
        assert (await service.admin().post("/v1/validate", content=over)).status_code == 413


@pytest.mark.parametrize(
    "text", [b"", b"\xff\xfe\x00", b"\x00", b"a: [", b"\xed\xa0\x80", b"- 1", b"a: \x0ex\x0f"]
)
def test_no_text_is_too_strange_to_be_checked(text: bytes) -> None:
    assert checked(text).outcome in {"starts", "defaults", "exits", "crashes"}


def test_frames_hold_what_the_terminal_shows() -> None:
    from memagent.report.text import full

    framed = checked(BAD.encode()).findings[0]
    rows = ["".join(stretch.text for stretch in row) for row in framed.rows]
    told = full([framed.finding], sources={"librechat.yaml": BAD}, files=1, color=False)
    assert all(row in told for row in rows)
    assert [stretch.text for row in framed.rows for stretch in row if stretch.style == "primary"] == ["^^^^^"]
    assert framed.is_error


def test_a_file_without_fault_has_no_findings() -> None:
    found = checked(b"version: '1.3.5'\n")
    assert (found.outcome, found.errors, found.warnings) == ("starts", 0, 0)
