"""The files that a command line names: directories searched, bytes read, troubles kept for the end."""

from __future__ import annotations

import os
from dataclasses import dataclass
from fnmatch import fnmatch
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
        found = sorted(_search(name)) if os.path.isdir(name) else [name]
        if not found:
            yield Trouble(f"no {' or '.join(PATTERNS)} in `{name}`")
        for path in found:
            if path not in seen:
                seen.add(path)
                yield _read(path)


def _search(directory: str) -> Iterator[str]:
    for folder, subfolders, names in os.walk(directory):
        subfolders[:] = [name for name in subfolders if not name.startswith(".") and name not in PRUNED]
        for name in names:
            if any(fnmatch(name.lower(), pattern) for pattern in PATTERNS):
                yield os.path.normpath(os.path.join(folder, name))


def _read(path: str) -> Input | Trouble:
    try:
        # One byte more than is accepted: a device or a pipe without end is then too large, and nothing worse.
        with open(path, "rb") as file:
            return Input(path, file.read(MAX_BYTES + 1))
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
        return Trouble(f"cannot read `{path}`: {reason.lower()}")


def write(path: str, data: bytes) -> None:
    """Replace a file in one step, keeping its mode; a link keeps pointing at what it pointed at. Raises OSError."""
    target = os.path.realpath(path)
    draft = f"{target}.memagent-{os.getpid()}"
    mode = os.stat(target).st_mode
    try:
        with open(draft, "xb") as file:
            file.write(data)
        os.chmod(draft, mode & 0o7777)
        os.replace(draft, target)
    finally:
        if os.path.exists(draft):
            os.unlink(draft)
