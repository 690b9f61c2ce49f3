"""Files of JSON lines and small whole files: appended or replaced so that a crash at any moment loses nothing acknowledged.

Blocking by nature: callers on an event loop go through `asyncio.to_thread`. Locking is theirs too.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memagent.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

NEWLINE = b"\n"
PRIVATE = 0o600
"""What people said is for nobody else on the machine; replaced files are so by way of `mkstemp`."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its 1-based number, the byte it starts at, and the object in it, or None when it cannot be read."""

    number: int
    offset: int
    value: Mapping[str, Any] | None


def encode(value: Mapping[str, Any]) -> bytes:
    """One line without its end; other languages stay legible, text that is not Unicode (lone surrogates) is escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def decode(line: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def lines(path: Path) -> Iterator[Line]:
    """Every line that is not blank, the unreadable ones too; nothing when there is no such file.

    Only a line feed ends a line: other separators are text.
    """
    with faults("read", path):
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return
    offset = 0
    for number, raw in enumerate(content.split(NEWLINE), start=1):
        if raw.strip():
            yield Line(number, offset, decode(raw))
        offset += len(raw) + 1


def append(path: Path, values: Iterable[Mapping[str, Any]], *, sync: bool = True) -> None:
    """Append lines in one write; with `sync` they are on the disk when this returns.

    A torn last line, left by a crash, is closed first and stays as it is.
    """
    with faults("append to", path):
        new = not path.exists()
        with open(path, "ab", opener=_private) as file:
            start = _close_torn_line(path, file.tell())
            file.write(start + b"".join(encode(value) + NEWLINE for value in values))
            file.flush()
            if sync:
                os.fsync(file.fileno())
        if new and sync:
            sync_folder(path.parent)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE)


def end_of(path: Path) -> int:
    """The byte at which the next appended line will start."""
    size = path.stat().st_size if path.exists() else 0
    return size + len(_close_torn_line(path, size))


def _close_torn_line(path: Path, size: int) -> bytes:
    if size == 0:
        return b""
    with path.open("rb") as file:
        file.seek(size - 1)
        return b"" if file.read(1) == NEWLINE else NEWLINE


def replace(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Put `content` in the place of the file in one step: readers see the old bytes or the new ones."""
    with faults("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                if sync:
                    os.fsync(file.fileno())
            os.replace(temporary, path)  # noqa: PTH105  the atomic one, said plainly
        except BaseException:
            os.unlink(temporary)  # noqa: PTH108  pairs with mkstemp's bare name
            raise
        if sync:
            sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the folder's entries (new names, renames) on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def faults(doing: str, path: Path) -> Iterator[None]:
    """The boundary where the file system's errors become ours."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(
            f"cannot {doing} {path}: {error.strerror or error}; check the disk and the folder's permissions"
        ) from error
