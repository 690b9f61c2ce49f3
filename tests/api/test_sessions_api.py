"""Sessions over HTTP: shown to their owner, who is whom the credential proves, and to nobody else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memagent.errors import StoreUnavailable
from memagent.llm import Usage
from memagent.llm.script import Answer, Rule
from memagent.memory import Message, ToolCall
from memagent.service.sessions import open_sessions
from memagent.sessions import owners
from memagent.sessions.compaction import CompactionSettings
from memagent.sessions.course import course
from memagent.sessions.service import Said, SessionSettings
from tests.api.pages.conftest import Text, visitor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.api.conftest import Service

KEY = "agent:main:main"
SUMMARY = [Rule((Answer(text="ok"),), tools=True), Rule((Answer(text="They talked about trains."),))]
SMALL = SessionSettings(compaction=CompactionSettings(keep_recent_tokens=10, min_messages=2), sync=False)


@pytest.fixture
def opened(open_service: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """A service whose data folder is the test's own."""

    def open_(**how: Any) -> Any:
        environ = {"MEMAGENT_DATA_DIR": str(tmp_path / "data"), **how.pop("environ", {})}
        return open_service(rules=SUMMARY, environ=environ, **how)

    return open_


async def talk(
    service: Service, user: str, *, key: str = KEY, agent: str = "main", turns: int = 2, own: bool = True
) -> Any:
    sessions = open_sessions(service.app.state.memory, user, agent=agent, own=own, settings=SMALL)
    for n in range(turns):
        await sessions.receive(key, f"{user} asks {n}")
        call = ToolCall("t1", "look_up", json.dumps({"what": f"{user} {n}"}))
        said = [
            Said(Message("assistant", None, tool_calls=(call,)), Usage(100 * (n + 1), 5)),
            Said(Message("tool", "a result", tool_call_id="t1")),
            Said(Message("assistant", f"answer to {user} {n}"), Usage(200 * (n + 1), 10)),
        ]
        await sessions.record(key, said)
        service.later(minutes=1)
    return sessions


async def test_a_session_is_listed_shown_and_exported(opened: Callable[..., Any]) -> None:
    async with opened() as service:
        await talk(service, "ada")
        client = service.as_user("ada")
        listed = (await client.get("/v1/sessions")).json()
        assert [row["key"] for row in listed["sessions"]] == [KEY]
        assert listed["archived"] == []
        shown = (await client.get(f"/v1/sessions/{KEY}")).json()
        assert [each["role"] for each in shown["messages"]] == ["user", "assistant", "tool", "assistant"] * 2
        assert shown["messages"][1]["toolCalls"][0]["name"] == "look_up"
        assert [call["tokens"] for call in shown["course"]] == [100, 200, 200, 400]
        assert (await client.get(f"/v1/sessions/{shown['sessionId'][:8]}")).json() == shown
        markdown = await client.get("/v1/sessions:export", params={"session": KEY})
        assert "ada asks 1" in markdown.text
        lines = (
            await client.get("/v1/sessions:export", params={"session": KEY, "format": "jsonl"})
        ).text.splitlines()
        assert json.loads(lines[0])["id"] == shown["sessionId"]


async def test_a_reset_archives_and_begins_anew(opened: Callable[..., Any]) -> None:
    async with opened() as service:
        await talk(service, "ada")
        client = service.as_user("ada")
        before = (await client.get(f"/v1/sessions/{KEY}")).json()["sessionId"]
        done = (await client.post("/v1/sessions:reset", json={"key": KEY})).json()
        assert done["sessionId"] != before
        archived = (await client.get("/v1/sessions")).json()["archived"]
        assert [(each["sessionId"], each["reason"]) for each in archived] == [(before, "reset")]
        assert (await client.get(f"/v1/sessions/{before}")).json()["messages"][0]["text"] == "ada asks 0"


async def test_a_compaction_says_what_came_of_it(opened: Callable[..., Any]) -> None:
    async with opened() as service:
        await talk(service, "ada", turns=1)
        client = service.as_user("ada")
        done = (await client.post("/v1/sessions:compact", json={"key": KEY})).json()
        assert done["status"] == "skipped"
        assert done["reason"]


async def test_the_course_goes_on_through_a_compaction(opened: Callable[..., Any]) -> None:
    async with opened() as service:
        sessions = await talk(service, "ada", turns=3)
        done = await sessions.compact(KEY)
        assert str(done.status) == "compacted"
        await sessions.record(KEY, [Said(Message("assistant", "on it goes"), Usage(50, 5))])
        calls = await course(sessions.folder, done.session_id)
        assert [call.tokens for call in calls] == [100, 200, 200, 400, 300, 600, 50]
        assert len({call.session_id for call in calls}) == 2
        await sessions.reset(KEY)
        fresh = (await service.as_user("ada").get(f"/v1/sessions/{KEY}")).json()
        assert fresh["course"] == [], "a reset begins a course of its own"


async def test_no_user_sees_or_touches_another_ones(opened: Callable[..., Any]) -> None:
    async with opened() as service:
        await talk(service, "ada")
        await talk(service, "eve", key="agent:main:eve")
        await talk(service, "ada", key="agent:main:everybody", own=False)
        found = (await service.as_user("ada").get(f"/v1/sessions/{KEY}")).json()
        for user in ("eve", "ADA", "ada ", "../ada", "ada/main"):
            client = service.as_user(user)
            for name in (
                KEY,
                found["sessionId"],
                found["sessionId"][:8],
                found["file"],
                "agent:main:everybody",
            ):
                assert (await client.get(f"/v1/sessions/{name}")).status_code == 404
                assert (await client.get("/v1/sessions:export", params={"session": name})).status_code == 404
                assert (await client.post("/v1/sessions:reset", json={"key": name})).status_code == 404
                assert (await client.post("/v1/sessions:compact", json={"key": name})).status_code == 404
        assert [
            row["key"] for row in (await service.as_user("eve").get("/v1/sessions")).json()["sessions"]
        ] == ["agent:main:eve"]
        assert (await service.as_user("ada").get(f"/v1/sessions/{KEY}")).json() == found


@pytest.mark.parametrize("agent", ["../other", ".users", "Main", "x/../main", "a" * 256, "é", "\x00"])
async def test_an_agents_name_leads_nowhere_else(opened: Callable[..., Any], agent: str) -> None:
    async with opened() as service:
        await talk(service, "eve", key="agent:main:eve")
        listed = await service.as_user("ada").get("/v1/sessions", params={"agent": agent})
        assert listed.json() == {"sessions": [], "archived": []}


@pytest.mark.parametrize(
    "name", ["../sessions.json", "%2e%2e/x", "sessions.json", "*", "a" * 1_000, "..", "é\n"]
)
async def test_a_strange_name_is_not_found_and_names_no_folder(opened: Callable[..., Any], name: str) -> None:
    async with opened() as service:
        await talk(service, "ada")
        answer = await service.as_user("ada").get("/v1/sessions:export", params={"session": name})
        assert answer.status_code == 404
        assert "data" not in answer.json()["error"]["message"].replace(name, "")


async def test_what_a_credential_may_not_do_it_does_not(opened: Callable[..., Any]) -> None:
    async with opened() as service:
        await talk(service, "ada")
        assert (await service.admin().get("/v1/sessions")).status_code == 403
        assert (await service.client().get("/v1/sessions")).status_code == 401
        reader = service.as_user("ada", key="read")
        assert (await reader.get(f"/v1/sessions/{KEY}")).status_code == 200
        assert (await reader.post("/v1/sessions:reset", json={"key": KEY})).status_code == 403


async def test_who_runs_it_for_themselves_sees_the_agents_sessions(opened: Callable[..., Any]) -> None:
    async with opened(fixed_user="me") as service:
        await talk(service, "me", own=False)
        listed = await service.client(Host="127.0.0.1").get("/v1/sessions")
        assert [row["key"] for row in listed.json()["sessions"]] == [KEY]


async def test_erasing_a_user_erases_their_sessions_and_no_others(opened: Callable[..., Any]) -> None:
    async with opened() as service:
        for user in ("ada", "eve"):
            await talk(service, user)
        await talk(service, "ada", agent="coder", key="agent:coder:main")
        done = (await service.admin().delete("/v1/users/ada")).json()
        assert done["erased"]["sessions"] == 2
        assert (await service.as_user("ada").get("/v1/sessions")).json()["sessions"] == []
        assert len((await service.as_user("eve").get("/v1/sessions")).json()["sessions"]) == 1
        assert "sessions" not in (await service.admin().delete("/v1/users/ada")).json()["erased"]


async def test_the_pages_show_a_session_to_its_owner_only(opened: Callable[..., Any]) -> None:
    async with opened() as service:
        sessions = await talk(service, "ada", turns=3)
        await sessions.compact(KEY)
        await talk(service, "ada", turns=1)
        client = await visitor(service, "ada")
        assert KEY in (await client.get("/sessions")).text
        page = Text((await client.get(f"/sessions/{KEY}")).text)
        for shown in (
            "They talked about trains.",
            "look_up",
            "answer to ada 0",
            "What was said before, in full",
        ):
            assert shown in page.text
        assert "path" in {tag for tag, _ in page.tags}, "the course is drawn"
        document = await client.get("/sessions/export", params={"session": KEY})
        assert "attachment" in document.headers["content-disposition"]
        stranger = await visitor(service, "eve")
        assert (await stranger.get(f"/sessions/{KEY}")).status_code == 404
        assert "There are no sessions." in (await stranger.get("/sessions")).text


async def test_what_was_said_is_text_on_the_page(opened: Callable[..., Any]) -> None:
    nasty = "<script>alert(1)</script>\"'>{{7*7}}"
    async with opened() as service:
        sessions = open_sessions(service.app.state.memory, "ada", own=True)
        await sessions.receive("agent:main:<b>", nasty)
        call = ToolCall("t", nasty, nasty)
        await sessions.record("agent:main:<b>", [Said(Message("assistant", nasty, tool_calls=(call,)))])
        client = await visitor(service, "ada")
        for path in (
            "/sessions",
            f"/sessions/{(await client.get('/v1/sessions')).json()['sessions'][0]['sessionId']}",
        ):
            page = Text((await client.get(path)).text)
            assert [tag for tag, _ in page.tags].count("script") == 1
            assert "b" not in {tag for tag, _ in page.tags}
        assert page.text.count(nasty) == 4


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
@settings(max_examples=80)
def test_no_two_owners_share_a_folder(
    tmp_path_factory: pytest.TempPathFactory, one: str, other: str, agent: str
) -> None:
    data = tmp_path_factory.getbasetemp()
    mine, shared = owners.workspace(data, owner=one, agent=agent), owners.workspace(data, agent=agent)
    assert mine.resolve().is_relative_to(data.resolve() / "sessions" / owners.OWNED)
    assert shared.resolve().parent == data.resolve() / "sessions"
    assert (one == other) == (mine == owners.workspace(data, owner=other, agent=agent))


def test_what_cannot_be_erased_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owners.workspace(tmp_path, owner="ada").mkdir(parents=True)

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(owners, "rmtree", refused)
    with pytest.raises(StoreUnavailable, match="Permission denied"):
        owners.erase(tmp_path, "ada")
