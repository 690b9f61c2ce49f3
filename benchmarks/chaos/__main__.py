"""`python -m benchmarks.chaos`: a run, its faults as they come, its figures, and its verdict as the exit code."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from pathlib import Path

import benchmarks.chaos
from benchmarks.chaos import Plan, run
from benchmarks.chaos.harm import KINDS

PER_ROUND = 170
"""Turns, about: 10,000 make 60 faults."""


def main() -> int:
    kinds = "\n".join(f"  {kind:8} {what}" for kind, what in KINDS.items())
    options = argparse.ArgumentParser(
        description=benchmarks.chaos.__doc__,
        epilog=f"kinds of faults:\n{kinds}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("--turns", type=int, default=10_000)
    options.add_argument("--users", type=int, default=100)
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--rounds", type=int, help="how many faults; by the number of turns if not given")
    options.add_argument("--only", metavar="KIND,…", default=",".join(KINDS), help="these kinds of faults")
    options.add_argument(
        "--grace-ms", type=float, default=850.0, help="for a context, on top of the recall budget of 150 ms"
    )
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the logs of all processes here")
    given = options.parse_args()
    wanted = tuple(given.only.split(","))
    if unknown := {*wanted} - {*KINDS}:
        options.error(f"no such kind: {', '.join(sorted(unknown))}")
    plan = Plan(
        given.turns,
        given.users,
        given.seed,
        rounds=given.rounds or max(len(wanted), given.turns // PER_ROUND),
        kinds=wanted,
        grace_ms=given.grace_ms,
    )
    for ended in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ended, signal.default_int_handler)  # so that no process and no mount is left behind
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
        report = asyncio.run(run(plan, given.keep.resolve(), told=True))
    else:
        with tempfile.TemporaryDirectory(prefix="memagent-chaos-") as folder:
            report = asyncio.run(run(plan, Path(folder), told=True))
    print(json.dumps(report.shown(), indent=2))
    return 1 if report.faults or report.accepted != plan.turns else 0


if __name__ == "__main__":
    sys.exit(main())
