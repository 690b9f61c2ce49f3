"""A user's own pages without any script: forms, what they lead to, and who may send them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from memagent.api.auth import FORM_AUDIENCE, LINK_AUDIENCE, signed
from memagent.memory import Scope, ScopeKind, Source
from tests.api.conftest import SESSION_SECRET
from tests.api.pages.conftest import Text, classes_of, link, post, remember, visitor

if TYPE_CHECKING:
    from collections.abc import Callable

DOORS = {
    "en": "You are not signed in",
    "vi": "Bạn chưa đăng nhập",
    "id": "Anda belum masuk",
    "de": "Du bist nicht angemeldet",
}

NASTY = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</textarea><script>alert(1)</script>",
    "</p></article></main><form action=//evil.example>",
    "{{ 7 * 7 }} {% raw %} ${7*7}",
    "\u202eesrever \u2066isolated\u2069 \u200f",
    "👩‍👩‍👧‍👦 🇻🇳 e\u0301 ﷽",
    "a & b &amp; c &lt;b&gt;",
    "line one\nline two\n\n  indented",
]


async def test_the_list_shows_what_where_from_and_how_it_stands(open_service: Callable[..., Any]) -> None:
    async with open_service(extra="tokenLimit: 100") as service:
        await remember(service, "ada", "diet", "Ada eats no meat.", quote="I stopped eating meat")
        service.later(minutes=1)
        await service.app.state.memory.put("ada", "language", "Answer in English.")
        page = Text((await (await visitor(service, "ada")).get("/")).text)
        for shown in (
            "diet",
            "Ada eats no meat.",
            "I stopped eating meat",
            "conversation-1",
            "message-1",
            "2 March 2026",
            "From what you said",
            "Written by you",
            "Protected",
            "of 100",
        ):
            assert shown in page.text
        assert page.text.index("language") < page.text.index("diet"), "newest first"


async def test_a_dormant_memory_says_so_with_its_days(open_service: Callable[..., Any]) -> None:
    async with open_service(environ={"MEMAGENT_DORMANT_AFTER_DAYS": "2"}) as service:
        await remember(service, "ada", "diet", "Ada eats no meat.")
        for _ in range(2):
            service.later(days=1)
            await service.app.state.memory.recall("ada", "a walk in the mountains")
        html = (await (await visitor(service, "ada")).get("/")).text
        assert "unused for 2 days" in html
        assert "card dormant" in classes_of(html)


async def test_forms_need_no_script(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        client, memory = await visitor(service, "ada"), service.app.state.memory
        saved = await post(client, "/memories/save", key="Favourite tea", value="Oolong,\r\nhot")
        assert saved.status_code == 200
        assert [each.status_code for each in saved.history] == [303]
        assert "Saved:" in Text(saved.text).text
        assert (await memory.get("ada", "favourite_tea")).value == "Oolong,\nhot"

        await post(client, "/memories/save", key="tea", value="Green", was="favourite_tea")
        assert [(each.key, each.value) for each in await memory.list("ada")] == [("tea", "Green")]

        deleted = await post(client, "/memories/delete", key="tea")
        assert await memory.list("ada") == ()
        undone = await post(client, "/undo", change=Text(deleted.text).values("change")[0])
        assert "Taken back:" in Text(undone.text).text
        assert (await memory.get("ada", "tea")).value == "Green"

        await post(client, "/switch", on="false")
        assert await memory.personalization("ada") is False
        await post(client, "/switch", on="true")
        assert await memory.personalization("ada") is True


async def test_what_a_tool_brought_waits_until_it_is_accepted(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        await remember(service, "ada", "home", "12 Phố Huế", source=Source.TOOL, trusted=False)
        client, memory = await visitor(service, "ada"), service.app.state.memory
        assert "Waiting for you" in (await client.get("/")).text
        await post(client, "/memories/accept", key="home")
        assert (await memory.get("ada", "home")).trusted
        assert "Waiting for you" not in (await client.get("/")).text


async def test_what_is_refused_is_said_and_what_was_typed_stays(open_service: Callable[..., Any]) -> None:
    async with open_service(extra="charLimit: 10") as service:
        client = await visitor(service, "ada", **{"Accept-Language": "de"})
        answer = await post(client, "/memories/save", key="tea", value="far too long to be kept")
        page = Text(answer.text)
        assert answer.status_code == 400
        assert "Dafür ist kein Platz" in page.text
        assert "far too long to be kept" in page.text
        assert await service.app.state.memory.list("ada") == ()


async def test_only_keys_of_the_configuration_can_be_chosen(open_service: Callable[..., Any]) -> None:
    async with open_service(extra="validKeys: [diet, work]") as service:
        client = await visitor(service, "ada")
        tags = Text((await client.get("/")).text).tags
        assert [tag for tag, _ in tags].count("option") == 2
        answer = await post(client, "/memories/save", key="Diet!", value="none")
        assert answer.status_code == 400
        assert "This key is not allowed" in answer.text


@pytest.mark.parametrize("value", NASTY)
async def test_what_is_remembered_is_text_and_nothing_else(
    open_service: Callable[..., Any], value: str
) -> None:
    async with open_service() as service:
        await remember(service, "ada", "diet", "Ada eats no meat.")
        client = await visitor(service, "ada")
        before = Text((await client.get("/")).text)
        await remember(service, "ada", "diet", value, quote=value[:200])
        for path in ("/", "/history"):
            page = Text((await client.get(path)).text)
            assert value in page.text
            assert [found for tag, found in page.tags if tag == "script"] == [script_of(before)]
            assert not [found for _, found in page.tags if any(name.startswith("on") for name in found)]
            assert not {"img", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.tags}


def script_of(page: Text) -> dict[str, str | None]:
    """The one script of ours."""
    return next(found for tag, found in page.tags if tag == "script")


async def test_a_page_takes_text_that_no_page_can_hold(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        client = await visitor(service, "ada")
        answer = await client.get(
            "/", params={"q": "x" * 1_000, "place": "agent:\ud800".encode("utf-8", "surrogatepass")}
        )
        assert answer.status_code in {200, 400, 422}
        await remember(service, "ada", "long", "word " * 2_000)
        page = await client.get("/")
        assert page.status_code == 200
        assert "Show all" in page.text


async def test_search_finds_words_without_their_accents(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        await remember(service, "ada", "home", "Sống ở Đà Nẵng với chị Lan.")
        await remember(service, "ada", "diet", "Ada eats no meat.")
        client = await visitor(service, "ada")
        found = Text((await client.get("/", params={"q": "DA NANG lan"})).text).text
        assert "Đà Nẵng" in found
        assert "no meat" not in found
        assert "No memory holds" in (await client.get("/", params={"q": "absent"})).text


async def test_a_form_that_did_not_come_from_our_page_changes_nothing(
    open_service: Callable[..., Any],
) -> None:
    async with open_service() as service:
        client, memory = await visitor(service, "ada"), service.app.state.memory
        expires, over = service.now[0] + timedelta(hours=1), service.now[0] - timedelta(seconds=1)
        for token in (
            None,
            "",
            "nonsense",
            signed("eve", SESSION_SECRET, audience=FORM_AUDIENCE, expires=expires),
            signed("ada", SESSION_SECRET, audience=LINK_AUDIENCE, expires=expires),
            signed("ada", SESSION_SECRET, audience=FORM_AUDIENCE, expires=over),
            signed(
                "ada", "another secret, which is as long as ours", audience=FORM_AUDIENCE, expires=expires
            ),
        ):
            fields = {"key": "tea", "value": "Green", **({} if token is None else {"token": token})}
            answer = await client.post("/memories/save", data=fields)
            assert answer.status_code == 403
            assert (await client.post("/v1/memories:undo", data=fields)).status_code in {403, 422}
        assert await memory.list("ada") == ()
        marked = await client.post(
            "/memories/save", data={"key": "tea", "value": "Green"}, headers={"X-Requested-With": "memagent"}
        )
        assert marked.status_code == 200
        assert [each.key for each in await memory.list("ada")] == ["tea"]


async def test_a_link_cannot_put_words_on_the_page(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        client = await visitor(service, "ada")
        for query in ("done=you+won", "done=deleted&change=zzz", "done=deleted&change=%3Cb%3E"):
            assert 'class="toast"' not in (await client.get(f"/?{query}")).text


@pytest.mark.parametrize("code", DOORS)
async def test_who_is_not_signed_in_is_told_how_to_get_in(
    open_service: Callable[..., Any], code: str
) -> None:
    async with open_service() as service:
        client = await visitor(service, None, **{"Accept-Language": f"{code}-XX,fr;q=0.9"})
        for path in ("/", "/history", "/data", "/sessions"):
            answer = await client.get(path)
            assert answer.status_code == 401
            assert DOORS[code] in Text(answer.text).text
            assert f'<html lang="{code}">' in answer.text


async def test_a_link_that_is_over_is_said_in_words(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        client = await visitor(service, None)
        answer = await client.get(link(service, "ada", minutes=-1))
        assert answer.status_code == 401
        assert "This link is no longer good" in Text(answer.text).text
        assert (await client.get("/login")).status_code == 422


async def test_programs_still_get_json(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        client = await visitor(service, None)
        assert (await client.get("/v1/memories")).json()["error"]["code"] == "unauthenticated"
        plain = await service.client().get("/")
        assert plain.json()["error"]["code"] == "unauthenticated"


async def test_an_api_key_opens_no_page(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        answer = await service.as_user("ada").get("/", headers={"Accept": "text/html"})
        assert answer.status_code == 401


async def test_signing_out_needs_the_form_and_ends_the_session(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        client = await visitor(service, "ada")
        assert (await client.post("/logout")).status_code == 403
        await post(client, "/logout")
        assert (await client.get("/")).status_code == 401


async def test_every_place_where_something_is_kept_is_shown(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        await remember(service, "ada", "diet", "Ada eats no meat.")
        await remember(service, "ada", "code", "Prefers Python.", agent="coder & <co>")
        await remember(service, "eve", "secret", "Eve's own.", agent="coder & <co>")
        client, memory = await visitor(service, "ada"), service.app.state.memory
        first = Text((await client.get("/")).text)
        assert "coder & <co>" in first.text
        assert "Prefers Python." not in first.text
        there = Text((await client.get("/", params={"place": "agent:coder & <co>"})).text)
        assert "Prefers Python." in there.text
        assert "Eve's own." not in there.text
        await post(client, "/memories/delete", key="code", place="agent:coder & <co>")
        assert await memory.list(Scope(ScopeKind.USER, "ada", "coder & <co>")) == ()
        assert (await client.get("/", params={"place": "shared:team"})).status_code == 400


async def test_history_offers_to_take_back_the_newest_change_of_each_memory(
    open_service: Callable[..., Any],
) -> None:
    async with open_service() as service:
        memory = service.app.state.memory
        for value in ("Green", "Oolong"):
            await memory.put("ada", "tea", value)
        await memory.put("ada", "diet", "none")
        client = await visitor(service, "ada")
        page = Text((await client.get("/history")).text)
        newest = {each.key: each.id for each in reversed(await memory.history("ada"))}
        assert sorted(page.values("change")) == sorted(newest.values())
        back = await post(client, "/undo", change=newest["tea"], back="/history")
        assert back.url.path == "/history"
        assert (await memory.get("ada", "tea")).value == "Green"


async def test_an_export_comes_back_in_whole(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        memory = service.app.state.memory
        await memory.put("ada", "diet", "Ada eats no meat. Đà Nẵng")
        client = await visitor(service, "ada")
        exported = await client.get("/data/export")
        assert exported.headers["content-disposition"] == 'attachment; filename="memories-2026-03-02.json"'
        await memory.forget("ada", "diet")

        token = Text((await client.get("/data")).text).token
        for rehearse, count in (("true", 0), ("false", 1)):
            answer = await client.post(
                "/data/import",
                data={"token": token, "rehearse": rehearse},
                files={"file": ("memories.json", exported.content, "application/json")},
            )
            assert answer.status_code == 200
            assert "One memory is new or changed." in answer.text
            assert len(await memory.list("ada")) == count
        assert (await memory.get("ada", "diet")).value == "Ada eats no meat. Đà Nẵng"


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"memagent": 1}', "[" * 5_000])
async def test_an_import_that_cannot_be_read_is_said(open_service: Callable[..., Any], text: str) -> None:
    async with open_service() as service:
        client = await visitor(service, "ada")
        answer = await post(client, "/data/import", text=text)
        assert answer.status_code == 400
        assert "That cannot be used as it is" in answer.text


async def test_an_import_names_what_does_not_fit(open_service: Callable[..., Any]) -> None:
    async with open_service(extra="charLimit: 10") as service:
        client = await visitor(service, "ada")
        data = {
            "memagent": 1,
            "memories": [{"key": "a", "value": "short"}, {"key": "<b>", "value": "much too long"}],
        }
        page = Text((await post(client, "/data/import", text=json.dumps(data))).text)
        assert "One was not taken:" in page.text


async def test_erasure_wants_a_word_and_gives_a_report(
    open_service: Callable[..., Any], tmp_path: Any
) -> None:
    async with open_service(environ={"MEMAGENT_DATA_DIR": str(tmp_path)}) as service:
        await remember(service, "ada", "diet", "Ada eats no meat.")
        client, memory = await visitor(service, "ada"), service.app.state.memory
        refused = await post(client, "/data/erase")
        assert refused.status_code == 400
        assert len(await memory.list("ada")) == 1
        page = Text((await post(client, "/data/erase", sure="true")).text)
        assert "You have been forgotten" in page.text
        assert "until you set it anew" in page.text
        assert await memory.list("ada") == ()


async def test_a_store_that_is_down_is_a_page_too(
    open_service: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from memagent.errors import StoreUnavailable

    async with open_service() as service:
        client = await visitor(service, "ada", **{"Accept-Language": "vi"})

        async def down(*_: Any, **__: Any) -> None:
            raise StoreUnavailable("Redis does not answer")

        monkeypatch.setattr(service.app.state.memory, "list", down)
        answer = await client.get("/")
        assert answer.status_code == 503
        assert "Hiện không truy cập được ghi nhớ" in answer.text
