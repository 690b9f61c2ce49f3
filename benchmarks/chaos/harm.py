"""The kinds of faults, how they are drawn from a seed, and how each is done and undone."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from benchmarks.chaos.wire import Mode

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator

    from benchmarks.chaos.report import Plan
    from benchmarks.chaos.town import Town

KINDS = {
    "kill": "SIGKILL of Redis, the API or a worker, in turn",
    "pause": "SIGSTOP of Redis",
    "freeze": "SIGSTOP of a worker, for longer than its lease",
    "disk": "no space for the append-only file",
    "slow": "100 to 600 ms more to Redis and back",
    "stall": "a partition: connections stay and carry nothing, then all of it",
    "cut": "connections to Redis are reset, new ones too",
    "deaf": "what is asked of Redis is done, and the answer lost",
    "clock": "the wall clock of processes jumps, and back",
}
WIRES = {"slow": Mode.SLOW, "stall": Mode.STALLED, "cut": Mode.CUT, "deaf": Mode.DEAF}

HOUR = 3_600.0
SHIFTS = (-400 * 24 * HOUR, -2 * 24 * HOUR, -HOUR, HOUR, 24 * HOUR, 3 * 24 * HOUR)
"""In seconds. Forward by so few dates that no memory becomes dormant: what is forgotten then is another test's."""
MIDNIGHT = "midnight"

LEASE_S = 1.0


@dataclass(frozen=True, slots=True)
class Fault:
    kind: str
    names: tuple[str, ...]
    """The processes it befalls."""
    hold_s: float
    shift_s: float | None = None
    """How far a clock jumps; None with `clock` goes to the next midnight, past it, and back before it."""
    killed: str = ""
    """A worker that is killed in the middle of it."""

    @property
    def what(self) -> str:
        jump = ""
        if self.kind == "clock":
            jump = f" by {self.shift_s / HOUR:+g} h" if self.shift_s is not None else " across midnight"
        return f"{self.kind} {'+'.join(self.names)}{jump}" + (f", kill {self.killed}" if self.killed else "")


def drawn(plan: Plan, workers: list[str], dice: random.Random) -> list[Fault]:
    """Every kind about as often as every other, in an order of their own."""
    kinds = [plan.kinds[number % len(plan.kinds)] for number in range(plan.rounds)]
    dice.shuffle(kinds)
    targets = ["redis", "api", workers[0]]
    dice.shuffle(targets)
    kills = 0
    found = []
    for kind in kinds:
        hold_s = plan.hold_s * (0.5 + dice.random())
        shift = dice.choice([*SHIFTS, None])
        killed = dice.choice(workers) if kind != "kill" and dice.random() < 0.25 else ""
        names = _names(kind, workers, dice)
        if kind == "kill":
            names, kills = (targets[kills % len(targets)],), kills + 1
        if kind == "freeze":
            hold_s = max(hold_s, 2 * LEASE_S)
        found.append(Fault(kind, names, hold_s, shift if kind == "clock" else None, killed))
    return found


def _names(kind: str, workers: list[str], dice: random.Random) -> tuple[str, ...]:
    match kind:
        case "pause" | "disk":
            return ("redis",)
        case "freeze":
            return (dice.choice(workers),)
        case _:
            everybody = ("api", *workers)
            return dice.choice([everybody, everybody, ("api",), (dice.choice(workers),)])


@asynccontextmanager
async def on(town: Town, fault: Fault) -> AsyncIterator[None]:
    """The fault, for as long as the block."""
    match fault.kind:
        case "kill":
            await town.kill(fault.names[0])
            yield
        case "pause" | "freeze":
            town.pause(fault.names[0], on=True)
            try:
                yield
            finally:
                town.pause(fault.names[0], on=False)
        case "disk":
            await town.disk.fill(town.pid("redis"))
            try:
                yield
            finally:
                await town.disk.free(town.pid("redis"))
                await town.rewrite()
        case "clock":
            _set_clocks(town, fault, _shift(fault))
            try:
                yield
            finally:
                # Across midnight, and back before it once more; else back to what it is.
                _set_clocks(town, fault, _shift(fault) - 60 if fault.shift_s is None else 0.0)
        case _:
            _become(town, fault, WIRES[fault.kind])
            try:
                yield
            finally:
                _become(town, fault, Mode.PASS)


def _become(town: Town, fault: Fault, mode: Mode) -> None:
    for name in fault.names:
        town.wires[name].become(mode)


def _set_clocks(town: Town, fault: Fault, seconds: float) -> None:
    for name in fault.names:
        town.move_clock(name, seconds)


def _shift(fault: Fault) -> float:
    """Seconds to move a clock by: as drawn, or until a second before the next midnight."""
    if fault.shift_s is not None:
        return fault.shift_s
    now = datetime.now(UTC)
    tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return (tomorrow - now).total_seconds() - 1
