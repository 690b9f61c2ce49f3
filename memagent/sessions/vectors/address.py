"""From the address of a passage store to the store. Each one's library loads when it is chosen."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from memagent.errors import BadRequest, EngineMissing
from memagent.store.connection import is_cluster

if TYPE_CHECKING:
    from memagent.sessions.vectors import VectorStore

REDIS_SCHEMES = ("redis://", "rediss://", "unix://")


def open_vectors(address: str, *, prefix: str = "ma") -> VectorStore:
    """Redis for a Redis URL, LanceDB for a folder; nothing is connected or made before the first call.

    `prefix` keeps several installations in one Redis apart. Raises `BadRequest` for a URL that cannot be and for a Redis
    Cluster, `EngineMissing` for a folder without LanceDB.
    """
    if is_cluster(address):
        raise BadRequest(
            "turns and notes cannot be searched on a Redis Cluster: name a Redis of one shard, or a folder for LanceDB, "
            "in MEMAGENT_VECTORS (`memagent notes`: --store)"
        )
    if address.startswith(REDIS_SCHEMES):
        from memagent.sessions.vectors.redis import RedisVectors  # noqa: PLC0415  loads redis and numpy

        return RedisVectors.open(address, prefix=prefix)
    if find_spec("lancedb") is None:
        raise EngineMissing(
            "a folder of passages needs LanceDB: install `memagent[lancedb]`, or name a Redis URL"
        )
    from memagent.sessions.vectors.lance import LanceVectors  # noqa: PLC0415  loads numpy

    return LanceVectors(Path(address))
