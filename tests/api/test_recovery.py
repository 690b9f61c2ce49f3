"""What the queue does when a step of it fails: nothing that was accepted is forgotten, and no receipt is half."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import docket
import pytest
import time_machine

from memagent.api.app import create_app
from memagent.errors import ConfigUnusable, StoreUnavailable
from memagent.llm.script import Rule, calling
from memagent.turns import queue as turn_queue
from tests.api.test_turns import over

if TYPE_CHECKING:
    from collections.abc import Callable

MEAT = calling("set_memory", key="diet", value="Ada eats no meat.")
QUICK = {"MEMAGENT_TURN_LEASE_S": "0.3"}


async def test_a_turn_that_no_worker_was_told_of_is_swept_up(open_service: Callable[..., Any]) -> None:
    # The same answer whenever it is asked: a busy machine may lose a lease as short as this one, and ask again.
    async with open_service(rules=[Rule((MEAT,))], environ=QUICK) as service:
        ada, turn = service.as_user("ada"), service.turn("No meat.")
        wakes = service.app.state.queue.wakes
        wakes.wake, real = _refused, wakes.wake
        refused = await ada.post("/v1/turns", json=turn)
        wakes.wake = real
        [(_, turn_id, _)] = await service.app.state.queue._queues.announced(for_ms=0, limit=10)

        assert (refused.status_code, refused.json()["error"]["retryable"]) == (503, True)
        assert (await over(ada, turn_id))["receipt"]["set"] == ["diet"]


async def test_a_turn_that_no_worker_was_told_of_is_swept_up_though_every_clock_was_set_back(
    open_service: Callable[..., Any],
) -> None:
    ahead = time_machine.travel(datetime.now(UTC) + timedelta(days=1), tick=True)
    ahead.start()
    try:
        async with open_service(rules=[Rule((MEAT,))], environ=QUICK) as service:
            service.later(days=1)
            ada = service.as_user("ada")
            first = (await ada.post("/v1/turns", json=service.turn("No meat."))).json()
            await over(ada, first["id"])
            wakes = service.app.state.queue.wakes
            wakes.wake, real = _refused, wakes.wake
            turn = service.turn("No meat at all.")
            assert (await ada.post("/v1/turns", json=turn)).status_code == 503
            wakes.wake = real
            service.later(days=-1)
            ahead.stop()
            [(_, turn_id, _)] = await service.app.state.queue._queues.announced(for_ms=0, limit=10)

            swept = await service.app.state.queue.finished("ada", turn_id, timeout_s=30)
            assert swept.status == "done"
    finally:
        if time_machine.escape_hatch.is_travelling():
            ahead.stop()


async def test_a_clock_that_is_ahead_takes_no_dead_letter_off_the_list(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(api_key="user_provided") as service:
        ada = service.as_user("ada")
        for days in (0, 30, -30):
            service.later(days=days)
            turn = (await ada.post("/v1/turns", json=service.turn("No meat."))).json()
            assert (await over(ada, turn["id"]))["status"] == "dead"

        assert len((await service.admin().get("/v1/dead-letters")).json()) == 3


async def test_a_worker_that_a_bug_ended_is_started_again(
    open_service: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = docket.Worker.run_forever
    ends = iter([True])

    async def ended_once(worker: docket.Worker) -> None:
        if next(ends, False):
            raise RuntimeError("the handler is closed")
        await runs(worker)

    monkeypatch.setattr(docket.Worker, "run_forever", ended_once)
    async with open_service(MEAT) as service:
        ada = service.as_user("ada")
        turn = (await ada.post("/v1/turns", json=service.turn("No meat."))).json()

        assert (await over(ada, turn["id"]))["receipt"]["set"] == ["diet"]


async def test_handing_over_is_refused_in_time_by_a_store_that_is_silent(
    open_service: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_queue, "ACCEPT_S", 0.05)
    async with open_service(worker=False) as service:
        service.app.state.queue._queues.accept = _silent
        refused = await service.as_user("ada").post("/v1/turns", json=service.turn("No meat."))

        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "store_unavailable")
        assert refused.json()["error"]["retryable"] is True


async def test_a_worker_that_dies_between_applying_and_saying_so_leaves_a_whole_receipt(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(MEAT, environ=QUICK) as service:
        ada = service.as_user("ada")
        store = service.app.state.memory.ports.store
        apply, died = store.apply, asyncio.Event()

        async def dies_once(*given: Any, **named: Any) -> None:
            store.apply = apply
            await apply(*given, **named)
            died.set()
            raise StoreUnavailable("gone")

        store.apply = dies_once
        turn = (await ada.post("/v1/turns", json=service.turn("No meat.", message_id="m1"))).json()
        await died.wait()
        done = await over(ada, turn["id"])

        assert done["receipt"]["decision"] == "ran"
        assert done["receipt"]["set"] == ["diet"]
        assert (done["receipt"]["entries"], done["receipt"]["tokens"]) == (1, 5)
        assert len((await ada.get("/v1/memories:history")).json()) == 1


async def test_a_worker_that_lost_its_line_writes_nothing_down(open_service: Callable[..., Any]) -> None:
    async with open_service(worker=False) as service:
        await service.as_user("ada").post("/v1/turns", json=service.turn("No meat."))
        queues = service.app.state.queue._queues
        taken = await queues.take("ada", "first", lease_ms=1)
        await asyncio.sleep(0.01)
        again = await queues.take("ada", "second", lease_ms=60_000)

        assert taken.turn["id"] == again.turn["id"]
        assert again.turn["starts"] == "2"
        assert await queues.renew("ada", "first", lease_ms=1_000) is False
        late = await queues.settle("ada", taken.turn["id"], "first", status="done", fields={}, ttl_ms=1_000)
        assert late is None
        assert (await queues.take("ada", "third", lease_ms=1)).held is True
        assert (
            await queues.settle("ada", taken.turn["id"], "second", status="done", fields={}, ttl_ms=1_000)
            == 0
        )


async def test_a_turn_that_takes_every_worker_down_is_given_up(open_service: Callable[..., Any]) -> None:
    async with open_service(worker=False, environ={"MEMAGENT_TURN_ATTEMPTS": "1"}) as service:
        ada = service.as_user("ada")
        turn = (await ada.post("/v1/turns", json=service.turn("No meat."))).json()
        queues = service.app.state.queue._queues
        for number in range(3):
            await queues.take("ada", f"worker {number}", lease_ms=1)
            await asyncio.sleep(0.01)
        async with service.app.state.queue.wakes.work(at_once=1, drain_s=5):
            given_up = await over(ada, turn["id"])

        assert (given_up["status"], given_up["error"]["code"]) == ("dead", "worker_killed")


async def test_tracing_without_its_packages_is_said_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigUnusable, match="opentelemetry-sdk"):
        create_app({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})


async def _refused(*_: Any, **__: Any) -> None:
    raise StoreUnavailable("no worker could be told")


async def _silent(*_: Any, **__: Any) -> None:
    await asyncio.Event().wait()
