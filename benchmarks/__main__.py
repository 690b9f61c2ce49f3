"""Every benchmark, one after another: `python -m benchmarks [--quick | --full] [name …]`, or `make bench`.

Each prints its table; its figures are also written to build/bench/<name>.json. At the end stands what was reached and what was not.
In its default mode everything takes less than a quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build" / "bench"

WITH_MODES = ("turn", "recall", "rest", "decay", "throughput", "beside", "cluster", "size", "recall_locomo")
"""Those that know `--quick` and `--full`."""

OTHERS: dict[str, tuple[str, ...]] = {
    "validate": ("--runs", "5"),
    "recall_pairs": (),
}
"""Those that have one mode. They skip with a word where node, or data that is not ours, is missing."""


def run(name: str, arguments: list[str]) -> dict[str, Any] | None:
    """The JSON object of one benchmark, whose output is shown as it comes; None without one."""
    print(f"\n── {name} {'─' * (76 - len(name))}\n", flush=True)
    started = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.{name}", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    found = None
    for line in process.stdout or ():
        if line.startswith("{"):
            found = json.loads(line)
        else:
            print(line, end="", flush=True)
    if process.wait():
        print(f"{name} failed with {process.returncode}")
    print(f"({perf_counter() - started:.0f} s)", flush=True)
    if found is not None:
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / f"{name}.json").write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    return found


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument("--quick", dest="mode", action="store_const", const=["--quick"], default=[])
    options.add_argument("--full", dest="mode", action="store_const", const=["--full"])
    options.add_argument("names", nargs="*", choices=[[], *WITH_MODES, *OTHERS], metavar="name")
    given = options.parse_args()
    missed = 0
    summary = []
    for name in given.names or [*WITH_MODES, *OTHERS]:
        found = run(name, given.mode if name in WITH_MODES else list(OTHERS[name]))
        for each in (found or {}).get("reach", ()):
            missed += not each["met"]
            summary.append(
                f"{'reached' if each['met'] else 'MISSED ':8} {name:11} {each['what']}: {each['value']:,.4g} {each['unit']}"
            )
    print(
        "\n".join(["", *summary, f"\n{missed} of {len(summary)} missed; figures in {KEPT.relative_to(ROOT)}"])
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
