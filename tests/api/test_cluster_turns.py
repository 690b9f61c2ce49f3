"""Turns on a cluster: the same service, the same queue, the same worker, on several shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.api.test_recovery import *  # noqa: F403  every test of it, for the Redis below
from tests.api.test_turns import *  # noqa: F403

if TYPE_CHECKING:
    from benchmarks.local_cluster import LocalCluster

pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture
def redis_url(cluster: LocalCluster) -> str:
    return cluster.url
