"""Turns over HTTP: accepted once, learned from once and in order, retried, given up, replayed, followed."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from memagent.llm.script import Answer, Rule, calling
from memagent.store.connection import connect
from memagent.store.embedded import answers, find_binaries
from memagent.store.queues import Queues
from memagent.turns.payload import Envelope
from memagent.turns.queue import ticket_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx

MEAT = calling("set_memory", key="diet", value="Ada eats no meat.")
CAT = calling("set_memory", key="pets", value="Ada has a cat.")
DOWN = Answer(status=503)


def learning(*pairs: tuple[str, str]) -> list[Rule]:
    """Rules of a model that sets a memory when it reads a word."""
    return [Rule((calling("set_memory", key=word, value=value),), user=word) for word, value in pairs]


def events_of(stream: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for block in stream.split("\n\n"):
        rows = dict(
            line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":")
        )
        if "event" in rows:
            found.append((rows["event"], json.loads(rows["data"])))
    return found


async def over(client: httpx.AsyncClient, turn_id: str) -> dict[str, Any]:
    """The turn when it is over, by its own stream."""
    stream = (await client.get(f"/v1/turns/{turn_id}/events")).text
    return events_of(stream)[-1][1]


async def test_an_accepted_turn_is_learned_from(open_service: Callable[..., Any]) -> None:
    async with open_service(MEAT) as service:
        ada = service.as_user("ada")
        answer = await ada.post("/v1/turns", json=service.turn("I stopped eating meat."))

        assert answer.status_code == 202
        ticket = answer.json()
        assert ticket["status"] in {"queued", "running"}
        assert ticket["durability"] == "accepted"
        done = await over(ada, ticket["id"])
        assert (done["status"], done["durability"]) == ("done", "applied")
        assert done["receipt"]["set"] == ["diet"]
        assert (await ada.get(answer.headers["location"])).json() == done
        assert (await ada.get("/v1/memories/diet")).json()["value"] == "Ada eats no meat."


async def test_who_waits_gets_the_finished_receipt(open_service: Callable[..., Any]) -> None:
    async with open_service(MEAT) as service:
        answer = await service.as_user("ada").post(
            "/v1/turns", json=service.turn("I stopped eating meat."), params={"wait": "true"}
        )

        assert answer.status_code == 200
        assert answer.json()["receipt"]["set"] == ["diet"]


async def test_the_same_message_twice_is_one_turn(open_service: Callable[..., Any]) -> None:
    async with open_service(MEAT, CAT) as service:
        ada, turn = service.as_user("ada"), service.turn("I stopped eating meat.")
        posted = await asyncio.gather(
            *(ada.post("/v1/turns", json=turn, params={"wait": "true"}) for _ in range(5))
        )
        again = await ada.post("/v1/turns", json=turn)

        assert {each.json()["id"] for each in (*posted, again)} == {again.json()["id"]}
        assert again.status_code == 200
        assert len((await ada.get("/v1/memories:history")).json()) == 1


async def test_the_same_message_id_of_another_user_is_another_turn(open_service: Callable[..., Any]) -> None:
    async with open_service(rules=learning(("diet", "No meat."))) as service:
        turn = service.turn("My diet", message_id="same")
        for user in ("ada", "bob"):
            answer = await service.as_user(user).post("/v1/turns", json=turn, params={"wait": "true"})
            assert answer.json()["receipt"]["set"] == ["diet"]


async def test_turns_of_a_user_are_learned_from_in_the_order_they_came(
    open_service: Callable[..., Any],
) -> None:
    words = [f"fact_{letter}" for letter in "abcdefghijkl"]
    async with open_service(rules=learning(*((word, f"It is {word}.") for word in words))) as service:
        ada = service.as_user("ada")
        for word in words:
            last = await ada.post("/v1/turns", json=service.turn(f"About {word}"))
        await over(ada, last.json()["id"])

        changes = (await ada.get("/v1/memories:history")).json()
        assert [change["key"] for change in reversed(changes)] == words


async def test_a_model_that_is_down_is_asked_again(open_service: Callable[..., Any]) -> None:
    async with open_service(DOWN, DOWN, MEAT) as service:
        ada = service.as_user("ada")
        answer = await ada.post("/v1/turns", json=service.turn("No meat."), params={"wait": "true"})

        assert answer.json()["status"] == "done"
        assert answer.json()["attempts"] == 2
        assert answer.json()["error"] is None
        assert answer.json()["receipt"]["set"] == ["diet"]


async def test_a_turn_that_is_tried_again_holds_the_later_ones_back(open_service: Callable[..., Any]) -> None:
    async with open_service(DOWN, MEAT, CAT) as service:
        ada = service.as_user("ada")
        await ada.post("/v1/turns", json=service.turn("No meat."))
        second = await ada.post("/v1/turns", json=service.turn("A cat."))
        await over(ada, second.json()["id"])

        changes = (await ada.get("/v1/memories:history")).json()
        assert [change["key"] for change in reversed(changes)] == ["diet", "pets"]


async def test_after_its_last_attempt_a_turn_is_a_dead_letter_that_can_be_replayed(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(DOWN, DOWN, MEAT, environ={"MEMAGENT_TURN_ATTEMPTS": "2"}) as service:
        ada, admin = service.as_user("ada"), service.admin()
        dead = (await ada.post("/v1/turns", json=service.turn("No meat."), params={"wait": "true"})).json()
        assert (dead["status"], dead["attempts"], dead["error"]["code"]) == ("dead", 2, "model_unavailable")

        [letter] = (await admin.get("/v1/dead-letters")).json()
        assert (letter["user"], letter["id"], letter["message_id"]) == ("ada", dead["id"], dead["message_id"])
        assert "meat" not in json.dumps(letter)
        replayed = await admin.post("/v1/dead-letters:replay", json={"user": "ada", "id": dead["id"]})
        assert replayed.status_code == 202
        assert (await over(ada, dead["id"]))["receipt"]["set"] == ["diet"]
        assert (await admin.get("/v1/dead-letters")).json() == []
        gone = await admin.post("/v1/dead-letters:replay", json={"user": "ada", "id": dead["id"]})
        assert (gone.status_code, gone.json()["error"]["code"]) == (404, "no_such_turn")


async def test_a_refusal_that_no_waiting_mends_is_given_up_at_once(open_service: Callable[..., Any]) -> None:
    async with open_service(Answer(status=401)) as service:
        answer = await service.as_user("ada").post(
            "/v1/turns", json=service.turn("Hello"), params={"wait": "true"}
        )

        assert (answer.json()["status"], answer.json()["attempts"]) == ("dead", 1)
        assert answer.json()["error"]["code"] == "model_refused"


async def test_events_tell_the_way_of_a_turn_and_its_memories_as_librechat_shapes_them(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(MEAT, calling("delete_memory", key="diet")) as service:
        ada = service.as_user("ada")
        first = (await ada.post("/v1/turns", json=service.turn("No meat.", message_id="m1"))).json()
        told = events_of((await ada.get(f"/v1/turns/{first['id']}/events")).text)

        assert [name for name, _ in told] == ["queued", "running", "attachment", "done"]
        artifact = {"key": "diet", "value": "Ada eats no meat.", "tokenCount": 5, "type": "update"}
        assert told[2][1] == {
            "type": "memory",
            "toolCallId": "",
            "messageId": "m1",
            "conversationId": "c1",
            "memory": artifact,
        }
        second = (await ada.post("/v1/turns", json=service.turn("Forget my diet."))).json()
        told = events_of((await ada.get(f"/v1/turns/{second['id']}/events")).text)
        assert told[-2][1]["memory"] == {"key": "diet", "type": "delete"}


async def test_a_list_that_is_full_is_an_error_artifact(open_service: Callable[..., Any]) -> None:
    long = calling(
        "set_memory", key="diet", value="Ada eats neither meat nor fish nor anything that had a mother."
    )
    async with open_service(long, extra="tokenLimit: 5") as service:
        ada = service.as_user("ada")
        turn = (await ada.post("/v1/turns", json=service.turn("No meat."))).json()
        told = events_of((await ada.get(f"/v1/turns/{turn['id']}/events")).text)

        [artifact] = [data["memory"] for name, data in told if name == "attachment"]
        assert (artifact["key"], artifact["type"]) == ("system", "error")
        assert json.loads(artifact["value"])["errorType"] == "would_exceed"


async def test_what_was_said_is_gone_from_redis_when_the_turn_is_done(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(Answer("nothing to keep")) as service:
        ada = service.as_user("ada")
        await ada.post("/v1/turns", json=service.turn("My xylophone is blue."), params={"wait": "true"})

        store = service.app.state.memory.ports.store
        async for key in store.client.scan_iter(match=f"{store.prefix}*"):
            kind = (await store.client.type(key)).decode()
            held = str(await store.client.hgetall(key)) if kind == "hash" else ""
            assert "xylophone" not in held + str(key)


async def test_opting_out_is_honoured_by_a_turn_that_waits(open_service: Callable[..., Any]) -> None:
    async with open_service(MEAT, worker=False) as service:
        ada = service.as_user("ada")
        waiting = (await ada.post("/v1/turns", json=service.turn("No meat."))).json()
        await ada.patch("/v1/preferences", json={"memories": False})
        options = service.app.state.options
        async with service.app.state.queue.wakes.work(at_once=1, drain_s=options.drain_s):
            done = await over(ada, waiting["id"])

        assert (done["receipt"]["decision"], done["receipt"]["reason"]) == ("skipped", "opted_out")
        assert (await ada.get("/v1/memories")).json()["memories"] == []


async def test_a_line_that_is_full_refuses_with_the_time_to_come_back(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(
        environ={"MEMAGENT_QUEUE_PER_USER": "2", "MEMAGENT_QUEUE_TOTAL": "3"}, worker=False
    ) as service:
        ada, bob = service.as_user("ada"), service.as_user("bob")
        posted = [await ada.post("/v1/turns", json=service.turn(f"text {number}")) for number in range(3)]
        posted += [await bob.post("/v1/turns", json=service.turn(f"text {number}")) for number in range(2)]

        assert [each.status_code for each in posted] == [202, 202, 429, 202, 429]
        for refused in (posted[2], posted[4]):
            assert refused.json()["error"]["retryable"] is True
            assert int(refused.headers["retry-after"]) >= 1


async def test_a_turn_known_already_is_answered_even_when_the_line_is_full(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(environ={"MEMAGENT_QUEUE_PER_USER": "1"}, worker=False) as service:
        ada, turn = service.as_user("ada"), service.turn("once")
        first, second = [await ada.post("/v1/turns", json=turn) for _ in range(2)]

        assert (first.status_code, second.status_code) == (202, 202)
        assert first.json() == second.json()


async def test_a_turn_costs_one_embedding_of_its_message(open_service: Callable[..., Any]) -> None:
    async with open_service(Answer("nothing")) as service:
        embedder = service.app.state.memory.ports.embedder
        asked: list[str] = []
        query = embedder.query

        async def counted(text: str) -> Any:
            asked.append(text)
            return await query(text)

        embedder.query = counted
        ada, turn = service.as_user("ada"), service.turn("I stopped eating meat.")
        context = await ada.post("/v1/context", json=turn)
        done = await ada.post("/v1/turns", json=turn, params={"wait": "true"})

        assert len(asked) == 1
        assert done.json()["receipt"]["recall"] == context.json()["matched"]


async def test_context_says_what_is_remembered_and_what_matched(open_service: Callable[..., Any]) -> None:
    async with open_service() as service:
        ada = service.as_user("ada")
        await ada.put("/v1/memories/diet", json={"value": "Ada eats no meat."})
        context = (await ada.post("/v1/context", json=service.turn("Is there meat in it?"))).json()
        found = (await ada.post("/v1/recall", json={"text": "Is there meat in it?"})).json()

        assert "Ada eats no meat." in context["prefix"]
        assert context["tail"] == ""
        assert [match["key"] for match in context["matched"]["matches"] if match["used"]] == ["diet"]
        assert found == context


async def test_a_flushed_turn_is_told_as_that_and_no_other(open_service: Callable[..., Any]) -> None:
    async with open_service(Answer("nothing"), worker=False) as service:
        ada, turn = service.as_user("ada"), service.turn("Hello there")
        plain = (await ada.post("/v1/turns", json=turn)).json()
        flushed = (await ada.post("/v1/turns", json=turn, params={"fsync": "true"})).json()

        assert (plain["durability"], flushed["durability"]) == ("accepted", "fsynced")


async def test_a_server_without_an_append_only_file_is_never_told_as_flushed(tmp_path: Path) -> None:
    socket = tmp_path / "redis.sock"
    options = (
        "--port",
        "0",
        "--unixsocket",
        str(socket),
        "--appendonly",
        "no",
        "--save",
        "",
        "--dir",
        str(tmp_path),
    )
    server = await asyncio.create_subprocess_exec(
        str(find_binaries().server), *options, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(20):
            while not await answers(socket):  # noqa: ASYNC110  a process that starts raises no event here
                await asyncio.sleep(0.02)
        client = connect(f"unix://{socket}")
        queues = Queues(client, prefix="t")
        fields = {"message_id": "m1", "conversation_id": "", "agent_id": "", "accepted": "2026-03-02"}
        skipped = {"finished": "2026-03-02", "receipt": "{}"}
        await queues.accept("ada", "t1", "{}", fields, most=1, skipped=skipped, ttl_ms=1_000)

        assert await queues.synced("ada", "t1", timeout_ms=50) is False
        row = await queues.turn("ada", "t1")
        assert row is not None
        assert ticket_of("ada", row).durability == "accepted"
        await client.aclose()
    finally:
        server.terminate()
        await server.wait()


async def test_a_turn_that_is_not_there_is_not_flushed(open_service: Callable[..., Any]) -> None:
    async with open_service(worker=False) as service:
        assert await service.app.state.queue._queues.synced("ada", "t-unknown", timeout_ms=1) is False


async def test_a_key_of_the_users_own_waits_encrypted(open_service: Callable[..., Any]) -> None:
    async with open_service(Answer("nothing"), worker=False) as service:
        ada = service.as_user("ada")
        await ada.post("/v1/turns", json=service.turn("Hello there", user_key="sk-the-users-own"))

        store = service.app.state.memory.ports.store
        [key] = [key async for key in store.client.scan_iter(match=f"{store.prefix}:t:*")]
        payload = (await store.client.hget(key, "payload")).decode()
        assert "Hello there" in payload
        assert "sk-the-users-own" not in payload
        turn, _ = Envelope(service.app.state.options.session_secret, window=5).open(payload)
        assert turn.user_key == "sk-the-users-own"


async def test_without_a_secret_to_seal_it_a_key_of_the_users_own_is_refused(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(environ={"MEMAGENT_SESSION_SECRET": ""}, worker=False) as service:
        refused = await service.as_user("ada").post(
            "/v1/turns", json=service.turn("Hello", user_key="sk-own")
        )

        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "no_user_key")
        assert "sk-own" not in refused.text


async def test_half_a_character_in_a_turn_costs_that_character_only(open_service: Callable[..., Any]) -> None:
    async with open_service(MEAT) as service:
        body = json.dumps(service.turn("No meat \ud83d")).encode()
        ada = service.as_user("ada")
        answer = await ada.post(
            "/v1/turns", content=body, headers={"content-type": "application/json"}, params={"wait": "true"}
        )

        assert answer.json()["receipt"]["set"] == ["diet"]


async def test_a_turn_of_another_user_than_the_requests_is_forbidden(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(worker=False) as service:
        answer = await service.as_user("ada").post("/v1/turns", json=service.turn("Hello", user="bob"))

        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


async def test_an_unknown_turn_is_not_found_and_its_stream_neither(open_service: Callable[..., Any]) -> None:
    async with open_service(worker=False) as service:
        for path in ("/v1/turns/t00", "/v1/turns/t00/events"):
            answer = await service.as_user("ada").get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_such_turn")
