"""The rules hold on a cluster of several shards as on one server: the same tests, another store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store.test_counting_rules import *  # noqa: F403  every test of it, for the store below
from tests.store.test_decay_vectors import *  # noqa: F403
from tests.store.test_forgetting_rules import *  # noqa: F403
from tests.store.test_history import *  # noqa: F403
from tests.store.test_isolation import *  # noqa: F403
from tests.store.test_reading_again import *  # noqa: F403
from tests.store.test_review_rules import *  # noqa: F403
from tests.store.test_saving_rules import *  # noqa: F403
from tests.store.test_standing import *  # noqa: F403
from tests.store.test_switch_rules import *  # noqa: F403

if TYPE_CHECKING:
    from benchmarks.local_cluster import LocalCluster
    from memagent.store.redis import RedisStore

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture
def store(sharded: RedisStore) -> RedisStore:
    return sharded


@pytest.fixture
def redis_url(cluster: LocalCluster) -> str:
    return cluster.url
