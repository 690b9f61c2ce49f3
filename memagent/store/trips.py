"""Recall on a cluster, where no script may search or reach across slots: see, ask the engine, judge. Three trips.

The scopes of one user are one group, in one slot; each shared scope is another. Trips of several groups are made at once, and
then a fourth tells the words of what was found in one to the judges of the others.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from memagent.store.keys import memory_prefix, scope_id, slot_tag
from memagent.store.rows import scope_row

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from memagent.memory import Scope
    from memagent.store.shards import Shards

    Run = Callable[..., Awaitable[Any]]

INDEX, VECTOR = "INDEX", "VECTOR"
"""Stand in a question of `lua/see.lua` for what only the sender has."""

ATTEMPTS = 3
"""Of a search that finds its memories written to meanwhile. The last takes them as they stand: what is gone is not shown."""


def groups(scopes: Sequence[Scope]) -> list[list[int]]:
    """Places of the scopes that share a slot, in the order of the first of each."""
    found: dict[str, list[int]] = {}
    for place, scope in enumerate(scopes):
        found.setdefault(slot_tag(scope), []).append(place)
    return list(found.values())


class Trips:
    """One way of recalling for a store; `run` is its door to the scripts, `prefix` that of its keys."""

    def __init__(self, run: Run, shards: Shards | None, *, prefix: str) -> None:
        self._run = run
        self._shards = shards
        self._prefix = prefix

    async def recall(
        self, scopes: Sequence[Scope], request: Mapping[str, Any], vector: Sequence[bytes]
    ) -> Mapping[str, Any]:
        """What `lua/recall.lua` answers on one server."""
        request = {**request, "index": INDEX}
        for left in reversed(range(ATTEMPTS)):
            answer = await self._once(scopes, {**request, "last": not left}, b"".join(vector))
            if answer is not None:
                return answer
        raise AssertionError("the last attempt takes what there is")

    async def _once(
        self, scopes: Sequence[Scope], request: Mapping[str, Any], vector: bytes
    ) -> Mapping[str, Any] | None:
        """One attempt, or None when something was written between its trips."""
        seen = await self._in_each("recall_see", scopes, request, blobs=[VECTOR.encode()], doing="recalling")
        if ended := _ended(seen):
            return ended
        states = _in_order(scopes, seen)
        answer = {
            "scopes": [state["prefix"] for state in states],
            "tokens": sum(state["tokens"] for state in states),
            "hits": [],
            "searched": request["search"],
        }
        if not any(state.get("questions") for state in states):
            return answer
        replies = await self._asked(scopes, states, vector)
        if len(seen) > 1:
            await self._tell_words(scopes, replies)
        judged = await self._judged(scopes, {**request, "replies": replies}, states)
        if ended := _ended(judged):
            return ended
        if any(each.get("again") for each in judged):
            return None
        hits = [hit for each in judged for hit in each["hits"]]
        return {
            **answer,
            "hits": sorted(hits, key=lambda hit: hit["place"]),
            "searched": all(each["searched"] for each in judged),
        }

    async def _asked(
        self, scopes: Sequence[Scope], states: Sequence[Mapping[str, Any]], vector: bytes
    ) -> list[dict[str, Any]]:
        async def ask(scope: Scope, questions: Mapping[str, Any] | None) -> dict[str, Any]:
            if not questions or self._shards is None:
                return {}
            found = await self._shards.search(slot_tag(scope), questions, vector)
            return {name: _plain(reply) for name, reply in found.items()}

        return await asyncio.gather(
            *(ask(scope, state.get("questions")) for scope, state in zip(scopes, states, strict=True))
        )

    async def _tell_words(self, scopes: Sequence[Scope], replies: Sequence[dict[str, Any]]) -> None:
        """Add the words of what shares some with the message: judges of other slots cannot look for themselves."""

        async def tell(scope: Scope, answers: dict[str, Any]) -> None:
            if names := answers.get("sharing", ())[1::2]:
                request = {**scope_row(scope), "names": names}
                answers["words"] = await self._run("recall_words", [scope], request, doing="recalling")

        await asyncio.gather(*(tell(scope, answers) for scope, answers in zip(scopes, replies, strict=True)))

    async def _judged(
        self, scopes: Sequence[Scope], request: Mapping[str, Any], states: Sequence[Mapping[str, Any]]
    ) -> list[Any]:
        rows = [
            {
                "id": scope_id(scope),
                "kind": scope.kind.value,
                "size": state["size"],
                "stands": state["stands"],
            }
            for scope, state in zip(scopes, states, strict=True)
        ]
        # Every slot hears of all scopes, and of those in other slots what their memories' names begin with.
        elsewhere = [
            {"elsewhere": memory_prefix(self._prefix) + row["id"], "size": row["size"]} for row in rows
        ]
        asked = [
            {**request, "scopes": [rows[at] if at in places else elsewhere[at] for at in range(len(rows))]}
            for places in groups(scopes)
        ]
        return await asyncio.gather(
            *(
                self._run("recall_judge", [scopes[at] for at in places], each, doing="recalling")
                for places, each in zip(groups(scopes), asked, strict=True)
            )
        )

    async def standing(self, scopes: Sequence[Scope], request: Mapping[str, Any]) -> Mapping[str, Any]:
        """What `lua/standing.lua` answers on one server; the first scope's slot knows the receipt and the switch."""
        answers = await self._in_each("standing", scopes, request, doing="reading what stands")
        return {**answers[0], "scopes": _in_order(scopes, answers)}

    async def _in_each(
        self,
        name: str,
        scopes: Sequence[Scope],
        request: Mapping[str, Any],
        *,
        blobs: Sequence[bytes] = (),
        doing: str,
    ) -> list[Any]:
        """One script in every slot, each with its own rows of the request."""
        return await asyncio.gather(
            *(
                self._run(
                    name,
                    [scopes[at] for at in places],
                    {**request, "scopes": [request["scopes"][at] for at in places]},
                    blobs,
                    doing=doing,
                )
                for places in groups(scopes)
            )
        )


def _ended(answers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """What any slot answers instead of a search: that the user opted out, or that the chat's words have to be sent."""
    reasons = ("opted_out", "unsaid")
    return next(({reason: True} for reason in reasons if any(each.get(reason) for each in answers)), None)


def _in_order(scopes: Sequence[Scope], answers: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What every slot said of its scopes, in the order of all."""
    found: dict[int, Any] = {}
    for places, answer in zip(groups(scopes), answers, strict=True):
        found |= zip(places, answer["scopes"], strict=True)
    return [found[at] for at in range(len(scopes))]


def _plain(reply: Any) -> Any:
    """An answer of the engine as JSON can carry it to a script."""
    if isinstance(reply, list):
        return [_plain(each) for each in reply]
    return reply.decode() if isinstance(reply, bytes) else False if reply is None else reply
