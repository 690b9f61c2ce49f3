"""Health, metrics, erasure, logins and limits of the service."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from memagent.api.auth import SESSION_COOKIE
from memagent.errors import StoreUnavailable
from memagent.llm.script import Answer, calling

if TYPE_CHECKING:
    from collections.abc import Callable

MEAT = calling("set_memory", key="diet", value="Ada eats no meat.")


def figures(text: str) -> dict[str, float]:
    rows = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in rows}


async def test_health_names_every_part_and_needs_no_credential(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        service.now[0] = _real_now()
        await _until_a_worker_is_alive(service)
        answer = await service.client().get("/health")

        assert answer.status_code == 200
        checks = {check["name"]: check["verdict"] for check in answer.json()["checks"]}
        assert {"redis", "index", "embedder", "workers"} <= checks.keys()
        assert checks["redis"] == checks["index"] == checks["embedder"] == checks["workers"] == "ok"


async def test_every_answer_says_its_id_and_how_long_it_took(open_service: Callable[..., Any]) -> None:
    async with open_service(worker=False) as service:
        answers = [await service.client().get("/health"), await service.client().get("/nowhere")]

        assert len({answer.headers["x-request-id"] for answer in answers}) == 2
        for answer in answers:
            assert re.fullmatch(r"app;dur=\d+\.\d", answer.headers["server-timing"])


async def test_without_a_worker_the_service_is_degraded_and_still_answers(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(worker=False) as service:
        service.now[0] = _real_now()
        answer = await service.client().get("/health")

        assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
        assert (await service.client().get("/ready")).status_code == 200


async def test_without_redis_the_service_is_not_ready_and_says_so(open_service: Callable[..., Any]) -> None:
    async with open_service(worker=False) as service:
        queues = service.app.state.queue._queues
        real, queues.waiting = queues.waiting, _unreachable
        answer = await service.client().get("/ready")
        queues.waiting = real

        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "store_unavailable"
        assert answer.json()["error"]["retryable"] is True


async def test_metrics_count_turns_tokens_recalls_and_fail_opens_without_any_id(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(MEAT, Answer(status=401)) as service:
        ada = service.as_user("ada-lovelace")
        await ada.post("/v1/context", json=service.turn("Hello there"))
        for text in ("I stopped eating meat.", "And fish."):
            await ada.post("/v1/turns", json=service.turn(text), params={"wait": "true"})
        text = (await service.admin().get("/metrics")).text
        found = figures(text)

        assert found['memagent_turns_total{outcome="ran",reason=""}'] == 1
        assert found['memagent_turns_total{outcome="dead",reason="model_refused"}'] == 1
        assert found['memagent_tokens_total{direction="input"}'] > 0
        assert found['memagent_memories_changed_total{how="set"}'] == 1
        assert found["memagent_recall_seconds_count"] == 1
        assert found["memagent_model_seconds_count"] == 1
        assert found["memagent_turns_waiting"] == 0
        assert found["memagent_dead_letters"] == 1
        assert "ada-lovelace" not in text
        assert "meat" not in text


async def test_a_recall_that_fails_open_is_counted(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        store = service.app.state.memory.ports.store
        real, store.recall = store.recall, _unreachable
        context = await service.as_user("ada").post("/v1/context", json=service.turn("Hello there"))
        store.recall = real

        assert context.status_code == 200
        assert (context.json()["prefix"], context.json()["matched"]["error"]) == ("", "store_unavailable")
        found = figures((await service.admin().get("/metrics")).text)
        assert found['memagent_recall_fail_opens_total{code="store_unavailable"}'] == 1


async def test_erasing_a_user_leaves_nothing_but_what_the_report_names(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(MEAT, Answer(status=401), MEAT) as service:
        ada, bob = service.as_user("ada"), service.as_user("bob")
        await ada.post("/v1/turns", json=service.turn("No meat."), params={"wait": "true"})
        await ada.post("/v1/turns", json=service.turn("No fish."), params={"wait": "true"})
        await bob.post("/v1/turns", json=service.turn("No meat."), params={"wait": "true"})
        await ada.put("/v1/memories/pets", json={"value": "A cat."}, params={"agent": "coach"})
        report = (await service.admin().delete("/v1/users/ada")).json()

        assert report["erased"]["memories"] == 2
        assert report["erased"]["turns"] == 1
        assert report["erased"]["dead_letters"] == 1
        assert any("append-only" in each["where"] for each in report["remains"])
        assert (await ada.get("/v1/memories")).json()["memories"] == []
        assert (await ada.get("/v1/memories", params={"agent": "coach"})).json()["memories"] == []
        assert (await service.admin().get("/v1/dead-letters")).json() == []
        assert [each["key"] for each in (await bob.get("/v1/memories")).json()["memories"]] == ["diet"]
        store = service.app.state.memory.ports.store
        left = [key async for key in store.client.scan_iter(match=f"{store.prefix}:*u:ada}}*")]
        assert left == []


async def test_a_turn_that_waits_is_erased_with_its_user(open_service: Callable[..., Any]) -> None:
    async with open_service(MEAT, worker=False) as service:
        ada = service.as_user("ada")
        turn = (await ada.post("/v1/turns", json=service.turn("No meat."))).json()
        await service.admin().delete("/v1/users/ada")
        async with service.app.state.queue.wakes.work(at_once=1, drain_s=5):
            await service.as_user("bob").post(
                "/v1/turns", json=service.turn("Hello"), params={"wait": "true"}
            )

        assert (await ada.get(f"/v1/turns/{turn['id']}")).status_code == 404
        assert (await ada.get("/v1/memories")).json()["memories"] == []


async def test_a_turn_under_way_writes_nothing_after_its_user_was_erased(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(MEAT) as service:
        ada, admin = service.as_user("ada"), service.admin()
        complete = service.model.complete

        async def erased_meanwhile(*given: Any, **more: Any) -> Any:
            reply = await complete(*given, **more)
            for _ in range(2):  # the second finds nothing, and must not undo what the first did
                await admin.delete("/v1/users/ada")
            return reply

        service.model.complete = erased_meanwhile
        gone = await ada.post(
            "/v1/turns", json=service.turn("No meat.", message_id="m1"), params={"wait": "true"}
        )
        assert gone.json()["error"]["code"] == "no_such_turn"
        await service.as_user("bob").post("/v1/turns", json=service.turn("Hello"), params={"wait": "true"})

        assert (await ada.get("/v1/memories")).json()["memories"] == []
        assert (await ada.get("/v1/memories:history")).json() == []
        assert await service.app.state.memory.ports.store.receipt(_own("ada"), "m1") is None


async def test_only_an_admin_or_the_user_erases_a_user(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        for client in (
            service.as_user("bob"),
            service.as_user("ada", key="read"),
            service.as_user("ada", key="turns"),
        ):
            assert (await client.delete("/v1/users/ada")).status_code == 403
        assert (await service.as_user("ada").delete("/v1/users/ada")).status_code == 200


async def test_a_login_link_opens_a_session_that_is_that_users_alone(
    open_service: Callable[..., Any],
) -> None:
    async with open_service() as service:
        await service.as_user("ada").put("/v1/memories/diet", json={"value": "No meat."})
        link = (await service.admin().post("/v1/login-links", json={"user": "ada"})).json()
        browser = service.client()
        answer = await browser.get(link["url"])

        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"{SESSION_COOKIE}=")
        assert {"HttpOnly", "SameSite=lax"} <= {part.strip() for part in cookie.split(";")}
        assert [each["key"] for each in (await browser.get("/v1/memories")).json()["memories"]] == ["diet"]
        other = await browser.get("/v1/memories", headers={"X-Memagent-User": "bob"})
        assert other.status_code == 403


async def test_a_session_writes_only_from_our_own_page(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        link = (await service.admin().post("/v1/login-links", json={"user": "ada"})).json()
        browser = service.client()
        await browser.get(link["url"])
        forged = await browser.put("/v1/memories/diet", json={"value": "No meat."})
        meant = await browser.put(
            "/v1/memories/diet", json={"value": "No meat."}, headers={"X-Requested-With": "memagent"}
        )

        assert (forged.status_code, forged.json()["error"]["code"]) == (403, "forbidden")
        assert meant.status_code == 200


async def test_a_login_link_is_good_for_ten_minutes_and_for_nothing_else(
    open_service: Callable[..., Any],
) -> None:
    async with open_service() as service:
        link = (await service.admin().post("/v1/login-links", json={"user": "ada"})).json()
        token = link["url"].partition("token=")[2]
        as_session = await service.client(Cookie=f"{SESSION_COOKIE}={token}").get("/v1/memories")
        service.later(minutes=10)
        late = await service.client().get(link["url"])

        assert as_session.status_code == 401
        assert (late.status_code, late.json()["error"]["code"]) == (401, "unauthenticated")


async def test_a_user_cannot_make_a_login_link(open_service: Callable[..., Any]) -> None:
    async with open_service(fixed_user="ada") as service:
        assert (
            await service.client(Host="127.0.0.1").post("/v1/login-links", json={"user": "bob"})
        ).status_code == 403
        read = service.as_user("ada", key="read")
        assert (await read.post("/v1/login-links", json={"user": "ada"})).status_code == 403


async def test_a_single_person_needs_no_credential(open_service: Callable[..., Any]) -> None:
    async with open_service(fixed_user="ada") as service:
        me = service.client(Host="127.0.0.1:8900")
        assert (await me.put("/v1/memories/diet", json={"value": "No meat."})).status_code == 200
        assert (await me.get("/v1/memories", headers={"X-Memagent-User": "bob"})).status_code == 403


async def test_a_body_past_the_limit_is_refused_announced_or_not(open_service: Callable[..., Any]) -> None:
    async with open_service(environ={"MEMAGENT_BODY_LIMIT_KB": "1"}) as service:
        ada = service.as_user("ada")

        async def pieces() -> Any:
            for _ in range(4):
                yield b" " * 512

        headers = {"content-type": "application/json"}
        for content in (b" " * 2_000, pieces()):
            answer = await ada.post("/v1/turns", content=content, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


async def test_a_caller_past_the_rate_waits_and_others_do_not(open_service: Callable[..., Any]) -> None:
    async with open_service(environ={"MEMAGENT_RATE_LIMIT": "3"}) as service:
        ada, bob = service.as_user("ada"), service.as_user("bob")
        answers = [await ada.get("/v1/preferences") for _ in range(4)]

        assert [each.status_code for each in answers] == [200, 200, 200, 429]
        assert answers[3].json()["error"]["code"] == "busy"
        assert 1 <= int(answers[3].headers["retry-after"]) <= 20
        assert (await bob.get("/v1/preferences")).status_code == 200
        assert (await service.client().get("/health")).status_code == 200


@pytest.mark.parametrize(
    ("key", "path", "status"),
    [("read", "/v1/memories", 200), ("turns", "/v1/memories", 403), ("admin", "/v1/memories", 403)],
)
async def test_a_key_may_what_it_says(
    open_service: Callable[..., Any], key: str, path: str, status: int
) -> None:
    async with open_service(worker=False) as service:
        assert (await service.as_user("ada", key=key).get(path)).status_code == status


async def test_a_key_that_reads_hands_over_no_turn(open_service: Callable[..., Any]) -> None:
    async with open_service(worker=False) as service:
        answer = await service.as_user("ada", key="read").post("/v1/turns", json=service.turn("Hello"))

        assert answer.status_code == 403
        assert (await service.as_user("ada").get("/metrics")).status_code == 403


async def test_every_operation_is_described_with_a_summary_and_its_fault(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(worker=False) as service:
        described = (await service.client().get("/openapi.json")).json()
        for path, methods in described["paths"].items():
            if path.startswith("/v1/"):
                for operation in methods.values():
                    assert operation["summary"]
                    assert "default" in operation["responses"], path
        shapes = described["components"]["schemas"]
        for name in ("TurnRequest", "RecallRequest", "MemoryWrite", "MemoryView", "Preferences"):
            found = [shape for full, shape in shapes.items() if full.split("__")[-1] == name]
            assert any("examples" in shape for shape in found), name


async def test_logs_hold_ids_and_never_a_text(
    open_service: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="memagent")
    async with open_service(MEAT, Answer(status=503)) as service:
        ada = service.as_user("ada")
        await ada.post("/v1/turns", json=service.turn("My xylophone is blue."), params={"wait": "true"})
        await ada.put("/v1/memories/xylophone", json={"value": "It is a xylophone."})
        await ada.get("/v1/memories/xylophone")

    ours = [
        json.dumps(vars(record), default=str)
        for record in caplog.records
        if record.name.startswith("memagent")
    ]
    assert any("a turn is over" in line for line in ours)
    assert not any("xylophone" in line for line in ours)


# -- parts -----------------------------------------------------------------------------------------------------------------


def _real_now() -> Any:
    from memagent.wiring import utc_now

    return utc_now()


def _own(user: str) -> Any:
    from memagent.memory import Scope, ScopeKind

    return Scope(ScopeKind.USER, user)


async def _unreachable(*_: Any, **__: Any) -> Any:
    raise StoreUnavailable("Redis cannot be reached")


async def _until_a_worker_is_alive(service: Any) -> None:
    async with asyncio.timeout(30):
        while not await service.app.state.queue.wakes.workers():  # noqa: ASYNC110  told to nobody
            await asyncio.sleep(0.05)
