"""LibreChat's memory API, request by request: the YAML files beside this one are what it was recorded to answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from ruamel.yaml import YAML

from memagent.api.librechat.answers import answer
from memagent.api.librechat.entries import usage
from memagent.errors import StoreUnavailable
from memagent.memory import Scope, ScopeKind
from tests.api.conftest import JWT_SECRET

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.api.conftest import Service

CASES = [
    (path.stem, case)
    for path in sorted(Path(__file__).parent.glob("*.yaml"))
    for case in YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
]
PATTERNS: dict[str, Callable[[Any], bool]] = {
    "<id>": lambda found: re.fullmatch("[0-9a-f]{24}", found) is not None,
    "<int>": lambda found: isinstance(found, int) and found > 0,
    "<time>": lambda found: re.fullmatch(r"2026-03-02T09:00:\d\d\.000Z", found) is not None,
    "<text>": lambda found: isinstance(found, str) and len(found) > 20,
    "<entry>": lambda found: {"_id", "userId", "key", "value", "tokenCount", "updated_at"} <= set(found),
}


class Browser:
    """LibreChat's client: it sends the token of its user, one request a second."""

    def __init__(self, service: Service, case: dict[str, Any]) -> None:
        self.client, self.service = service.client(), service
        self.id = "0" * 24
        self.repeat = case.get("repeat", {})

    async def send(self, line: str, *, user: str | None) -> Any:
        if line.startswith("as "):
            _, user, line = line.split(" ", 2)
        method, path, *body = self.filled(line).split(" ", 2)
        headers = {"content-type": "application/json"}
        if user is not None:
            claims = {"id": user, "exp": int(self.service.now[0].timestamp()) + 60}
            headers["authorization"] = f"Bearer {jwt.encode(claims, JWT_SECRET, algorithm='HS256')}"
        answer = await self.client.request(method, path, content="".join(body).encode(), headers=headers)
        self.service.later(seconds=1)
        if answer.status_code == 201:
            self.id = answer.json()["memory"]["_id"]
        return answer

    def filled(self, line: str) -> str:
        line = line.replace("/ID", f"/{self.id}")
        return line.replace("LONG", str(self.repeat.get("LONG")) * self.repeat.get("times", 0))


def differs(expected: Any, found: Any, *, known_id: str) -> bool:
    """Whether an answer is another than the recorded one; `<…>` are patterns."""
    if expected == "<ID>":
        return bool(found != known_id)
    if isinstance(expected, str) and expected in PATTERNS:
        return not PATTERNS[expected](found)
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() != found.keys() or any(
            differs(expected[name], found[name], known_id=known_id) for name in expected
        )
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) != len(found) or any(
            differs(one, other, known_id=known_id) for one, other in zip(expected, found, strict=True)
        )
    return bool(expected != found) or type(expected) is not type(found)


@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}: {case['title']}" for name, case in CASES])
async def test_librechat_gets_the_answer_it_knows(open_service: Any, name: str, case: dict[str, Any]) -> None:
    environ = {"MEMAGENT_EMBEDDER": "none", **case.get("environ", {})}
    extra = case.get("memory", "disabled: false")
    async with open_service(extra=extra, environ=environ, worker=False) as service:
        browser = Browser(service, case)
        for line in case.get("before", []):
            assert (await browser.send(line, user="juno")).is_success, line
        for step in [case, *case.get("then", [])]:
            heard = await browser.send(step["request"], user=case.get("user", "juno"))
            found = json.loads(heard.content)
            assert (heard.status_code, found) == (step["status"], found)
            assert not differs(step["answer"], found, known_id=browser.id), found


def test_every_route_of_the_api_has_cases() -> None:
    asked = {(case["request"].split(" ")[0], case["request"].split(" ")[1]) for _, case in CASES}
    shapes = {
        (method, re.sub(r"(?<=/api/memories/)(?!id|preferences)[^/?]+.*", "KEY", path.split("?")[0]))
        for method, path in asked
    }
    wanted = {("GET", ""), ("POST", ""), ("PATCH", "/preferences"), ("PATCH", "/KEY"), ("DELETE", "/KEY")}
    assert {(method, f"/api/memories{rest}") for method, rest in wanted} <= shapes
    assert {method for method, path in asked if path.startswith("/api/memories/id/")} == {"PATCH", "DELETE"}


async def test_a_backend_speaks_for_a_user_with_its_key(open_service: Any) -> None:
    async with open_service(worker=False, environ={"MEMAGENT_EMBEDDER": "none"}) as service:
        new = {"key": "tea", "value": "Juno drinks oolong."}
        assert (await service.as_user("juno").post("/api/memories", json=new)).status_code == 201
        reading = service.as_user("juno", key="read")
        assert [each["key"] for each in (await reading.get("/api/memories")).json()["memories"]] == ["tea"]
        refused = await reading.post("/api/memories", json={"key": "cat", "value": "x"})
        assert (refused.status_code, refused.json()) == (
            403,
            {"message": "Forbidden: Insufficient permissions"},
        )


async def test_a_rename_by_key_and_an_edit_keep_the_id_and_a_new_memory_has_a_new_one(
    open_service: Any,
) -> None:
    async with open_service(worker=False, environ={"MEMAGENT_EMBEDDER": "none"}) as service:
        juno = service.as_user("juno")

        async def sent(method: str, path: str, **body: str) -> str:
            answer = await juno.request(method, f"/api/memories{path}", json=body)
            return str(answer.json()["memory"]["_id"])

        first = await sent("POST", "", key="tea", value="one")
        assert await sent("PATCH", "/tea", value="two") == first
        assert await sent("PATCH", "/tea", key="drink", value="two") == first
        assert await sent("POST", "", key="tea", value="one") != first


async def test_global_memories_are_shown_and_reached_by_id(open_service: Any) -> None:
    async with open_service(worker=False, environ={"MEMAGENT_EMBEDDER": "none"}) as service:
        everywhere = Scope(ScopeKind.GLOBAL, "juno")
        kept = await service.app.state.memory.put(everywhere, "name", "Juno is called Juno.")
        juno = service.as_user("juno")
        listed = (await juno.get("/api/memories")).json()
        assert ([each["_id"] for each in listed["memories"]], listed["totalTokens"]) == ([kept.id], 0)
        assert (await juno.delete(f"/api/memories/id/{kept.id}")).json() == {"deleted": True}
        assert await service.app.state.memory.list(everywhere) == ()


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("GET", "Failed to retrieve memories."),
        ("POST", "Failed to create memory."),
        ("PATCH", "Failed to update memory."),
        ("DELETE", "Failed to delete memory."),
    ],
)
def test_an_outage_is_told_as_librechat_tells_it(method: str, words: str) -> None:
    told = answer(StoreUnavailable("Redis at redis://user:secret@host is gone"), method=method)
    assert (told.status_code, json.loads(told.body)) == (500, {"error": words})


@pytest.mark.parametrize(
    ("tokens", "limit", "percent"),
    [(0, 10, 0), (1, 200, 1), (1, 201, 0), (5, 2, 100), (5, 0, None), (5, -1, None), (5, None, None)],
)
def test_usage_is_rounded_as_javascript_rounds(tokens: int, limit: int | None, percent: int | None) -> None:
    assert usage(tokens, limit) == percent


STRANGE: list[Any] = [
    None,
    "",
    " ",
    "a\x00b",
    "\ud800",
    "🍵" * 600,
    "../../etc",
    "%00",
    "id/x",
    "*",
    "{a}",
    0,
    -1.5,
    True,
    [],
    ["a"],
    {},
    {"$ne": 1},
]


async def test_whatever_is_sent_is_answered_in_librechats_words(open_service: Any) -> None:
    """No request is a bug: what is refused says `error` or `message`, and only a reserved key is a failure."""
    environ = {"MEMAGENT_EMBEDDER": "none", "MEMAGENT_RATE_LIMIT": "0"}
    async with open_service(worker=False, environ=environ) as service:
        juno = service.as_user("juno")
        await juno.post("/api/memories", json={"key": "tea", "value": "oolong"})
        bodies = [
            {"key": one, "value": other, "agentId": one, "memories": other}
            for one in STRANGE
            for other in ("x", *STRANGE)
        ]
        paths = [
            "/tea",
            "/preferences",
            "/id/000",
            "/%00",
            "/%F0%9F%8D%B5",
            "/..%2F..",
            "/a%7Bb%7D?agentId=%00",
            "/tea?agentId=*",
        ]
        for number, body in enumerate([*bodies, *STRANGE]):
            content = json.dumps(body).encode()
            for method, path in (("POST", ""), ("PATCH", paths[number % len(paths)])):
                heard = await juno.request(method, f"/api/memories{path}", content=content)
                assert heard.status_code < 500, (method, path, body, heard.text)
                assert heard.is_success or {"error", "message"} & set(heard.json()), heard.text
        for path in paths[2:]:
            assert (await juno.delete(f"/api/memories{path}")).status_code in {200, 404}
        assert (await juno.get("/api/memories")).status_code == 200
