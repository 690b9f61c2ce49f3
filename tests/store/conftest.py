"""Fixtures of the store's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memagent.memory import Scope, ScopeKind
from memagent.store.embedded import EmbeddedRedis
from tests.store.desk import Desk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from memagent.store.redis import RedisStore


@pytest.fixture
def desk(store: RedisStore) -> Desk:
    return Desk(store)


@pytest.fixture
def team() -> Scope:
    return Scope(ScopeKind.SHARED, "team")


@pytest.fixture
async def own_redis(tmp_path: Path) -> AsyncIterator[EmbeddedRedis]:
    """A server of this test alone, to count on, to stop and to kill."""
    async with await EmbeddedRedis.open(tmp_path / "redis") as server:
        yield server
