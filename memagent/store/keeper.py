"""The process that runs an embedded server for as long as anybody holds a lease on its directory.

Run by its path, with the standard library only: it stays in memory as long as the server does.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

LEASES = "leases"
"""Every user of the server holds a shared lock on this file; the kernel takes it back when the process ends."""

STARTING = "starting"
"""Held while looking for a server and starting one, so that two never start."""

PID = "redis.pid"
OWNER_ONLY = 0o600


def open_lock(path: Path) -> int:
    """Open a lock file; the descriptor closes with the process and is not inherited."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWNER_ONLY)


def try_lock(descriptor: int, *, exclusive: bool) -> bool:
    """Take the lock, or turn a shared one into an exclusive one, if nobody is in the way."""
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def running_pid(directory: Path) -> int | None:
    """Process id of the server that the directory's pid file names, if that is alive and really the one of this directory."""
    try:
        pid = int((directory / PID).read_text())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    process = Path(f"/proc/{pid}")
    if not process.exists():
        return pid
    try:
        ended = (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        # Ids are given out again: by now this one may be another program, or the server of another directory.
        ours = (process / "comm").read_text().startswith("redis-server") and (process / "cwd").samefile(
            directory
        )
    except OSError:
        return None
    return pid if ours and not ended else None


def terminate(pid: int) -> None:
    """Ask a server to write everything and stop."""
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return


def keep(directory: Path, server: str, configuration: str) -> int:
    """Run the server until it ends by itself or the last lease is given back."""
    process = subprocess.Popen(  # noqa: S603  the binary of our own wheel
        [server, configuration], stdin=subprocess.DEVNULL, cwd=directory
    )
    leases = open_lock(directory / LEASES)

    def watch() -> None:
        fcntl.flock(leases, fcntl.LOCK_EX)  # comes when nobody else holds one
        process.terminate()

    threading.Thread(target=watch, daemon=True).start()
    return process.wait()


if __name__ == "__main__":
    keep(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
