"""The files that a command line names: directories searched, bytes read, troubles kept for the end."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from memagent.config.document import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STDIN = "-"
STDIN_NAME = "<stdin>"
PATTERNS = ("librechat*.yaml", "librechat*.yml")
"""What counts as a configuration in a directory; a file named on the command line counts whatever its name."""

PRUNED = frozenset({"node_modules", "__pycache__"})
"""Directories that are never searched, besides hidden ones."""


@dataclass(frozen=True, slots=True)
class Input:
    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something named that cannot be read, and why."""

    text: str


def read_inputs(names: Iterable[str], *, stdin: BinaryIO) -> Iterator[Input | Trouble]:
    """Each file once, in the order named; a trouble takes the place of what cannot be read."""
    seen: set[str] = set()
    for name in names:
        if name == STDIN:
            yield Input(STDIN_NAME, stdin.read(MAX_BYTES + 1))
            continue
        found = sorted(_search(name)) if Path(name).is_dir() else [name]
        if not found:
            yield Trouble(f"no {' or '.join(PATTERNS)} in `{name}`")
        for path in found:
            if path not in seen:
                seen.add(path)
                yield _read(path)


def reason(fault: OSError | ValueError) -> str:
    """Why a file cannot be used, in the system's words and without its numbers."""
    return (fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)).lower()


def replace(path: str, data: bytes) -> None:
    """Replace a file in one step, keeping its mode; a link keeps pointing at what it pointed at. Raises OSError."""
    target = Path(path).resolve()
    draft = target.with_name(f"{target.name}.memagent-{os.getpid()}")
    mode = target.stat().st_mode
    try:
        with draft.open("xb") as file:
            file.write(data)
        draft.chmod(mode & 0o7777)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _search(directory: str) -> Iterator[str]:
    for folder, subfolders, names in os.walk(directory):
        subfolders[:] = [name for name in subfolders if not name.startswith(".") and name not in PRUNED]
        for name in names:
            if any(fnmatch(name.lower(), pattern) for pattern in PATTERNS):
                yield str(Path(folder) / name)


def _read(path: str) -> Input | Trouble:
    try:
        # One byte more than is accepted: a device or a pipe without end is then too large, and nothing worse.
        with Path(path).open("rb") as file:
            return Input(path, file.read(MAX_BYTES + 1))
    except (OSError, ValueError) as fault:
        return Trouble(f"cannot read `{path}`: {reason(fault)}")
