"""Fixtures of the store's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from memagent.memory import Scope, ScopeKind
from tests.store.desk import Desk

if TYPE_CHECKING:
    from memagent.store.redis import RedisStore


@pytest.fixture
def desk(store: RedisStore) -> Desk:
    return Desk(store)


@pytest.fixture
def team() -> Scope:
    return Scope(ScopeKind.SHARED, "team")
