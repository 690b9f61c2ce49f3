"""The guarantee, small: Redis, the API and a worker are killed while turns are on their way, and nothing is lost or done twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.chaos import Plan, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.timeout(300)
async def test_every_accepted_turn_is_applied_once_and_in_order_whatever_is_killed(tmp_path: Path) -> None:
    plan = Plan(turns=60, users=6, seed=3, kills=3, between_s=1.0, workers=1, entries=8)
    report = await run(plan, tmp_path)

    assert report.faults == []
    assert report.accepted == 60
    assert report.kills == {"redis": 1, "api": 1, "worker": 1}
