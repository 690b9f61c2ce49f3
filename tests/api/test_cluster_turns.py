"""Turns on a cluster: the same service, the same queue, the same worker, on several shards, also while one fails."""

from __future__ import annotations

import asyncio
import gc
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from memagent.errors import BadRequest
from memagent.memory import Scope, ScopeKind
from tests.api.test_recovery import *  # noqa: F403  every test of it, for the Redis below
from tests.api.test_turns import *  # noqa: F403
from tests.api.test_turns import learning

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.local_cluster import LocalCluster

pytestmark = [
    pytest.mark.xdist_group("cluster"),
    # redis-py leaves connections to a node that died to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WORDS = [f"word{number}" for number in range(8)]


@pytest.fixture
def redis_url(cluster: LocalCluster) -> str:
    return cluster.url


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("slot", ["{PREFIX-turns}", "{u:ada}"])
async def test_what_was_accepted_is_learned_from_over_a_failover(
    cluster: LocalCluster, open_service: Callable[..., Any], *, slot: str, kill: bool
) -> None:
    """Of the shard that wakes the workers, and of the shard of a user; accepted means handed over until it was taken."""
    rules = learning(*((word, f"Ada likes {word}.") for word in WORDS))
    async with open_service(rules=rules, environ={"MEMAGENT_TURN_LEASE_S": "1"}) as service:
        store, ada = service.app.state.memory.ports.store, service.as_user("ada")
        slot = slot.replace("PREFIX", store.prefix)
        async with AsyncExitStack() as lasting:
            for number, word in enumerate(WORDS):
                if number == len(WORDS) // 2:
                    await (
                        lasting.enter_async_context(cluster.without(slot))
                        if kill
                        else cluster.hand_over(slot)
                    )
                turn = service.turn(word, message_id=word)
                async with asyncio.timeout(30):
                    while (await ada.post("/v1/turns", json=turn)).status_code == 503:  # noqa: ASYNC110  as a backend does
                        await asyncio.sleep(0.05)
        # The node is back by here: pydocket's worker listens at one node, and waits for that.
        async with asyncio.timeout(60):
            while not await learned(service):  # noqa: ASYNC110  another process raises no event here
                await asyncio.sleep(0.1)
        history = await store.history(Scope(ScopeKind.USER, "ada"))
        assert sorted(line.key for line in history) == WORDS
    gc.collect()  # here, where what it finds is not another test's


async def learned(service: Any) -> bool:
    """Whether every word is kept; an outage is not an answer."""
    answer = await service.as_user("ada").get("/v1/memories")
    return answer.status_code == 200 and len(answer.json()["memories"]) == len(WORDS)


async def test_turns_that_are_to_be_searched_want_a_place_of_their_own(
    open_service: Callable[..., Any],
) -> None:
    with pytest.raises(BadRequest, match="MEMAGENT_VECTORS"):
        async with open_service(environ={"MEMAGENT_TRANSCRIPTS": "true"}):
            pass
