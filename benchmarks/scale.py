"""How much of everything a number of users takes: docs/scale.md with your own numbers.

    python -m benchmarks.scale --users 1e6 --memories 50 --turns 5 --active 0.1 …

What was measured stands in `MEASURED`, with where it is from; every assumption is an option. Money is left out but for the formula of
the model's tokens: give prices per million tokens to have it reckoned.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, fields
from typing import Any

from benchmarks import measure

MEASURED = {
    "user": 1_110,  # bytes of a user without memories (size)
    "memory": 2_906,  # bytes of a memory with its first line of history and its part of the index, 384 dimensions (recall --full)
    "line": 700,  # bytes of a further line of history (size)
    "turn": 3_650,  # bytes that a turn leaves for MEMAGENT_RECEIPT_DAYS: receipt and ticket (size)
    "log": 12_200,  # bytes that a turn writes to the append-only file and to every replica (size)
    "redis_ms": 2.5,  # of a core of Redis for a turn: recall, queue, learning (size, recall)
    "elsewhere_ms": 0.05,  # of a core of every other shard for a recall, where the engine has a coordinator
    "queue_ms": 0.5,  # of a core of the one shard that has pydocket's stream and the handles, per turn
    "python_ms": 6.5,  # of a core of API and worker for a turn, without embedding (size, rest)
    "embed_ms": 22,  # of a core for two local embeddings of a turn (docs/deploy.md)
    "prompt": 548,  # fixed tokens of the memory agent's prompt (turn)
    "shown": 22,  # tokens of one memory in it (size)
}


@dataclass(frozen=True, slots=True)
class Assumed:
    """What only you can know; all numbers."""

    users: float = 1e6
    memories: float = 50  # of a user
    changes: float = (
        50  # lines of a user's history beyond the first of each memory; at most MEMAGENT_HISTORY_LENGTH, 200
    )
    active: float = 0.1  # share of the users who chat on a day
    turns: float = 5  # of an active user on a day
    peak: float = 3  # the busiest minutes over the mean
    receipt_days: float = 30  # MEMAGENT_RECEIPT_DAYS
    replicas: float = 1  # of every shard
    shard_gb: float = 25  # data that one shard is to hold
    headroom: float = 1.6  # memory of a node over its data: copy on write, buffers, fragments
    model_s: float = 3  # that the memory agent's model takes
    at_once: float = 16  # MEMAGENT_WORKER_TURNS
    accepted: float = 300  # turns and contexts a second of one API process (throughput, rest)
    window: float = 1_000  # tokens of the chat's window
    answer: float = 40  # tokens that the model answers with
    price_in: float = 0  # per million tokens
    price_out: float = 0


def reckoned(have: Assumed) -> dict[str, float]:
    """Every figure of the table in docs/scale.md, in its order."""
    m = MEASURED
    day = have.users * have.active * have.turns
    peak = day / 86_400 * have.peak
    user = (
        m["user"]
        + have.memories * m["memory"]
        + have.changes * m["line"]
        + have.active * have.turns * have.receipt_days * m["turn"]
    )
    data_gb = have.users * user / 1e9
    shards = math.ceil(data_gb / have.shard_gb)
    nodes = shards * (1 + have.replicas)
    tokens_in = day * (m["prompt"] + have.memories * m["shown"] + have.window)
    return {
        "bytes per user": user,
        "data, GB": data_gb,
        "shards": shards,
        "nodes with replicas": nodes,
        "memory of all nodes, GB": data_gb * (1 + have.replicas) * have.headroom,
        "turns a day": day,
        "turns a second at the peak": peak,
        "cores of Redis busy, own shard": peak * m["redis_ms"] / 1000,
        "share of a core of every shard, searches of others": peak * m["elsewhere_ms"] / 1000,
        "share of a core of the queue's shard": peak * m["queue_ms"] / 1000,
        "append-only file and replication, MB/s": peak * m["log"] / 1e6,
        "workers": math.ceil(peak * have.model_s / have.at_once),
        "API processes": math.ceil(2 * peak / have.accepted),
        "cores of API and workers": peak * (m["python_ms"] + m["embed_ms"]) / 1000,
        "model, million tokens in a day": tokens_in / 1e6,
        "model, million tokens out a day": day * have.answer / 1e6,
        "model, price a day": (tokens_in * have.price_in + day * have.answer * have.price_out) / 1e6,
    }


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for each in fields(Assumed):
        options.add_argument(f"--{each.name.replace('_', '-')}", type=float, default=each.default)
    given: dict[str, Any] = vars(options.parse_args())
    measure.table(
        ["", f"{given['users']:,.0f} users"],
        [[name, f"{value:,.2f}" if value < 10 else f"{value:,.0f}"] for name, value in reckoned(Assumed(**given)).items()],
    )  # fmt: skip


if __name__ == "__main__":
    main()
