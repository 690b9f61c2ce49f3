"""The user's switch, flipped at every point of a turn's way: when it is handed over, when it runs, when memory is injected."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from memagent.llm.script import Script, calling
from memagent.llm.scripted import ScriptedModel
from memagent.memory import Scope, ScopeKind
from memagent.store.keys import user_keys_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memagent.llm import ModelReply, ToolSpec
    from memagent.memory import Message

MEAT = calling("set_memory", key="diet", value="Ada eats no meat.")
WAIT = {"wait": "true"}


class Flipping(ScriptedModel):
    """A model during whose call the user opts out."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.flip: Any = None

    async def complete(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> ModelReply:
        reply = await super().complete(messages, tools=tools)
        await self.flip()
        return reply


def decided(ticket: dict[str, Any]) -> tuple[str, str]:
    return ticket["receipt"]["decision"], ticket["receipt"]["reason"]


async def test_a_turn_of_who_opted_out_is_over_at_once_and_not_kept(open_service: Callable[..., Any]) -> None:
    async with open_service(MEAT, worker=False) as service:
        ada, store = service.as_user("ada"), service.app.state.memory.ports.store
        await ada.patch("/v1/preferences", json={"memories": False})
        turn = service.turn("My xylophone is blue.")
        answer = await ada.post("/v1/turns", json=turn)
        assert (answer.status_code, answer.json()["status"], decided(answer.json())) == (
            200,
            "done",
            ("skipped", "opted_out"),
        )
        assert (await ada.get(answer.headers["location"])).json() == answer.json()
        held = [
            await store.client.hgetall(key)
            async for key in store.client.scan_iter(user_keys_pattern(store.prefix, "ada"))
            if b":t:" in key
        ]
        assert len(held) == 1
        assert "xylophone" not in str(held)

        await ada.patch("/v1/preferences", json={"memories": True})
        again = await ada.post("/v1/turns", json=turn)
        assert decided(again.json()) == ("skipped", "opted_out"), (
            "what was said while memory was off stays unlearned"
        )
        assert (await ada.post("/v1/turns", json=service.turn("Later"))).status_code == 202


async def test_opting_out_while_the_model_thinks_writes_nothing_and_stops_what_waits(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(worker=False) as service:
        ada = service.as_user("ada")
        model = Flipping(Script.of(MEAT, MEAT))

        async def flip() -> None:
            await ada.patch("/v1/preferences", json={"memories": False})

        model.flip = flip
        memory = service.app.state.memory
        object.__setattr__(memory.ports, "models", lambda _: model)
        tickets = [
            (await ada.post("/v1/turns", json=service.turn(text))).json()
            for text in ("No meat.", "And no fish.")
        ]
        async with service.app.state.queue.wakes.work(at_once=1, drain_s=1):
            over = [
                await service.app.state.queue.finished("ada", each["id"], timeout_s=60) for each in tickets
            ]
        assert [(each.receipt["decision"], each.receipt["reason"]) for each in over] == [
            ("skipped", "opted_out")
        ] * 2
        assert len(model.requests) == 1, "the second turn never reached the model"
        assert (await ada.get("/v1/memories")).json()["memories"] == []


async def test_memory_is_injected_only_while_the_switch_is_on(open_service: Callable[..., Any]) -> None:
    async with open_service(worker=False) as service:
        ada = service.as_user("ada")
        await ada.put("/v1/memories/diet", json={"value": "Ada eats no meat."})

        async def prefix() -> str:
            return str(
                (await ada.post("/v1/context", json=service.turn("What can I cook?"))).json()["prefix"]
            )

        assert "no meat" in await prefix()
        await ada.patch("/v1/preferences", json={"memories": False})
        assert await prefix() == ""
        assert [each["key"] for each in (await ada.get("/v1/memories")).json()["memories"]] == ["diet"]
        await ada.patch("/v1/preferences", json={"memories": True})
        assert "no meat" in await prefix()


async def test_what_waits_for_review_is_listed_accepted_and_only_then_injected(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(MEAT) as service:
        ada = service.as_user("ada")
        turn = service.turn("What is this?\n\n> Ada eats no meat.")
        await ada.post("/v1/turns", json=turn, params=WAIT)
        assert [each["key"] for each in (await ada.get("/v1/memories:review")).json()] == ["diet"]
        before = (await ada.post("/v1/context", json=service.turn("What can I cook?"))).json()
        assert (before["prefix"], before["tail"]) == ("", "")
        accepted = await ada.post("/v1/memories:accept", json={"key": "diet"})
        assert (accepted.json()["trusted"], accepted.json()["source"]) == (True, "user")
        assert (await ada.get("/v1/memories:review")).json() == []
        after = (await ada.post("/v1/context", json=service.turn("What can I cook?"))).json()
        assert "no meat" in after["prefix"]
        missing = await ada.post("/v1/memories:accept", json={"key": "nobody"})
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "no_such_memory")


async def test_erasing_a_user_closes_what_waits_and_reports_it(open_service: Callable[..., Any]) -> None:
    async with open_service(MEAT, worker=False) as service:
        ada = service.as_user("ada")
        await ada.put("/v1/memories/diet", json={"value": "Ada eats no meat."}, params={"agent": "agent_a"})
        await ada.post("/v1/turns", json=service.turn("I have a cat"))
        await ada.patch("/v1/preferences", json={"memories": False})
        report = (await service.admin().delete("/v1/users/ada", params={"preferences": "true"})).json()
        assert report["erased"] == {
            "memories": 1,
            "vectors": 1,
            "changes": 1,
            "receipts": 0,
            "turns": 1,
            "dead_letters": 0,
            "preferences": 1,
        }
        assert report["keys_left"] == 0
        assert all(set(each) == {"what", "where", "until"} for each in report["remains"])


@pytest.mark.parametrize(
    ("extra", "reason"), [("disabled: true", "disabled"), ("personalize: false", "not_personalized")]
)
async def test_where_nobody_has_memory_nothing_that_is_said_is_kept(
    open_service: Callable[..., Any], extra: str, reason: str
) -> None:
    async with open_service(worker=False, extra=extra) as service:
        ada, store = service.as_user("ada"), service.app.state.memory.ports.store
        answer = await ada.post("/v1/turns", json=service.turn("My xylophone is blue."))
        assert (answer.status_code, decided(answer.json())) == (200, ("skipped", reason))
        async for key in store.client.scan_iter(user_keys_pattern(store.prefix, "ada")):
            if b":t:" in key:
                assert "xylophone" not in str(await store.client.hgetall(key))


async def test_erasing_while_the_model_thinks_leaves_nothing_of_the_turn(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(worker=False) as service:
        ada, store = service.as_user("ada"), service.app.state.memory.ports.store
        model = Flipping(Script.of(MEAT))
        reports: list[dict[str, Any]] = []

        async def erase() -> None:
            reports.append((await service.admin().delete("/v1/users/ada")).json())

        model.flip = erase
        memory = service.app.state.memory
        object.__setattr__(memory.ports, "models", lambda _: model)
        await ada.post("/v1/turns", json=service.turn("I eat no meat any more."))
        async with service.app.state.queue.wakes.work(at_once=1, drain_s=30):
            while not reports:  # noqa: ASYNC110  the worker tells nobody that it began
                await asyncio.sleep(0.01)
        assert reports[0]["erased"]["turns"] == 1
        assert any("being learned from" in each["what"] for each in reports[0]["remains"])
        assert (await ada.get("/v1/memories")).json()["memories"] == []
        assert await store.receipt(Scope(ScopeKind.USER, "ada"), "m1") is None
        assert await store.scopes("ada") == ()
