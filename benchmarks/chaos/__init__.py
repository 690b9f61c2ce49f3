"""Everything that can go wrong under many users' turns, one thing after the other; then count.

`make chaos`, or `python -m benchmarks.chaos --turns 2000 --only kill,pause`. Every turn that was accepted must be applied exactly
once, in its user's order; no limit may ever be passed; every context must come within its budget, whatever is down. Exit code 1
with the differences if not. Processes are real, and so is what is done to them (`harm.py`).
"""

from __future__ import annotations

import asyncio
import random
import sys
from time import monotonic
from typing import TYPE_CHECKING

from benchmarks.chaos.count import count, drained, receipts, watch
from benchmarks.chaos.harm import KINDS, Fault, drawn, on
from benchmarks.chaos.people import Facts, Stage, chat, hand_over, learned
from benchmarks.chaos.report import CALM, Happened, Plan, Report
from benchmarks.chaos.town import Town
from memagent.llm.scripted import ScriptedServer

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["KINDS", "Plan", "Report", "run"]

REVIVE_S = 0.5


async def run(plan: Plan, folder: Path, *, told: bool = False) -> Report:
    """One run; `faults` of the report are what must not be. `told` prints each fault when it is over."""
    report, dice, started = Report(), random.Random(plan.seed), monotonic()
    async with ScriptedServer(Facts()) as model, Town(folder, plan, model.base_url) as town:
        report.disk = town.disk.kind
        async with town.client() as client:
            stage = Stage(plan, town, client, report)
            if not await learned(stage, "probe0"):
                report.faults.append("the service does not come up")
                return report
            faults = drawn(plan, town.workers, dice)
            async with asyncio.TaskGroup() as tasks:
                posting = [
                    tasks.create_task(hand_over(stage, number, dice.random())) for number in range(plan.users)
                ]
                for _ in range(plan.chats):
                    tasks.create_task(chat(stage, dice.random()))
                tasks.create_task(watch(stage))
                tasks.create_task(stage.pulse())
                for number, fault in enumerate(faults, 1):
                    await _one(stage, fault, number, monotonic() - started, told=told)
                while not all(task.done() for task in posting):
                    await town.revive()
                    await asyncio.sleep(REVIVE_S)
                await drained(stage)
                stage.closing = True
            await receipts(stage)
            await count(stage)
    report.seconds = monotonic() - started
    return report


async def _one(stage: Stage, fault: Fault, number: int, at_s: float, *, told: bool) -> None:
    """One round: the next turns may come, the fault is on for a while, and then all is well again."""
    plan, town = stage.plan, stage.town
    stage.now = fault.kind
    await stage.next_round()
    begun = monotonic()
    async with on(town, fault):
        killed = not fault.killed
        while monotonic() - begun < fault.hold_s:
            await asyncio.sleep(min(REVIVE_S, fault.hold_s / 4))
            if not killed and monotonic() - begun > fault.hold_s / 3:
                killed = True
                await town.kill(fault.killed)
            else:
                await town.revive()
        held = monotonic() - begun
    healed = monotonic()
    well = await learned(stage, f"probe{number}")
    happened = Happened(
        fault.kind, fault.what, round(at_s, 1), round(held, 1), round(monotonic() - healed, 2)
    )
    stage.report.happened.append(happened)
    if told:
        print(
            f"{number:3} at {happened.at_s:6.1f} s: {happened.what}, {happened.held_s} s, "
            f"well after {happened.recovered_s} s",
            file=sys.stderr,
        )
    if not well:
        stage.report.faults.append(f"{fault.what}: not well after {plan.recovery_s:g} s")
    stage.now = CALM
    await asyncio.sleep(plan.rest_s)
