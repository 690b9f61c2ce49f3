"""Everything of a turn but the model: recall, window, prompt, apply, receipt.

    python -m benchmarks.turn [--quick | --full]

A turn asks for its context and is learned from afterwards, as a chat backend has it. The model answers at once with one memory to
set, so what is left is memagent and Redis. `turn` has its vectors already; `hashed` and `local` make them, with hashed words and
with the model in the wheel; `gateway` calls the model over HTTP through litellm. The user has 10, 100 or 1,000 memories, all users
together 1,000 to 1,000,000 (100,000 by default). `long` is the context of a chat of 80 messages of 5,000 characters.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from benchmarks import measure
from benchmarks.measure import Figure, Instant, Known, Reach
from memagent.agent.ledger import Rules
from memagent.agent.prompt import default_instructions, status
from memagent.agent.tools import specs
from memagent.config.environment import load_environment
from memagent.config.settings import load_settings
from memagent.llm.embedders import HashedEmbedder, LocalEmbedder
from memagent.llm.gateway import Gateway
from memagent.llm.script import Script, calling
from memagent.llm.scripted import ScriptedServer
from memagent.memory import Message
from memagent.service import Memagent
from memagent.service.ports import Ports
from memagent.store.redis import RedisStore
from memagent.tokens import count_tokens
from memagent.turn import Turn
from memagent.wiring import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable

    from memagent.llm import ChatModel, Embedder

SIZES = {"quick": (1_000, 10_000), "default": (1_000, 100_000), "full": (1_000, 100_000, 1_000_000)}
HELD = (10, 100, 1_000)
ROUNDS = {"quick": (3, 30), "default": (5, 100), "full": (5, 200)}
EACH = 100
CONFIG = """
version: '1.3.17'
endpoints:
  custom:
    - {name: Scripted, apiKey: key, baseURL: 'BASEURL', models: {default: [small], fetch: false}}
memory:
  disabled: false
  agent: {enabled: true, provider: Scripted, model: small}
"""


def opened(
    store: RedisStore,
    embedder: Embedder,
    model: ChatModel | Callable[[Any], ChatModel],
    *,
    base_url: str = "http://127.0.0.1:9/v1",
) -> Memagent:
    """memagent as `memagent.open` makes it, with the parts that are measured."""
    settings = load_settings(CONFIG.replace("BASEURL", base_url).encode(), file="librechat.yaml")
    options = load_environment({"MEMAGENT_MAX_MEMORIES": "5000", "MEMAGENT_RECALL_BUDGET_MS": "10000"})
    models = model if callable(model) else lambda _: model
    return Memagent(Ports(settings, options, store, embedder, models, utc_now, {}))


class Turns:
    """One user's chat, turn by turn, thought up before it is timed; every part of a turn noted."""

    def __init__(self, memory: Memagent, user: str, *, start: int, count: int) -> None:
        self.memory = memory
        said = range(start, start + count)
        self.turns = [Turn(user, f"message{at}", measure.chat(at), conversation_id="c") for at in said]
        self.parts: dict[str, list[float]] = {}

    async def __call__(self, number: int) -> None:
        turn = self.turns[number]
        found = await self.memory.context(turn)
        receipt = await self.memory.observe(turn, recalled=found.note)
        if not receipt.set or not found.note.searched:
            raise RuntimeError(f"the turn learned nothing: {receipt}")
        for name, spent in receipt.timings_ms.items():
            self.parts.setdefault(name, []).append(spent)

    def medians(self) -> dict[str, float]:
        return {name: round(measure.percentile(spent, 0.5), 2) for name, spent in self.parts.items()}


CHATS = count(0, 100_000)
"""Where the next chat's turns are counted from: no two turns say the same."""


async def measured(
    store: RedisStore, embedder: Embedder, held: int, mode: str, *, user: str = "holds"
) -> tuple[Figure, dict[str, float]]:
    rounds, each = ROUNDS[mode]
    model = Instant(held)
    model.number = start = next(CHATS)
    turns = Turns(
        opened(store, embedder, model), f"{user}{held}", start=start, count=measure.WARM + rounds * each
    )
    return await measure.timed(turns, rounds=rounds, each=each), turns.medians()


async def recalls(memory: Memagent, user: str, mode: str) -> Figure:
    rounds, each = ROUNDS[mode]
    said = [Turn(user, "", measure.chat(number)) for number in range(64)]
    return await measure.timed(lambda number: memory.context(said[number % 64]), rounds=rounds, each=each)


def long_texts() -> list[str]:
    return [" ".join(measure.facts(55, seed=30_000_000 + place)) for place in range(79)]


async def long_chats(memory: Memagent, mode: str) -> Figure:
    """Contexts of a chat that is sent whole with every turn."""
    rounds, each = ROUNDS[mode]
    before = [Message("user" if place % 2 else "assistant", text) for place, text in enumerate(long_texts())]
    said = [Turn("holds10", "", (*before, Message("user", measure.learned(number)))) for number in range(64)]
    return await measure.timed(lambda number: memory.context(said[number % 64]), rounds=rounds, each=each)


async def trips_of(memory: Memagent, user: str) -> dict[str, int]:
    """How often one context, and one turn's learning, send something to Redis."""
    from redis.asyncio.connection import AbstractConnection

    sent, send = [0], AbstractConnection.send_packed_command

    async def counted(self: AbstractConnection, *given: Any, **named: Any) -> None:
        sent[0] += 1
        await send(self, *given, **named)

    turn = Turn(user, "trips", measure.chat(0), conversation_id="c")
    AbstractConnection.send_packed_command = counted  # type: ignore[method-assign]
    try:
        found = await memory.context(turn)
        recall = sent[0]
        await memory.observe(turn, recalled=found.note)
    finally:
        AbstractConnection.send_packed_command = send  # type: ignore[method-assign]
    return {"recall": recall, "learning": sent[0] - recall}


async def embedded(store_url: str, embedder: Embedder) -> dict[int, Figure]:
    """Turns whose vectors have to be made, in a store of that embedder's own."""
    store = await RedisStore.open(
        store_url, prefix="e", embedder_id=embedder.id, dimensions=embedder.dimensions
    )
    found = {}
    for held in HELD[:2]:
        texts = measure.facts(held, seed=held)
        rows = measure.edits(texts, await embedder.passages(texts), embedder.id)
        await store.apply(measure.own(f"with{held}"), rows, limits=measure.FREE, now=utc_now())
        found[held], _ = await measured(store, embedder, held, "quick", user="with")
    await store.close()
    return found


async def through_gateway(store: RedisStore, mode: str) -> dict[str, Any]:
    """The same turn with the model in process, and over HTTP through litellm."""
    rounds, each = ROUNDS[mode]
    start, turns_in_all = next(CHATS), measure.WARM + rounds * each
    said = (
        calling("set_memory", key=f"key_{at % 10}", value=measure.learned(start + at))
        for at in range(turns_in_all)
    )
    script = Script.of(*said)
    gateway = Gateway()
    await gateway.warm()
    async with ScriptedServer(script) as server:
        turns = Turns(
            opened(store, Known("known"), gateway.model, base_url=server.base_url), "holds10",
            start=start, count=turns_in_all,
        )  # fmt: skip
        found = await measure.timed(turns, rounds=rounds, each=each)
    await gateway.close()
    return {"turn": found, "model": turns.medians()["model"]}


def fixed_prompt() -> int:
    """Tokens of a request that do not depend on the chat or on what is remembered."""
    rules = Rules((), 8_000, 10_000)
    tools = [f"{each.name} {each.description} {dict(each.parameters)}" for each in specs()]
    return (
        count_tokens(default_instructions(rules))
        + count_tokens(status((), rules))
        + sum(map(count_tokens, tools))
    )


async def main(mode: str) -> None:
    figures: dict[str, Any] = {"fixed_prompt_tokens": fixed_prompt()}
    rows = []
    async with measure.own_redis() as server:
        store = await RedisStore.open(server.url, embedder_id="known", dimensions=measure.DIMENSIONS)
        for held in HELD:
            texts = measure.facts(held, seed=held)
            vectors = list(measure.vectors(held, seed=held))
            await store.apply(
                measure.own(f"holds{held}"),
                measure.edits(texts, vectors, "known"),
                limits=measure.FREE,
                now=utc_now(),
            )
        filled = sum(HELD) // EACH
        for size in SIZES[mode]:
            await measure.fill(store, range(filled, size // EACH), EACH, embedder="known")
            filled = max(filled, size // EACH)
            for held in HELD:
                turn, parts = await measured(store, Known("known"), held, mode)
                recall = await recalls(opened(store, Known("known"), Instant(held)), f"holds{held}", mode)
                figures[f"{size}/{held}"] = {"turn": turn, "recall": recall, "parts": parts}
                rows.append([f"{size:,}", f"{held:,}", turn, recall, parts])
        figures["long"] = await long_chats(opened(store, Known("known"), Instant(10)), mode)
        figures["trips"] = await trips_of(opened(store, Known("known"), Instant(10)), "holds10")
        figures["gateway"] = await through_gateway(store, mode)
        await store.close()
        figures["hashed"] = await embedded(server.url, HashedEmbedder(dimensions=measure.DIMENSIONS))
        local = LocalEmbedder()
        figures["local"] = await embedded(server.url, local)
        local.close()
    measure.table(["in the store", "of the user", "turn ms", "recall ms", "parts of learning, ms"], rows)
    ten, hundred = (figures[f"{SIZES[mode][-1]}/{held}"] for held in HELD[:2])
    measure.table(
        ["with", "10 memories", "100 memories"],
        [
            ["vectors at hand", ten["turn"], hundred["turn"]],
            *([name, figures[name][10], figures[name][100]] for name in ("hashed", "local")),
            ["litellm over HTTP", figures["gateway"]["turn"], ""],
        ],
    )
    print(f"recall in a chat of {sum(map(len, long_texts())):,} characters: {figures['long']} ms\n")
    measure.report("turn", mode, figures, reaches(figures, mode))


def reaches(figures: dict[str, Any], mode: str) -> list[Reach]:
    ten, hundred = (figures[f"{SIZES[mode][-1]}/{held}"] for held in HELD[:2])
    small = figures[f"{SIZES[mode][0]}/100"]
    return [
        Reach(
            f"a turn with 100 memories, {SIZES[mode][-1]:,} over {SIZES[mode][0]:,} in the store",
            round(hundred["turn"].p50 / small["turn"].p50, 2),
            1.25,
            "times",
        ),
        Reach("turn p50 with 10 memories", ten["turn"].p50, 2.5),
        Reach("turn p50 with 100 memories", hundred["turn"].p50, 5.0),
        Reach("turn p99 over p50, 10 memories", round(ten["turn"].p99 / ten["turn"].p50, 2), 4, "times"),
        Reach(
            "turn p99 over p50, 100 memories", round(hundred["turn"].p99 / hundred["turn"].p50, 2), 4, "times"
        ),
        Reach("recall p50 with 100 memories", hundred["recall"].p50, 2.0),
        Reach(
            "recall in a long chat over one in a short one, 10 memories",
            round(figures["long"].p50 / ten["recall"].p50, 2),
            1.5,
            "times",
        ),
        Reach("trips to Redis per recall", figures["trips"]["recall"], 1, ""),
        Reach("fixed prompt", figures["fixed_prompt_tokens"], 900, "tokens"),
    ]


if __name__ == "__main__":
    measure.run(main(measure.asked(__doc__)))
