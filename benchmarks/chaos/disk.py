"""The disk under Redis, which can be full.

A tmpfs that is made as small as what lies on it, where this process may mount one: writes fail with ENOSPC. Elsewhere the size of
the server's files is limited instead, and they fail with EFBIG; to Redis that is the same.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SIZE = "2g"
"""Of which only what is written takes memory."""

SPARE = 16_384
TRIES = 100
"""A tmpfs is not made smaller than what lies on it, and the server goes on writing meanwhile."""


class Disk:
    def __init__(self, folder: Path, *, mount: bool) -> None:
        self.folder = folder
        self.mounted = False
        self._wanted = mount and sys.platform == "linux"

    @property
    def kind(self) -> str:
        return "a full tmpfs (ENOSPC)" if self.mounted else "a limit on the size of files (EFBIG)"

    async def open(self) -> None:
        self.folder.mkdir(exist_ok=True)
        if self._wanted and os.geteuid() == 0:
            self.mounted = await _run(
                "mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", self.folder
            )

    async def close(self) -> None:
        if self.mounted:
            await _run("umount", "-l", self.folder)

    async def fill(self, pid: int) -> None:
        """From now on nothing more can be written by `pid`."""
        if not self.mounted:
            longest = max(each.stat().st_size for each in self.folder.rglob("*") if each.is_file())
            return _limit(pid, longest)
        for _ in range(TRIES):
            if await _run("mount", "-o", f"remount,size={self._used() + SPARE}", self.folder):
                return None
        raise OSError(f"{self.folder} cannot be made full")

    def _used(self) -> int:
        stands = os.statvfs(self.folder)
        return (stands.f_blocks - stands.f_bfree) * stands.f_frsize

    async def free(self, pid: int) -> None:
        if self.mounted:
            await _run("mount", "-o", f"remount,size={SIZE}", self.folder)
        else:
            _limit(pid, resource.RLIM_INFINITY)


def _limit(pid: int, size: int) -> None:
    """The hard limit stays, so that this one can be lifted again by anybody."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


async def _run(*command: str | Path) -> bool:
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    return await process.wait() == 0
