"""The guarantee, small: everything goes wrong once while turns are on their way, and nothing is lost or done twice.

`make chaos` does it at length. How fast answers come is measured there: here it is only that they come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.chaos import KINDS, Plan, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.timeout(300)
async def test_every_accepted_turn_is_applied_once_and_in_order_whatever_goes_wrong(tmp_path: Path) -> None:
    plan = Plan(
        turns=48,
        users=4,
        seed=3,
        rounds=len(KINDS) + 2,
        kinds=(*KINDS, "kill", "kill"),  # Redis, the API and the worker
        hold_s=0.6,
        rest_s=0.0,
        workers=1,
        entries=8,
        tokens=120,
        grace_ms=20_000,
        post_ms=40_000,
        recovery_s=100,
        chats=1,
        mount=False,
    )
    report = await run(plan, tmp_path)

    assert report.faults == []
    assert report.accepted == 48
    assert report.kinds() == dict.fromkeys(KINDS, 1) | {"kill": 3}
    assert report.samples
    assert set(report.chat) >= {*KINDS}
