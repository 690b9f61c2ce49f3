"""Transcripts through the service: handed over turns come back over HTTP, and go with their user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from memagent.llm.script import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

ON = {"MEMAGENT_TRANSCRIPTS": "true"}


async def test_a_turn_that_was_handed_over_comes_back_in_another_chat(
    open_service: Callable[..., Any],
) -> None:
    async with open_service(Answer("nothing"), Answer("nothing"), environ=ON) as service:
        ada = service.as_user("ada")
        await ada.post("/v1/turns", json=service.turn("my cat is called Mochi"), params={"wait": "true"})
        turn = {**service.turn("what is my cat called"), "conversation_id": "c2"}
        context = (await ada.post("/v1/context", json=turn)).json()
        assert "my cat is called Mochi" in context["tail"]
        assert [each["citation"] for each in context["matched"]["passages"]] == ["sessions/c1#L1-L1"]
        done = (await ada.post("/v1/turns", json=turn, params={"wait": "true"})).json()
        assert done["receipt"]["recall"] == context["matched"]
        other = (await service.as_user("kim").post("/v1/context", json=turn)).json()
        assert other["tail"] == ""


async def test_a_look_names_its_sources(open_service: Callable[..., Any]) -> None:
    async with open_service(Answer("nothing"), environ=ON) as service:
        ada = service.as_user("ada")
        await ada.put("/v1/memories/cat", json={"value": "Ada's cat is called Mochi."})
        await ada.post("/v1/turns", json=service.turn("my cat is called Mochi"), params={"wait": "true"})

        async def look(*sources: str) -> Any:
            return await ada.post("/v1/recall", json={"text": "what is my cat called", "sources": sources})

        turns, memories = (await look("turns")).json(), (await look("memories")).json()
        assert (turns["prefix"], bool(turns["tail"])) == ("", True)
        assert (bool(memories["prefix"]), memories["tail"]) == (True, "")
        assert (await look("diary")).status_code == (await look()).status_code == 422


@pytest.mark.parametrize("under_way", [False, True])
async def test_an_erased_user_leaves_no_key(open_service: Callable[..., Any], *, under_way: bool) -> None:
    async with open_service(Answer("nothing"), environ=ON, worker=not under_way) as service:
        ada = service.as_user("ada")
        wait = {} if under_way else {"wait": "true"}
        await ada.post("/v1/turns", json=service.turn("my cat is called Mochi"), params=wait)
        erased = (await service.admin().delete("/v1/users/ada", params={"preferences": "true"})).json()
        assert erased["erased"].get("passages", 0) == (0 if under_way else 1)
        assert erased["keys_left"] == 0
