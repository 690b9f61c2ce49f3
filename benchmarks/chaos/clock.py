"""Runs `memagent` under a wall clock that a file moves: `python clock.py FILE serve …`.

The file holds seconds. Everything in the process that asks for the time of day is moved, the libraries too; what measures
(`time.monotonic`) is not, as on a real machine whose clock is set.
"""

from __future__ import annotations

import runpy
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from time import sleep

LOOK_S = 0.05


def main() -> None:
    import time_machine

    file = Path(sys.argv.pop(1))
    moved = seconds_in(file)
    start = datetime.now(UTC) + timedelta(seconds=moved)
    moving = time_machine.travel(start, tick=True).start()

    def follow() -> None:
        shown = moved
        while True:
            sleep(LOOK_S)
            wanted = shown
            with suppress(ValueError):  # half written
                wanted = seconds_in(file)
            if wanted != shown:
                moving.shift(wanted - shown)
                shown = wanted

    Thread(target=follow, daemon=True, name="clock").start()
    sys.path.pop(0)  # this folder
    runpy.run_module("memagent", run_name="__main__", alter_sys=True)


def seconds_in(file: Path) -> float:
    return float(file.read_text()) if file.exists() else 0.0


if __name__ == "__main__":
    main()
