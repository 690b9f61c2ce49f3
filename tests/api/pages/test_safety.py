"""What pages may load, who may frame them, and what a server for one person refuses."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING, Any

import pytest

from memagent.api.pages.answers import TYPES, address, marked
from tests.api.pages.conftest import Text, post, visitor

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = resources.files("memagent.api.pages")
TEMPLATES = {each.name: each.read_text(encoding="utf-8") for each in FOLDER.joinpath("templates").iterdir()}
STATIC = {name: FOLDER.joinpath("static", name).read_text(encoding="utf-8") for name in TYPES}


async def test_every_page_forbids_everything_that_is_not_ours(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        client = await visitor(service, "ada")
        stranger = await visitor(service, None)
        answers = [
            await client.get(path)
            for path in ("/", "/history", "/data", "/sessions", "/admin/validate", "/absent")
        ]
        answers += [
            await client.get("/data/export"),
            await stranger.get("/"),
            await client.get(address("page.css")),
        ]
        answers.append(await post(client, "/memories/save", key="", value=""))
        for answer in answers:
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert "*" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "same-origin"
        assert {answer.headers["cache-control"] for answer in answers} == {
            "no-store",
            "public, max-age=31536000, immutable",
        }


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_has_no_inline_script_or_style(name: str) -> None:
    text = TEMPLATES[name]
    assert not re.search(r"<style|\sstyle\s*=|\son[a-z]+\s*=|javascript:|\|\s*safe|autoescape", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))


@pytest.mark.parametrize("name", [*TEMPLATES, *STATIC])
def test_nothing_is_loaded_from_anywhere_else(name: str) -> None:
    text = {**TEMPLATES, **STATIC}[name].replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", text)


def test_the_script_writes_no_html_of_its_own() -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|new Function", STATIC["page.js"]
    )


async def test_a_file_of_ours_is_kept_by_its_content(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        client = service.client()
        for name, kind in TYPES.items():
            answer = await client.get(address(name))
            assert answer.headers["content-type"] == kind
            assert answer.text == STATIC[name]
        for path in ("/static/0000/page.css", f"{address('page.css')}x", "/static/x/..%2Froutes.py"):
            assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("put `a` here", "put <code>a</code> here"),
        ("`<b>` & `c`", "<code>&lt;b&gt;</code> &amp; <code>c</code>"),
        ("no partner `here", "no partner here"),
        ("", ""),
    ],
)
def test_words_between_backticks_become_code_and_all_is_escaped(text: str, html: str) -> None:
    assert str(marked(text)) == html


async def test_a_server_for_one_person_answers_to_its_own_names_only(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(fixed_user="me") as service:
        client = service.client(Accept="text/html")
        for host, status in (
            ("127.0.0.1:8900", 200),
            ("localhost", 200),
            ("[::1]:8900", 200),
            ("evil.example", 403),
        ):
            assert (await client.get("/", headers={"Host": host})).status_code == status
            assert (await client.get("/v1/memories", headers={"Host": host})).status_code == status


async def test_a_server_for_one_person_takes_nothing_from_pages_elsewhere(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(fixed_user="me") as service:
        client = service.client(Accept="text/html", Host="127.0.0.1")
        body = {"value": "Green"}
        for headers in (
            {"Origin": "https://evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Origin": "null"},
        ):
            assert (await client.put("/v1/memories/tea", json=body, headers=headers)).status_code == 403
            form = {"key": "tea", "value": "Green"}
            assert (await client.post("/memories/save", data=form, headers=headers)).status_code == 403
        assert (await client.put("/v1/memories/tea", json=body)).status_code == 200
        page = Text((await client.get("/")).text)
        assert "Green" in page.text
        saved = await client.post(
            "/memories/save",
            data={"key": "pet", "value": "A cat", "token": page.token},
            headers={"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin"},
        )
        assert saved.status_code == 303
